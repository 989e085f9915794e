# fault: a word added to a Tensor
# raises: TypeError
# at: print("result: " + x)
# says: str
# modes: eager
from duograph import Tensor

x = Tensor([1.0, 2.0])
print("result: " + x)
