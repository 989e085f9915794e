# fault: an index into a 0-d Tensor
# raises: IndexError
# at: print(loss[0])
# says: 0
# modes: eager
from duograph import ops

loss = ops.ones((3,)).sum()
print(loss[0])
