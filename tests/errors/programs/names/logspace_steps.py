# fault: a negative number of points
# raises: ValueError
# at: x = ops.logspace(0.0, 2.0, -3)
# says: logspace: | -3
# modes: eager
from duograph import ops

x = ops.logspace(0.0, 2.0, -3)
