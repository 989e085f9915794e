"""Builders of pooling, and of random bits."""

from duograph.dtype import float32

from ._native import lib
from .kernels import call, kernel, plan, product


def _pooling(
    name,
    function,
    types,
    results,
    x,
    y,
    kernel_size,
    stride,
    padding,
    dilation,
    include_pad=True,
    divisor=None,
):
    """x, y: the types of the input and the output of the pooling, whichever of them is computed."""
    spatial = len(x.shape) - 2
    if x.dtype.kind != "f" or not 1 <= spatial <= 3:
        return None
    constants = _windows(
        x.shape[2:],
        y.shape[2:],
        kernel_size,
        stride,
        padding,
        dilation,
        type=x.dtype.index,
        planes=product(x.shape[:2]),
        include_pad=include_pad,
        divisor=divisor or 0,
    )
    return call(name, function, constants, types, results)


def _windows(size, out_size, kernel_size, stride, padding, dilation, **others):
    """The constants of pooling over axes of these sizes."""
    lead = (1,) * (3 - len(size))
    return plan(
        "dg_pooling",
        size=lead + size, kernel=lead + tuple(kernel_size), out_size=lead + out_size,
        stride=lead + tuple(stride), dilation=lead + tuple(dilation),
        pad=(0,) * len(lead) + tuple(low for low, high in padding),
        **others,
    )  # fmt: skip


@kernel("max_pool")
def max_pool(types, results, *, kernel, stride, padding, dilation):
    """Values, and where in the flattened spatial input each was found."""
    return _pooling(
        "max_pool",
        lib.dg_max_pool,
        types,
        results,
        types[0],
        results[0],
        kernel,
        stride,
        padding,
        dilation,
    )


@kernel("max_pool_grad")
def max_pool_grad(types, results, *, input_shape):
    """The gradient goes to the cells that won."""
    y, x = types[0], results[0]
    if x.dtype.kind != "f" or types[1].dtype.name != "int64":
        return None
    constants = plan(
        "dg_pooling",
        type=x.dtype.index, planes=product(x.shape[:2]),
        size=(product(x.shape[2:]), 1, 1), out_size=(product(y.shape[2:]), 1, 1), kernel=(1, 1, 1),
    )  # fmt: skip
    return call("max_pool_grad", lib.dg_max_pool_grad, constants, types, results)


@kernel("avg_pool")
def avg_pool(types, results, *, kernel, stride, padding, count_include_pad, divisor):
    """Means of windows."""
    return _pooling(
        "avg_pool",
        lib.dg_avg_pool,
        types,
        results,
        types[0],
        results[0],
        kernel,
        stride,
        padding,
        (1,) * len(kernel),
        count_include_pad,
        divisor,
    )


def _pooling_last(name, function, types, results, kernel_size, stride, padding, dilation, **others):
    """Pooling of float32 whose channels lie innermost."""
    (x,), (y,) = types, results
    if x.dtype is not float32 or not 1 <= len(x.shape) - 2 <= 3:
        return None
    constants = _windows(
        x.shape[1:-1], y.shape[1:-1], kernel_size, stride, padding, dilation,
        planes=x.shape[0], channels=x.shape[-1], **others,
    )  # fmt: skip
    return call(name, function, constants, types, results)


@kernel("max_pool_channels_last")
def max_pool_channels_last(types, results, *, kernel, stride, padding, dilation):
    """The largest of each window."""
    return _pooling_last(
        "max_pool_channels_last",
        lib.dg_max_pool_last,
        types,
        results,
        kernel,
        stride,
        padding,
        dilation,
    )


@kernel("avg_pool_channels_last")
def avg_pool_channels_last(types, results, *, kernel, stride, padding, count_include_pad, divisor):
    """Means of windows."""
    return _pooling_last(
        "avg_pool_channels_last",
        lib.dg_avg_pool_last,
        types,
        results,
        kernel,
        stride,
        padding,
        (1,) * len(kernel),
        include_pad=count_include_pad,
        divisor=divisor,
    )


@kernel("avg_pool_grad")
def avg_pool_grad(
    types, results, *, input_shape, kernel, stride, padding, count_include_pad, divisor
):
    """Each gradient is shared among the cells of its window."""
    return _pooling(
        "avg_pool_grad",
        lib.dg_avg_pool_grad,
        types,
        results,
        results[0],
        types[0],
        kernel,
        stride,
        padding,
        (1,) * len(kernel),
        count_include_pad,
        divisor,
    )


@kernel("random_bits")
def random_bits(types, results, *, shape):
    """Philox words for a state (key, offset)."""
    return call(
        "random_bits", lib.dg_random_bits, plan("dg_bits", n=results[0].size), types, results
    )
