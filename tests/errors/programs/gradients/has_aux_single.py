# fault: has_aux with a single result
# raises: ValueError/TypeError
# at: (loss, logits), grads = step(ops.ones((3,)))
# says: has_aux | tuple
# modes: eager
import duograph as ms
from duograph import ops


def forward(x):
    return (x * x).sum()


step = ms.value_and_grad(forward, has_aux=True)
(loss, logits), grads = step(ops.ones((3,)))
