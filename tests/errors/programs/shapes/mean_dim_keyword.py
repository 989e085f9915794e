# fault: PyTorch's keyword dim
# raises: TypeError
# at: y = x.mean(dim=1)
# says: dim
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = x.mean(dim=1)
