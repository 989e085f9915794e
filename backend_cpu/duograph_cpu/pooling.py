"""Builders of pooling, and of random bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duograph.dtype import float32

from ._native import lib
from .kernels import call, kernel, plan, product

if TYPE_CHECKING:
    from duograph.backend.protocol import Call
    from duograph.types import Shape, TensorType

    from ._native import CData, CFunction
    from .kernels import Types


def _pooling(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    x: TensorType,
    y: TensorType,
    kernel_size: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    dilation: Shape,
    include_pad: bool = True,
    divisor: int | None = None,
) -> Call | None:
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


def _windows(
    size: Shape,
    out_size: Shape,
    kernel_size: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    dilation: Shape,
    **others: object,
) -> CData:
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
def max_pool(
    types: Types,
    results: Types,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    dilation: Shape,
) -> Call | None:
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
def max_pool_grad(types: Types, results: Types, *, input_shape: Shape) -> Call | None:
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
def avg_pool(
    types: Types,
    results: Types,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int | None,
) -> Call | None:
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


def _pooling_last(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    kernel_size: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    dilation: Shape,
    **others: object,
) -> Call | None:
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
def max_pool_channels_last(
    types: Types,
    results: Types,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    dilation: Shape,
) -> Call | None:
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
def avg_pool_channels_last(
    types: Types,
    results: Types,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int | None,
) -> Call | None:
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
    types: Types,
    results: Types,
    *,
    input_shape: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int | None,
) -> Call | None:
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
def random_bits(types: Types, results: Types, *, shape: Shape) -> Call | None:
    """Philox words for a state (key, offset)."""
    return call(
        "random_bits", lib.dg_random_bits, plan("dg_bits", n=results[0].size), types, results
    )
