# fault: a reshape with two unknown sizes
# raises: ValueError
# at: y = x.reshape((-1, -1, 2))
# says: -1
# modes: eager
from duograph import ops

x = ops.ones((4, 6))
y = x.reshape((-1, -1, 2))
