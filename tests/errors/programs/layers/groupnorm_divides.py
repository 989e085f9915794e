# fault: GroupNorm whose groups do not divide the channels
# raises: ValueError
# at: norm = nn.GroupNorm(3, 8)
# says: 3 | 8
# modes: eager
from duograph import nn

norm = nn.GroupNorm(3, 8)
