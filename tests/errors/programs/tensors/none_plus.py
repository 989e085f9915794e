# fault: None from a function without return is added
# raises: TypeError
# at: y = x + scale(x)
# says: None
# modes: eager
from duograph import Tensor


def scale(v):
    v * 2


x = Tensor([1.0, 2.0])
y = x + scale(x)
