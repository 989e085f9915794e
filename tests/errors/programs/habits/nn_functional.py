# fault: nn.functional of PyTorch
# raises: AttributeError
# at: y = nn.functional.relu(x)
# says: functional | ops
# modes: eager
from duograph import nn, ops

x = ops.ones((2, 3))
y = nn.functional.relu(x)
