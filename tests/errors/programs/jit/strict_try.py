# fault: an import in a strict function
# raises: RuntimeError
# at: import math
# says: Import
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit(fullgraph=True)
def forward(x):
    import math

    return x * math.pi


forward(ops.ones((3,)))
