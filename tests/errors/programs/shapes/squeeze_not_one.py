# fault: squeeze of an axis that is not 1
# raises: ValueError
# at: y = ops.squeeze(x, 1)
# says: squeeze | 3
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = ops.squeeze(x, 1)
