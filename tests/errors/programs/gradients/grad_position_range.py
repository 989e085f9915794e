# fault: grad_position past the arguments
# raises: ValueError/IndexError
# at: grads = ms.grad(forward, grad_position=2)(ops.ones((3,)), ops.ones((3,)))
# says: grad_position | 2
# modes: eager
import duograph as ms
from duograph import ops


def forward(x, y):
    return (x * y).sum()


grads = ms.grad(forward, grad_position=2)(ops.ones((3,)), ops.ones((3,)))
