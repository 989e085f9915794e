# fault: groups that do not divide the channels
# raises: ValueError
# at: conv = nn.Conv2d(16, 32, 3, group=3)
# says: group | 3
# modes: eager
from duograph import nn

conv = nn.Conv2d(16, 32, 3, group=3)
