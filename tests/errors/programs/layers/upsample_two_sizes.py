# fault: Upsample with size and scale
# raises: ValueError
# at: up = nn.Upsample(size=(8, 8), scale_factor=2.0)
# says: size | scale
# modes: eager
from duograph import nn

up = nn.Upsample(size=(8, 8), scale_factor=2.0)
