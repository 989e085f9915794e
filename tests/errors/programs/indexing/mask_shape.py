# fault: a boolean mask of another length
# raises: IndexError
# at: y = x[mask]
# says: mask | (3,) | 4
# modes: eager
from duograph import Tensor, ops

x = ops.ones((4, 2))
mask = Tensor([True, False, True])
y = x[mask]
