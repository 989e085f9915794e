# fault: jit of a Tensor
# raises: TypeError
# at: f = ms.jit(x)
# says: jit | function
# modes: eager
import duograph as ms
from duograph import ops

x = ops.ones((2, 3))
f = ms.jit(x)
