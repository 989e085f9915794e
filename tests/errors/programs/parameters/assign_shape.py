# fault: ops.assign with another shape
# raises: ValueError
# at: ops.assign(w, ops.ones((3,)))
# says: (2, 2) | (3,)
# modes: eager
from duograph import Parameter, ops

w = Parameter(ops.ones((2, 2)), name="w")
ops.assign(w, ops.ones((3,)))
