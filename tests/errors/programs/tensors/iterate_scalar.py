# fault: a loop over a 0-d Tensor
# raises: TypeError
# at: for value in loss:
# says: 0-d | float(
# modes: eager
from duograph import ops

loss = ops.ones((3,)).sum()
for value in loss:
    print(value)
