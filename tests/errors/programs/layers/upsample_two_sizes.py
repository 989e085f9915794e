# fault: Upsample with size and scale
# raises: ValueError
# at: y = up(ops.ones((1, 1, 4, 4)))
# says: size | scale
# modes: eager
from duograph import nn, ops

up = nn.Upsample(size=(8, 8), scale_factor=2.0)
y = up(ops.ones((1, 1, 4, 4)))
