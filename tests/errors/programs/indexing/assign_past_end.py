# fault: an assignment past the end
# raises: IndexError
# at: x[7] = 1.0
# says: 7
# modes: eager
from duograph import ops

x = ops.zeros((4,))
x[7] = 1.0
