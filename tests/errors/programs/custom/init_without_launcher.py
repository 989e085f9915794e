# fault: init() with an unknown backend
# raises: ValueError/RuntimeError/TypeError
# at: init("nccl2")
# says: nccl2
# modes: eager
from duograph.communication import init

init("nccl2")
