# fault: a setting asked for that does not exist
# raises: ValueError
# at: print(ms.get_context("device"))
# says: device
# modes: eager
import duograph as ms

print(ms.get_context("device"))
