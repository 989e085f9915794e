# fault: a memory limit without its unit
# raises: ValueError/TypeError
# at: ms.set_context(max_device_memory=4)
# says: max_device_memory | GB
# modes: eager
import duograph as ms

ms.set_context(max_device_memory=4)
