# fault: a function that was not imported
# raises: NameError
# at: return softmax(x, -1)
# says: softmax
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit
def forward(x):
    return softmax(x, -1)


forward(ops.ones((3,)))
