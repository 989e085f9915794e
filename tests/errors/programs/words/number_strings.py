# fault: numbers that are still texts
# raises: TypeError/ValueError
# at: x = Tensor("1.5")
# says: 1.5 | str
# modes: eager
from duograph import Tensor

x = Tensor("1.5")
