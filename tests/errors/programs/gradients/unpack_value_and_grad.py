# fault: grad unpacked as value_and_grad
# raises: ValueError/TypeError
# at: loss, grads = ms.grad(forward)(ops.ones((3,)))
# says: unpack
# modes: eager
import duograph as ms
from duograph import ops


def forward(x):
    return (x * x).sum()


loss, grads = ms.grad(forward)(ops.ones((3,)))
