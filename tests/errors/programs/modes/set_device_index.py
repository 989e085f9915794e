# fault: a device number that does not exist
# raises: ValueError/RuntimeError
# at: ms.set_device("CPU", 7)
# says: 7 | CPU
# modes: eager
import duograph as ms

ms.set_device("CPU", 7)
