# fault: the gradient with a sum forgotten in value_and_grad of a tuple of text
# raises: TypeError
# at: grads = ms.grad(forward)(ops.ones((3,)))
# says: str
# modes: eager
import duograph as ms
from duograph import ops


def forward(x):
    return x.sum(), "done"


grads = ms.grad(forward)(ops.ones((3,)))
