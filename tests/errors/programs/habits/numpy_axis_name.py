# fault: the axis name of NumPy in mint
# raises: TypeError
# at: y = mint.sum(x, axes=1)
# says: axes | dim
# modes: eager
from duograph import mint, ops

x = ops.ones((2, 3))
y = mint.sum(x, axes=1)
