# fault: a number as the name
# raises: TypeError/ValueError
# at: w = Parameter(ops.ones((3,)), name=3)
# says: name | 3
# modes: eager
from duograph import Parameter, ops

w = Parameter(ops.ones((3,)), name=3)
