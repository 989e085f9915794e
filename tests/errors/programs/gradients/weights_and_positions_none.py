# fault: neither position nor weights
# raises: ValueError
# at: grads = ms.grad(forward, grad_position=None)(ops.ones((3,)))
# says: grad_position | weights
# modes: eager
import duograph as ms
from duograph import ops


def forward(x):
    return (x * x).sum()


grads = ms.grad(forward, grad_position=None)(ops.ones((3,)))
