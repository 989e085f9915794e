# fault: a name that is defined nowhere
# raises: NameError
# at: return x * alpha
# says: alpha
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    return x * alpha


forward(ops.ones((3,)))
