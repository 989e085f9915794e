# fault: vmap over Tensors of different lengths
# raises: ValueError
# at: y = ms.vmap(scale)(ops.ones((3, 2)), ops.ones((4,)))
# says: 3 | 4
# modes: eager
import duograph as ms
from duograph import ops


def scale(x, s):
    return x * s


y = ms.vmap(scale)(ops.ones((3, 2)), ops.ones((4,)))
