# fault: a variable set in one branch only
# raises: NameError/TypeError
# at: return y
# says: y | not
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    if x.sum() < 0:
        y = x * 2
    return y


forward(ops.ones((3,)))
