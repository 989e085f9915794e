# fault: an unknown level of auto_mixed_precision
# raises: ValueError
# at: net = ms.amp.auto_mixed_precision(nn.Dense(3, 2), "half")
# says: half | O2
# modes: eager
import duograph as ms
from duograph import nn

net = ms.amp.auto_mixed_precision(nn.Dense(3, 2), "half")
