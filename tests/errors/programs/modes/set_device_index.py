# fault: a device number that does not exist
# raises: ValueError/RuntimeError
# at: x = ops.ones((2, 3)) + 1
# says: 7 | CPU
# modes: eager
import duograph as ms
from duograph import ops

ms.set_device("CPU", 7)
x = ops.ones((2, 3)) + 1
