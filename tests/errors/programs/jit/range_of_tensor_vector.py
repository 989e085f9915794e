# fault: range over a Tensor of several elements
# raises: TypeError/ValueError
# at: for i in range(n):
# says: range | element
# modes: eager
import duograph as ms
from duograph import Tensor, ops


@ms.jit
def forward(x, n):
    for i in range(n):
        x = x + i
    return x


forward(ops.ones((3,)), Tensor([2, 3]))
