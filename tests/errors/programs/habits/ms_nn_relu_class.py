# fault: the class ReLU used as a function
# raises: TypeError
# at: y = nn.ReLU(x)
# says: ReLU
# modes: eager
from duograph import nn, ops

x = ops.ones((2, 3))
y = nn.ReLU(x)
