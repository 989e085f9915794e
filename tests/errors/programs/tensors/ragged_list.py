# fault: a list whose rows have different lengths
# raises: ValueError
# at: x = Tensor([[1.0, 2.0], [3.0]])
# says: rectangular | length 2 | length 1
# modes: eager
from duograph import Tensor

x = Tensor([[1.0, 2.0], [3.0]])
