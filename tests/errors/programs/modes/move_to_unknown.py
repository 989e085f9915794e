# fault: move_to of an unknown device
# raises: ValueError/RuntimeError
# at: y = x.move_to("cuda")
# says: cuda
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = x.move_to("cuda")
