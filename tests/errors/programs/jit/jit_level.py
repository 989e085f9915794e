# fault: an unknown optimisation level
# raises: ValueError
# at: @ms.jit(jit_level="O9")
# says: O9 | O1
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit(jit_level="O9")
def forward(x):
    return x * 2


forward(ops.ones((3,)))
