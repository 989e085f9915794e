# fault: set_data with a list
# raises: TypeError
# at: w.set_data([1.0, 2.0, 3.0])
# says: list | Tensor
# modes: eager
from duograph import Parameter, ops

w = Parameter(ops.ones((3,)), name="w")
w.set_data([1.0, 2.0, 3.0])
