# fault: matmul with a number
# raises: TypeError
# at: y = ops.matmul(x, 2.0)
# says: matmul | float
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = ops.matmul(x, 2.0)
