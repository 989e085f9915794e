# fault: a schedule object called without a step
# raises: TypeError
# at: rate = schedule()
# says: global_step
# modes: eager
from duograph import nn

schedule = nn.ExponentialDecayLR(0.1, 0.9, 4)
rate = schedule()
