# fault: a compiled function called with too few arguments
# raises: TypeError
# at: forward(ops.ones((3,)))
# says: weight
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x, weight):
    return x * weight


forward(ops.ones((3,)))
