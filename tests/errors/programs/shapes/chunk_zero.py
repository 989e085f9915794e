# fault: chunk into no parts
# raises: ValueError
# at: parts = ops.chunk(x, 0)
# says: chunk | 0
# modes: eager
from duograph import ops

x = ops.ones((10, 2))
parts = ops.chunk(x, 0)
