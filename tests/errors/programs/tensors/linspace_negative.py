# fault: a negative number of points
# raises: ValueError
# at: x = ops.linspace(0.0, 1.0, -5)
# says: -5
# modes: eager
from duograph import ops

x = ops.linspace(0.0, 1.0, -5)
