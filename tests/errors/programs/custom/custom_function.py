# fault: a custom op of a file that does not exist
# raises: TypeError/ValueError/OSError
# at: op = ops.Custom("./no_file.so:Add", lambda x: x, lambda x: x, "aot")
# says: no_file
# modes: eager
from duograph import ops

op = ops.Custom("./no_file.so:Add", lambda x: x, lambda x: x, "aot")
y = op(ops.ones((2, 3)))
