# fault: Dense without its number of outputs
# raises: TypeError
# at: fc = nn.Dense(16)
# says: out_channels
# modes: eager
from duograph import nn

fc = nn.Dense(16)
