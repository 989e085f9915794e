# fault: tile with a negative count
# raises: ValueError
# at: y = ops.tile(x, (-1,))
# says: tile | -1
# modes: eager
from duograph import ops

x = ops.ones((3,))
y = ops.tile(x, (-1,))
