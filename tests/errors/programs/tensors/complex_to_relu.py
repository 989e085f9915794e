# fault: relu of complex numbers
# raises: TypeError
# at: y = ops.relu(x)
# says: complex128
# modes: eager
from duograph import Tensor, ops

x = Tensor([1 + 2j])
y = ops.relu(x)
