# fault: mm of a batch
# raises: ValueError
# at: y = ops.mm(x, x)
# says: mm | 2
# modes: eager
from duograph import ops

x = ops.ones((2, 3, 3))
y = ops.mm(x, x)
