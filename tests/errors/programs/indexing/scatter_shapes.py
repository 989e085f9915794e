# fault: updates that do not fit the indices
# raises: ValueError
# at: y = ops.tensor_scatter_update(x, Tensor([[0], [1]]), ops.ones((3, 2)))
# says: scatter
# modes: eager
from duograph import Tensor, ops

x = ops.zeros((5, 2))
y = ops.tensor_scatter_update(x, Tensor([[0], [1]]), ops.ones((3, 2)))
