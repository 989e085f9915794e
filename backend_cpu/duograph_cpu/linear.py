"""Builders of matrix products and convolutions."""

from ._native import lib
from .blas import open_blas
from .kernels import call, kernel, plan, product


@kernel("matmul")
def matmul(types, results, *, transpose_a=False, transpose_b=False):
    """Batched products; a batch of rows against one matrix becomes one product."""
    x, y = types
    open_blas()
    m, n = results[0].shape[-2:]
    k = x.shape[-2] if transpose_a else x.shape[-1]
    batch = results[0].shape[:-2]
    ones = len(batch)
    a_shape = (1,) * (ones - len(x.shape) + 2) + x.shape[:-2]
    b_shape = (1,) * (ones - len(y.shape) + 2) + y.shape[:-2]
    if product(b_shape) == 1 and not transpose_a:
        m, batch, a_shape, b_shape = m * product(batch), (), (), ()
    constants = plan(
        "dg_product",
        type=x.dtype.index, ta=bool(transpose_a), tb=bool(transpose_b), m=m, n=n, k=k,
        ndim=len(batch), batches=product(batch), shape=batch,
        a_stride=_strides(a_shape), b_stride=_strides(b_shape),
    )  # fmt: skip
    return call("matmul", lib.dg_matmul, constants, types, results)


def _strides(shape):
    """Strides of batch axes in whole matrices, 0 where an axis is broadcast."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(0 if n == 1 else step)
        step *= n
    return strides[::-1]
