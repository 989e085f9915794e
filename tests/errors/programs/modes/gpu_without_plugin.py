# fault: the GPU on a machine without one
# raises: ValueError/RuntimeError
# at: x = ops.ones((2, 3)) + 1
# says: GPU | CPU
# modes: eager
import duograph as ms
from duograph import ops

ms.set_context(device_target="GPU")
x = ops.ones((2, 3)) + 1
