# fault: a dtype given by an invented name
# raises: TypeError
# at: x = Tensor([1, 2, 3], "float23")
# says: float23
# modes: eager
from duograph import Tensor

x = Tensor([1, 2, 3], "float23")
