# fault: an unknown pad_mode
# raises: ValueError
# at: conv = nn.Conv2d(3, 8, 3, pad_mode="full")
# says: full | same | valid
# modes: eager
from duograph import nn

conv = nn.Conv2d(3, 8, 3, pad_mode="full")
