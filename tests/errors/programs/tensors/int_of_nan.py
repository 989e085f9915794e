# fault: int() of NaN
# raises: ValueError
# at: steps = int(x)
# says: NaN
# modes: eager
from duograph import Tensor, ops

x = ops.log(Tensor(-1.0))
steps = int(x)
