"""CPU kernels of pooling and of random number generation, prepared for given operand types.

`CPU.prepare` finds their builders in the kernel table. The kernels are in native/pooling.c,
pooling_last.c and random.c; nothing here computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from duograph.dtype import float32

from ._native import lib
from .kernels import call, kernel, plan, product

if TYPE_CHECKING:
    from duograph.types import Shape, TensorType

    from ._native import CData, CFunction
    from .kernels import Padding, Types
    from .native_call import NativeCall


class Window(NamedTuple):
    """The kernel size, stride, padding and dilation of a pooling op."""

    kernel: Shape
    stride: Shape
    padding: Padding
    dilation: Shape


def _plan(size: Shape, out_size: Shape, window: Window, **fields: int | None) -> CData:
    """Return the C struct `dg_pooling` with the sizes of a pooling.

    `size` and `out_size` are spatial sizes of input and output; missing axes have size 1.
    """
    lead = (1,) * (3 - len(size))
    return plan(
        "dg_pooling",
        size=lead + size, kernel=lead + tuple(window.kernel), out_size=lead + out_size,
        stride=lead + tuple(window.stride), dilation=lead + tuple(window.dilation),
        pad=(0,) * len(lead) + tuple(low for low, high in window.padding),
        **fields,
    )  # fmt: skip


def _pool(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    x: TensorType,
    y: TensorType,
    window: Window,
    include_pad: bool = True,
    divisor: int | None = None,
) -> NativeCall | None:
    """Return a prepared call of a channels-first CPU pooling kernel or its gradient.

    x and y are the types of the forward op's input and output. `include_pad` and `divisor` are
    those of average pooling (see `avg_pool`). Returns None unless the dtype is floating-point and
    there are 1 to 3 spatial axes.
    """
    if x.dtype.kind != "f" or not 1 <= len(x.shape) - 2 <= 3:
        return None
    constants = _plan(
        x.shape[2:], y.shape[2:], window,
        type=x.dtype.index, planes=product(x.shape[:2]), include_pad=include_pad,
        divisor=divisor or 0,
    )  # fmt: skip
    return call(name, function, constants, types, results)


def _pool_channels_last(
    name: str,
    function: CFunction,
    types: Types,
    results: Types,
    window: Window,
    **fields: int | None,
) -> NativeCall | None:
    """Return a prepared call of channels-last CPU pooling.

    `fields` are further fields of the C struct `dg_pooling`. Returns None unless the dtype is
    float32 and there are 1 to 3 spatial axes.
    """
    (x,), (y,) = types, results
    if x.dtype is not float32 or not 1 <= len(x.shape) - 2 <= 3:
        return None
    constants = _plan(
        x.shape[1:-1], y.shape[1:-1], window,
        planes=x.shape[0], channels=x.shape[-1], **fields,
    )  # fmt: skip
    return call(name, function, constants, types, results)


@kernel("max_pool")
def max_pool(
    types: Types, results: Types, *, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of channels-first max pooling.

    Its second result is the index of each maximum in the flattened spatial input. Returns None
    unless the dtype is floating-point and there are 1 to 3 spatial axes.
    """
    window = Window(kernel, stride, padding, dilation)
    return _pool("max_pool", lib.dg_max_pool, types, results, types[0], results[0], window)


@kernel("max_pool_grad")
def max_pool_grad(
    types: Types,
    results: Types,
    *,
    input_shape: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Padding,
    dilation: Shape,
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of channels-first max pooling's gradient.

    The kernel adds each output gradient to the input element that was the maximum. Returns None
    unless the dtype is floating-point and the indices of the maxima are int64.
    """
    y, x = types[0], results[0]
    if x.dtype.kind != "f" or types[1].dtype.name != "int64":
        return None
    constants = plan(
        "dg_pooling",
        type=x.dtype.index, planes=product(x.shape[:2]),
        size=(product(x.shape[2:]), 1, 1), out_size=(product(y.shape[2:]), 1, 1), kernel=(1, 1, 1),
    )  # fmt: skip
    return call("max_pool_grad", lib.dg_max_pool_grad, constants, types, results)


def _average(kernel: Shape, stride: Shape, padding: Padding) -> Window:
    return Window(kernel, stride, padding, (1,) * len(kernel))


@kernel("avg_pool")
def avg_pool(
    types: Types,
    results: Types,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Padding,
    count_include_pad: bool,
    divisor: int | None,
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of channels-first average pooling.

    A window's sum is divided by `divisor` or, for None, by its number of elements, which includes
    padding with `count_include_pad`. Returns None unless the dtype is floating-point and there are
    1 to 3 spatial axes.
    """
    x, y, window = types[0], results[0], _average(kernel, stride, padding)
    name, function = "avg_pool", lib.dg_avg_pool
    return _pool(name, function, types, results, x, y, window, count_include_pad, divisor)


@kernel("avg_pool_grad")
def avg_pool_grad(
    types: Types,
    results: Types,
    *,
    input_shape: Shape,
    kernel: Shape,
    stride: Shape,
    padding: Padding,
    count_include_pad: bool,
    divisor: int | None,
) -> NativeCall | None:
    """Return a prepared call of the CPU kernel of channels-first average pooling's gradient.

    The kernel distributes each output gradient evenly over the input elements of its window,
    divided as in `avg_pool`. Returns None unless the dtype is floating-point and there are 1 to 3
    spatial axes.
    """
    x, y, window = results[0], types[0], _average(kernel, stride, padding)
    name, function = "avg_pool_grad", lib.dg_avg_pool_grad
    return _pool(name, function, types, results, x, y, window, count_include_pad, divisor)


@kernel("max_pool_channels_last")
def max_pool_channels_last(
    types: Types, results: Types, *, kernel: Shape, stride: Shape, padding: Padding, dilation: Shape
) -> NativeCall | None:
    """Return a prepared call of channels-last max pooling.

    Returns None unless the dtype is float32 and there are 1 to 3 spatial axes.
    """
    window = Window(kernel, stride, padding, dilation)
    name, function = "max_pool_channels_last", lib.dg_max_pool_last
    return _pool_channels_last(name, function, types, results, window)


@kernel("avg_pool_channels_last")
def avg_pool_channels_last(
    types: Types,
    results: Types,
    *,
    kernel: Shape,
    stride: Shape,
    padding: Padding,
    count_include_pad: bool,
    divisor: int | None,
) -> NativeCall | None:
    """Return a prepared call of channels-last average pooling.

    `count_include_pad` and `divisor` are as in `avg_pool`. Returns None unless the dtype is float32
    and there are 1 to 3 spatial axes.
    """
    return _pool_channels_last(
        "avg_pool_channels_last", lib.dg_avg_pool_last, types, results,
        _average(kernel, stride, padding), include_pad=count_include_pad, divisor=divisor,
    )  # fmt: skip


@kernel("random_bits")
def random_bits(types: Types, results: Types, *, shape: Sequence[int]) -> NativeCall:
    """Return the prepared call that generates random uint32 words with the generator Philox.

    The operand is the generator's state: a key and an offset.
    """
    constants = plan("dg_bits", n=results[0].size)
    return call("random_bits", lib.dg_random_bits, constants, types, results)
