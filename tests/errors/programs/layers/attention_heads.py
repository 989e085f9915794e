# fault: heads that do not divide the width
# raises: ValueError
# at: attention = nn.MultiheadAttention(10, 3)
# says: 10 | 3
# modes: eager
from duograph import nn

attention = nn.MultiheadAttention(10, 3)
