# fault: vmap over an axis that does not exist
# raises: ValueError/TypeError/IndexError
# at: y = ms.vmap(norm, in_axes=1)(ops.ones((3,)))
# says: in_axes | 1
# modes: eager
import duograph as ms
from duograph import ops


def norm(x):
    return (x * x).sum()


y = ms.vmap(norm, in_axes=1)(ops.ones((3,)))
