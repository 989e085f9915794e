# fault: an unknown func_type
# raises: ValueError
# at: op = ops.Custom(lambda x: x, lambda x: x, lambda x: x, func_type="fast")
# says: fast | pyfunc
# modes: eager
from duograph import ops

op = ops.Custom(lambda x: x, lambda x: x, lambda x: x, func_type="fast")
