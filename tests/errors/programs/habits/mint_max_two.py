# fault: mint.max unpacked without dim
# raises: ValueError/TypeError
# at: values, indices = mint.max(x)
# says: 0-d
# modes: eager
from duograph import mint, ops

x = ops.ones((2, 3))
values, indices = mint.max(x)
