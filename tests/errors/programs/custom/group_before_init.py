# fault: AllReduce before init
# raises: RuntimeError/ValueError
# at: total = ops.AllReduce()(ops.ones((3,)))
# says: init
# modes: eager
from duograph import ops

total = ops.AllReduce()(ops.ones((3,)))
