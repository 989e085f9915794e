# fault: mint.cat of two Tensors without brackets around them
# raises: TypeError
# at: y = mint.cat(x, x)
# says: tuple
# modes: eager
from duograph import mint, ops

x = ops.ones((2, 3))
y = mint.cat(x, x)
