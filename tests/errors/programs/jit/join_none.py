# fault: a branch that forgets its return
# raises: TypeError
# at: if x.sum() > 0:
# says: None
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    if x.sum() > 0:
        return x * 2


forward(ops.ones((3,)))
