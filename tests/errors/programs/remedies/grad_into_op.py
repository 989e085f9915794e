# fault: a gradient function given to an op
# raises: TypeError
# at: y = x * ms.grad(forward)
# says: function | ms.grad
# modes: eager
import duograph as ms
from duograph import ops


def forward(x):
    return (x * x).sum()


x = ops.ones((3,))
y = x * ms.grad(forward)
