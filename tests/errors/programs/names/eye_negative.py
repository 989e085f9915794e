# fault: a negative number of rows
# raises: ValueError
# at: x = ops.eye(-2, 3)
# says: eye: | -2
# modes: eager
from duograph import ops

x = ops.eye(-2, 3)
