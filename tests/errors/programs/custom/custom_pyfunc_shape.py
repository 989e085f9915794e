# fault: a pyfunc whose result has not the declared shape
# raises: ValueError/RuntimeError/TypeError
# at: y = op(ops.ones((2, 3)))
# says: (2, 3) | (2,) | custom_pyfunc_shape.py:9 | custom_pyfunc_shape.py:13
# modes: eager
from duograph import ops


def total(x):
    return x.sum(axis=1)


op = ops.Custom(total, out_shape=lambda s: s, out_dtype=lambda d: d, func_type="pyfunc")
y = op(ops.ones((2, 3)))
print(y.asnumpy())
