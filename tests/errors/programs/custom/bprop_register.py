# fault: a gradient rule for an op that does not exist
# raises: ValueError/TypeError/KeyError
# at: @bprop_getters.register("my_op")
# says: my_op
# modes: eager
from duograph.ops import bprop_getters


@bprop_getters.register("my_op")
def rule(self):
    return None
