# fault: a negative size in a shape
# raises: ValueError
# at: x = ops.zeros((3, -2), ms.float32)
# says: -2
# modes: eager
import duograph as ms
from duograph import ops

x = ops.zeros((3, -2), ms.float32)
