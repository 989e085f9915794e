# fault: concat of an empty list
# raises: ValueError
# at: x = ops.concat(features)
# says: at least one
# modes: eager
from duograph import ops

features = []
x = ops.concat(features)
