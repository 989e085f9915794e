# fault: set_data with another shape
# raises: ValueError
# at: w.set_data(ops.ones((4,)))
# says: (3,) | (4,)
# modes: eager
from duograph import Parameter, ops

w = Parameter(ops.ones((3,)), name="w")
w.set_data(ops.ones((4,)))
