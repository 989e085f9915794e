# fault: del of a row
# raises: TypeError
# at: del x[0]
# says: del
# modes: eager
from duograph import ops

x = ops.ones((6,))
del x[0]
