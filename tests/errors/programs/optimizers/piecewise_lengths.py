# fault: milestones and rates of different lengths
# raises: ValueError
# at: schedule = nn.piecewise_constant_lr([2, 5], [0.1, 0.05, 0.01])
# says: milestone | 2 | 3
# modes: eager
from duograph import nn

schedule = nn.piecewise_constant_lr([2, 5], [0.1, 0.05, 0.01])
