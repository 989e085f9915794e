# fault: a Tensor called like a function
# raises: TypeError
# at: y = x(0)
# says: callable
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = x(0)
