# fault: a list with a missing value
# raises: TypeError/ValueError
# at: x = Tensor([1.0, None, 3.0])
# says: None
# modes: eager
from duograph import Tensor

x = Tensor([1.0, None, 3.0])
