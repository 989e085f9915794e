# fault: a compiled function that calls itself without end
# raises: RecursionError
# at: def forward(x):
# says: forward
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    return forward(x * 2)


forward(ops.ones((3,)))
