# fault: the method unsqueeze at a position that does not exist
# raises: ValueError
# at: y = x.unsqueeze(dim=4)
# says: unsqueeze: | dim | 4
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = x.unsqueeze(dim=4)
