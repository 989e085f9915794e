# fault: split into pieces whose sizes do not sum up
# raises: ValueError
# at: a, b = ops.split(x, [4, 4])
# says: split
# modes: eager
from duograph import ops

x = ops.ones((10, 2))
a, b = ops.split(x, [4, 4])
