# fault: an unknown setting
# raises: ValueError/TypeError
# at: ms.set_context(precision="high")
# says: precision
# modes: eager
import duograph as ms

ms.set_context(precision="high")
