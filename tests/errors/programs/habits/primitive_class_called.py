# fault: a primitive's class called with data
# raises: TypeError/ValueError/AttributeError
# at: y = ops.Softmax(x) + 1
# says: Softmax
# modes: eager
from duograph import ops

x = ops.ones((2, 3))
y = ops.Softmax(x) + 1
