# fault: a setting that is misspelt
# raises: ValueError
# at: ms.set_context(device_traget="CPU")
# says: device_traget | device_target
# modes: eager
import duograph as ms

ms.set_context(device_traget="CPU")
