# fault: dim instead of axis in ops.softmax of PyTorch style
# raises: TypeError
# at: y = ops.softmax(x, dim=1)
# says: dim | axis
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = ops.softmax(x, dim=1)
