# fault: the rank asked before init
# raises: RuntimeError/ValueError
# at: print(get_rank())
# says: init
# modes: eager
from duograph.communication import get_rank

print(get_rank())
