# fault: Ascend, as in all tutorials, on a machine without one
# raises: ValueError/RuntimeError
# at: ms.set_device("Ascend")
# says: Ascend | CPU
# modes: eager
import duograph as ms

ms.set_device("Ascend")
