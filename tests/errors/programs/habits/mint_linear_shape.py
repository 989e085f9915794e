# fault: mint.nn.functional.linear with a weight of the transposed shape
# raises: ValueError
# at: y = mint.nn.functional.linear(x, ops.ones((3, 4)))
# says: (2, 3) | (3, 4)
# modes: eager
from duograph import mint, ops

x = ops.ones((2, 3))
y = mint.nn.functional.linear(x, ops.ones((3, 4)))
