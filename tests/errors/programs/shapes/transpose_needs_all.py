# fault: transpose with too few axes
# raises: ValueError
# at: y = ops.transpose(x, (1, 0))
# says: transpose | 3
# modes: eager
from duograph import ops

x = ops.ones((2, 3, 4))
y = ops.transpose(x, (1, 0))
