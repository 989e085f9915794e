# fault: x.max unpacked like PyTorch's
# raises: ValueError/TypeError
# at: values, indices = x.max(1)
# says: unpack
# modes: eager
from duograph import ops

x = ops.ones((5, 3))
values, indices = x.max(1)
