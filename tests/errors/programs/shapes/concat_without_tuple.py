# fault: concat of two Tensors without brackets around them
# raises: TypeError
# at: c = ops.concat(a, b)
# says: tuple
# modes: eager
from duograph import ops

a = ops.ones((2, 3))
b = ops.ones((2, 3))
c = ops.concat(a, b)
