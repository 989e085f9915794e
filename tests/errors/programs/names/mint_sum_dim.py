# fault: mint.sum along an axis that does not exist
# raises: ValueError
# at: y = mint.sum(x, dim=3)
# says: sum: | dim | 3
# modes: eager
from duograph import mint, ops

x = ops.ones((2, 3))
y = mint.sum(x, dim=3)
