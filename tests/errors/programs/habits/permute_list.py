# fault: PyTorch's permute given names
# raises: TypeError/ValueError
# at: y = x.permute("b", "c")
# says: permute | int
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = x.permute("b", "c")
