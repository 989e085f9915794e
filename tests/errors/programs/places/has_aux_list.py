# fault: has_aux with a list
# raises: TypeError/ValueError
# at: (loss, logits), grads = step(ops.ones((3,)))
# says: has_aux | forward | tuple
# modes: eager graph
import duograph as ms
from duograph import ops


def forward(x):
    return [(x * x).sum(), x]


step = ms.value_and_grad(forward, has_aux=True)
(loss, logits), grads = step(ops.ones((3,)))
