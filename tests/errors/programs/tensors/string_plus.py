# fault: a Tensor plus a word
# raises: TypeError
# at: y = x + "1"
# says: str
# modes: eager
from duograph import Tensor

x = Tensor([1.0, 2.0])
y = x + "1"
