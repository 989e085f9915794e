# fault: gather with floating indices
# raises: TypeError
# at: y = ops.gather(x, Tensor([0.0, 1.0]), 0)
# says: gather | float32
# modes: eager
from duograph import Tensor, ops

x = ops.ones((5, 2))
y = ops.gather(x, Tensor([0.0, 1.0]), 0)
