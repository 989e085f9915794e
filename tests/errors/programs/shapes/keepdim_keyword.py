# fault: PyTorch's keyword keepdim
# raises: TypeError
# at: y = ops.sum(x, axis=1, keepdim=True)
# says: keepdim
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = ops.sum(x, axis=1, keepdim=True)
