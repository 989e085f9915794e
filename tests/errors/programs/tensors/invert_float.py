# fault: bitwise not of floats, as a mask
# raises: TypeError
# at: inverse = ~mask
# says: bool | int
# modes: eager
from duograph import Tensor

mask = Tensor([1.0, 0.0])
inverse = ~mask
