# fault: an option of jit that does not exist
# raises: TypeError/ValueError
# at: @ms.jit(device="CPU")
# says: device
# modes: eager
import duograph as ms
from duograph import ops


@ms.jit(device="CPU")
def forward(x):
    return x * 2


forward(ops.ones((3,)))
