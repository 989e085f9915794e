# fault: AllReduce with an unknown reduction
# raises: ValueError/KeyError/TypeError
# at: reduce = ops.AllReduce("average")
# says: average
# modes: eager
from duograph import ops

reduce = ops.AllReduce("average")
