# fault: a device that does not exist
# raises: ValueError/RuntimeError
# at: ms.set_context(device_target="TPU")
# says: TPU | CPU
# modes: eager
import duograph as ms

ms.set_context(device_target="TPU")
