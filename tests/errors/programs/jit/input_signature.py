# fault: a call that does not match input_signature
# raises: TypeError/ValueError
# at: forward(ops.ones((4,)))
# says: (4,) | (3,)
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit(input_signature=(ops.ones((3,)),))
def forward(x):
    return x * 2


forward(ops.ones((4,)))
