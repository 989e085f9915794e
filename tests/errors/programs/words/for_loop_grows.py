# fault: a for loop over a number of the graph that makes a Tensor longer
# raises: TypeError
# at: for _ in range(n):
# says: x | (1,) | (2,) | Python int
# modes: eager
import duograph as ms
from duograph import Tensor, ops


@ms.jit
def forward(x, n):
    for _ in range(n):
        x = ops.cat((x, x))
    return x


forward(ops.ones((1,)), Tensor(3))
