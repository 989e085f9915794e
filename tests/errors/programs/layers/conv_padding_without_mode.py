# fault: padding without pad_mode="pad"
# raises: ValueError
# at: conv = nn.Conv2d(3, 8, 3, padding=1)
# says: pad_mode | padding
# modes: eager
from duograph import nn

conv = nn.Conv2d(3, 8, 3, padding=1)
