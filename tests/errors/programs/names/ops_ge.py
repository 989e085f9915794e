# fault: ops.ge of shapes that do not broadcast
# raises: ValueError
# at: mask = ops.ge(ops.ones((2, 3)), ops.ones((4,)))
# says: ge: | (2, 3) | (4,)
# modes: eager
from duograph import ops

mask = ops.ge(ops.ones((2, 3)), ops.ones((4,)))
