# fault: an index that is a float
# raises: IndexError
# at: middle = x[n / 2]
# says: float
# modes: eager
from duograph import ops

x = ops.ones((10,))
n = len(x)
middle = x[n / 2]
