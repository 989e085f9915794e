# fault: stack of Tensors of different shapes
# raises: ValueError
# at: x = ops.stack(rows)
# says: stack | (3,) | (4,)
# modes: eager
from duograph import ops

rows = [ops.ones((3,)), ops.ones((4,))]
x = ops.stack(rows)
