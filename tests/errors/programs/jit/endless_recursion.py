# fault: a compiled function that calls itself without end
# raises: RecursionError
# at: return forward(x * 2)
# says: forward
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    return forward(x * 2)


forward(ops.ones((3,)))
