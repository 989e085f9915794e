# fault: bitwise and of two comparisons with precedence wrong
# raises: TypeError
# at: inside = x > 0 & x < 3
# says: bitwise_and
# modes: eager
from duograph import Tensor

x = Tensor([1.0, 2.0, 3.0])
inside = x > 0 & x < 3
