# fault: a collective of a group that was not created
# raises: RuntimeError/ValueError
# at: print(get_group_size("my_group"))
# says: my_group
# modes: eager
from duograph.communication import get_group_size, init

init()
print(get_group_size("my_group"))
