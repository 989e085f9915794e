# fault: a float as a size
# raises: TypeError
# at: x = ops.zeros((n / 2, 3))
# says: 2.5 | int
# modes: eager
from duograph import ops

n = 5
x = ops.zeros((n / 2, 3))
