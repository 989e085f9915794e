# fault: a Tensor of a missing value
# raises: TypeError/ValueError
# at: x = Tensor(None)
# says: None
# modes: eager
from duograph import Tensor

x = Tensor(None)
