# fault: the gradient of a Python number argument
# raises: TypeError/ValueError/RuntimeError
# at: grads = ms.grad(forward)(2, ops.ones((3,)))
# says: int | Tensor
# modes: eager
import duograph as ms
from duograph import ops


def forward(n, x):
    return (x * n).sum()


grads = ms.grad(forward)(2, ops.ones((3,)))
