# fault: requires_grad as a word
# raises: TypeError
# at: w = Parameter(ops.ones((3,)), requires_grad="no")
# says: requires_grad | no
# modes: eager
from duograph import Parameter, ops

w = Parameter(ops.ones((3,)), requires_grad="no")
