# fault: a loop that makes ints of floats
# raises: TypeError
# at: while total < n:
# says: total | Int32 | Float32
# modes: eager
import duograph as ms
from duograph import Tensor, ops


@ms.jit
def forward(x, n):
    total = Tensor(0, ms.int32)
    while total < n:
        total = total + x.mean()
    return total


forward(ops.ones((3,)), Tensor(3, ms.int32))
