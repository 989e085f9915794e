# fault: a custom op called with too few Tensors
# raises: TypeError/ValueError/RuntimeError
# at: z = op(ops.ones((2, 3)))
# says: argument
# modes: eager
from duograph import ops


def add(x, y):
    return x + y


op = ops.Custom(add, lambda x, y: x, lambda x, y: x, func_type="pyfunc")
z = op(ops.ones((2, 3)))
print(z.asnumpy())
