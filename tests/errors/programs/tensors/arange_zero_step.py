# fault: a range whose step is zero
# raises: ValueError
# at: x = ops.arange(0, 10, 0)
# says: step
# modes: eager
from duograph import ops

x = ops.arange(0, 10, 0)
