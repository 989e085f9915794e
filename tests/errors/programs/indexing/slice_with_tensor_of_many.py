# fault: a slice bound that is no single number
# raises: TypeError/ValueError
# at: y = x[start:]
# says: slice | int
# modes: eager
from duograph import Tensor, ops

x = ops.ones((6,))
start = Tensor([1, 2])
y = x[start:]
