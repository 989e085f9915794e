# fault: full without a value
# raises: TypeError
# at: x = ops.full((2, 3))
# says: full | fill_value
# modes: eager
from duograph import ops

x = ops.full((2, 3))
