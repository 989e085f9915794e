# fault: a float as a number of steps
# raises: TypeError
# at: schedule = nn.WarmUpLR(0.1, 2.5)
# says: 2.5 | step
# modes: eager
from duograph import nn

schedule = nn.WarmUpLR(0.1, 2.5)
