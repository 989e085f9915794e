# fault: Ascend, as in all tutorials, on a machine without one
# raises: ValueError/RuntimeError
# at: x = ops.ones((2, 3)) + 1
# says: Ascend | CPU
# modes: eager
import duograph as ms
from duograph import ops

ms.set_device("Ascend")
x = ops.ones((2, 3)) + 1
