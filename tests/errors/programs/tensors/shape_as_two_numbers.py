# fault: shape given as two arguments
# raises: TypeError
# at: x = ops.ones(3, 4)
# says: ones((3, 4))
# modes: eager
from duograph import ops

x = ops.ones(3, 4)
