# fault: concat along an axis that does not exist
# raises: ValueError
# at: c = ops.cat([a, a], axis=2)
# says: axis | 2
# modes: eager
from duograph import ops

a = ops.ones((2, 3))
c = ops.cat([a, a], axis=2)
