# fault: where with shapes that do not broadcast
# raises: ValueError
# at: y = ops.where(mask, ops.ones((3, 2)), ops.zeros((3, 2)))
# says: (2, 3) | (3, 2)
# modes: eager
import duograph as ms
from duograph import ops

mask = ops.ones((2, 3)).astype(ms.bool_)
y = ops.where(mask, ops.ones((3, 2)), ops.zeros((3, 2)))
