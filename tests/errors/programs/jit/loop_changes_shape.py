# fault: a while loop whose Tensor grows
# raises: TypeError
# at: while i < n:
# says: (1,) | (2,) | Python int
# modes: eager
import duograph as ms
from duograph import Tensor, ops


@ms.jit
def forward(x, n):
    i = Tensor(0)
    while i < n:
        x = ops.concat((x, x))
        i = i + 1
    return x


forward(ops.ones((1,)), Tensor(3))
