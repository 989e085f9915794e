# fault: an axis per argument of which one does not exist
# raises: ValueError/IndexError
# at: y = ms.vmap(add, in_axes=(0, 2))(ops.ones((3, 2)), ops.ones((2, 3)))
# says: in_axes | argument 1 | (2, 3)
# modes: eager
import duograph as ms
from duograph import ops


def add(x, y):
    return x + y


y = ms.vmap(add, in_axes=(0, 2))(ops.ones((3, 2)), ops.ones((2, 3)))
