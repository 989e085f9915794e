# fault: x.size() as a method
# raises: TypeError
# at: batch = x.size(0)
# says: int | shape
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
batch = x.size(0)
