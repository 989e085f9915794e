# fault: expand_dims beyond the axes
# raises: ValueError
# at: y = ops.expand_dims(x, 4)
# says: 4
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = ops.expand_dims(x, 4)
