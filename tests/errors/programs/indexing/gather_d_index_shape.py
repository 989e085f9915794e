# fault: gather_elements with an index of another rank
# raises: ValueError
# at: y = ops.gather_elements(x, 1, Tensor([0, 1]))
# says: gather
# modes: eager
from duograph import Tensor, ops

x = ops.ones((5, 2))
y = ops.gather_elements(x, 1, Tensor([0, 1]))
