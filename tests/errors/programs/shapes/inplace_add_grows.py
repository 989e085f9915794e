# fault: an in-place sum that would grow its target
# raises: ValueError
# at: total.add_(ops.ones((2, 3)))
# says: (3,) | (2, 3)
# modes: eager
from duograph import ops

total = ops.zeros((3,))
total += 1
total.add_(ops.ones((2, 3)))
