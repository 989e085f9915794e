# fault: pad with more numbers than axes
# raises: ValueError
# at: y = ops.pad(x, (1, 1, 1, 1))
# says: pad
# modes: eager
from duograph import ops

x = ops.ones((3,))
y = ops.pad(x, (1, 1, 1, 1))
