# fault: int8 overflow in a Tensor of a large number
# raises: ValueError
# at: x = Tensor([300], ms.int8)
# says: 300 | int8
# modes: eager
import duograph as ms
from duograph import Tensor

x = Tensor([300], ms.int8)
