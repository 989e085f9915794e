# fault: two index lists that do not pair up
# raises: IndexError/ValueError
# at: y = x[[0, 1, 2], [0, 1]]
# says: (3,) | (2,)
# modes: eager
from duograph import ops

x = ops.ones((6, 6))
y = x[[0, 1, 2], [0, 1]]
