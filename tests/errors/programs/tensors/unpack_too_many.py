# fault: unpacking more rows than there are
# raises: ValueError
# at: a, b, c = x
# says: unpack
# modes: eager
from duograph import Tensor

x = Tensor([[1.0, 2.0], [3.0, 4.0]])
a, b, c = x
