# fault: gradient of an integer Tensor
# raises: TypeError
# at: grads = ms.grad(lambda v: (v * v).sum())(x)
# says: int
# modes: eager
import duograph as ms
from duograph import Tensor

x = Tensor([1, 2, 3], ms.int32)
grads = ms.grad(lambda v: (v * v).sum())(x)
