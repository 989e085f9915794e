# fault: branches that return different shapes
# raises: TypeError
# at: if x.sum() > 0:
# says: (3,) | ()
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    if x.sum() > 0:
        return x
    return x.sum()


forward(ops.ones((3,)))
