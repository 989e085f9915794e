# fault: x.shape()
# raises: TypeError
# at: print(x.shape())
# says: shape | tuple
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
print(x.shape())
