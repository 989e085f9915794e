# fault: a local variable of another function
# raises: NameError
# at: return x * threshold
# says: threshold
# modes: eager
import duograph as ms
from duograph import ops


def make():
    def forward(x):
        return x * threshold

    return ms.jit(forward)


make()(ops.ones((3,)))
