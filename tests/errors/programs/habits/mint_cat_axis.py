# fault: mint.cat with a tensor
# raises: TypeError
# at: y = mint.cat(x, x)
# says: tuple | list | Tensor
# modes: eager
from duograph import mint, ops

x = ops.ones((2, 3))
y = mint.cat(x, x)
