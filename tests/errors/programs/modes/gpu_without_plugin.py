# fault: the GPU on a machine without one
# raises: ValueError/RuntimeError
# at: ms.set_context(device_target="GPU")
# says: GPU | CPU
# modes: eager
import duograph as ms

ms.set_context(device_target="GPU")
