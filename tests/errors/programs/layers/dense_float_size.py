# fault: a layer size computed with /
# raises: TypeError
# at: fc = nn.Dense(16, hidden)
# says: 128.0
# modes: eager
from duograph import nn

hidden = 256 / 2
fc = nn.Dense(16, hidden)
