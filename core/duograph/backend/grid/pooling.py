"""Pooling kernels for GPU-style devices: max and average pooling and their gradients.

They support 1 to 3 spatial axes, and channels as axis 1 or, on GPUs, as the last axis. Each result
element is computed from its window of the input, each
element of a gradient from the windows that contain it. On a CPU, max_pool's gradient is instead
accumulated window by window. `GridBackend` finds the builders in the kernel table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dtype import DType, int64
from ...types import TensorType
from .along_axis import Lines
from .device import GridDevice, Plan
from .kernel_writer import added, element
from .movement import each_launch, fill_launch
from .pooling_windows import Covering, Windows, stored
from .table import Types, kernel

__all__: list[str] = []


def _real(dtype: DType) -> bool:
    """Return whether elements of a dtype can be ordered: True unless the dtype is complex."""
    return not dtype.is_complex


@kernel("max_pool")
def max_pool(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
) -> Plan | None:
    """Return the launch plan of max pooling: each window's maximum, and its offset in the image.

    Returns None for complex elements, or for more than 3 spatial axes.
    """
    return _max_pool(device, types, results, False, kernel, stride, padding, dilation)


@kernel("max_pool_channels_last", "max_pool_indices_channels_last")
def max_pool_channels_last(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
) -> Plan | None:
    """Return the launch plan of max pooling with channels last, with or without the indices.

    Returns None on a CPU, for complex elements, or for more than 3 spatial axes.
    """
    if device.serial:
        return None
    return _max_pool(device, types, results, True, kernel, stride, padding, dilation)


def _max_pool(
    device: GridDevice,
    types: Types,
    results: Types,
    last: bool,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
) -> Plan | None:
    """Return the launch plan of max pooling; a second result receives the indices of the maxima.

    `last` says whether the channels are the last axis; the other arguments are those of a builder.
    """
    (x,), out = types, results[0]
    if not _real(x.dtype) or len(x.shape) > 5:
        return None
    w = Windows(device, "max_pool", x, out, last)
    k, type_ = w.k, element(x.dtype)
    k.read("x", x.dtype, 0)
    k.write("values", x.dtype, 1)
    if len(results) > 1:
        k.write("indices", int64, 2)
    w.numbers(window=kernel, stride=stride, low=[low for low, _ in padding], apart=dilation)
    body = [*w.place(), "ix found = -1;", f"{type_} best = 0;"]
    for a in w.axes:
        body.append(f"for (ix t{a} = 0; t{a} < window{a}; t{a}++) {{")
        body.append(f"const ix x{a} = o{a} * stride{a} - low{a} + t{a} * apart{a};")
        body.append(f"if (x{a} < 0 || x{a} >= size{a}) continue;")
    body += [
        f"const ix at = {w.flat([f'x{a}' for a in w.axes])};",
        f"const {type_} v = ({type_}){device.dialect.load(x.dtype, w.element('x', 'at'))};",
        "if (found < 0 || (!(v <= best) && best == best)) { best = v; found = at; }",
        "}" * len(w.axes),
        *(["indices[i] = found;"] if len(results) > 1 else []),
        f"values[i] = found < 0 ? 0 : {w.element('x', 'found')};",
    ]
    return Plan((each_launch(device, k, out.size, _block(body), independent=False),))


def _block(lines: Sequence[str]) -> str:
    """Return the source of a C block in braces around some lines."""
    return "{\n        " + "\n        ".join(lines) + "\n    }"


def _mean(dtype: DType, count: str) -> tuple[str, str]:
    """Return (C type of a window's sum `total`, C expression of `total` divided by `count`)."""
    acc = element(dtype)
    if dtype.is_integer:
        return "f64", f"total / (f64)({count})"
    return acc, f"total / ({acc})({count})"


def _counted(
    w: Windows,
    kernel: Sequence[int],
    padding: Sequence[tuple[int, int]],
    include: bool,
    divisor: int,
) -> str:
    """Return the C expression of the divisor of average pooling, the number of averaged elements.

    It names a kernel parameter if the divisor is the same for all windows, otherwise the variable
    `cells`, which `_cells` defines. `include` says whether padding counts; `divisor`, if not 0, is
    a divisor that the user has chosen.
    """
    if divisor or include or not any(p for pair in padding for p in pair):
        return w.k.number("divisor", divisor or math.prod(kernel))
    return "cells"


def _cells(axes: Sequence[int], size: str, place: str) -> list[str]:
    """Return C lines that define `cells`, the number of a window's elements outside the padding.

    `size` and `place` are prefixes: ``size0`` ... are the C names of the input's sizes, ``place0``
    ... those of the window's position.
    """
    lines = ["ix cells = 1;"]
    for a in axes:
        lines += [
            f"{{ const ix first = {place}{a} * stride{a} - low{a}, last = first + window{a};",
            f"const ix inside = (last < {size}{a} ? last : {size}{a}) - (first > 0 ? first : 0);",
            "cells *= inside > 1 ? inside : 1; }",
        ]
    return lines


@kernel("avg_pool")
def avg_pool(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int,
) -> Plan | None:
    """Return the launch plan of average pooling.

    Returns None for elements that are not floats, or for more than 3 spatial axes.
    """
    window = (kernel, stride, padding, count_include_pad, divisor)
    return _avg_pool(device, types, results, False, *window)


@kernel("avg_pool_channels_last")
def avg_pool_channels_last(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int,
) -> Plan | None:
    """Return the launch plan of average pooling with channels last.

    Returns None on a CPU, for elements that are not floats, or for more than 3 spatial axes.
    """
    if device.serial:
        return None
    window = (kernel, stride, padding, count_include_pad, divisor)
    return _avg_pool(device, types, results, True, *window)


def _avg_pool(
    device: GridDevice,
    types: Types,
    results: Types,
    last: bool,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int,
) -> Plan | None:
    """Return the launch plan of average pooling.

    `last` says whether the channels are the last axis; the other arguments are those of a builder.
    """
    (x,), (out,) = types, results
    if not x.dtype.is_floating or len(x.shape) > 5:
        return None
    w = Windows(device, "avg_pool", x, out, last)
    k = w.k
    k.read("x", x.dtype, 0)
    k.write("out", x.dtype, 1)
    w.numbers(window=kernel, stride=stride, low=[low for low, _ in padding])
    count = _counted(w, kernel, padding, count_include_pad, divisor)
    acc, mean = _mean(x.dtype, count)
    body = [*w.place(), f"{acc} total = 0;"]
    if count == "cells":
        body += _cells(w.axes, "size", "o")
    for a in w.axes:
        body.append(f"for (ix t{a} = 0; t{a} < window{a}; t{a}++) {{")
        body.append(f"const ix x{a} = o{a} * stride{a} - low{a} + t{a};")
        body.append(f"if (x{a} < 0 || x{a} >= size{a}) continue;")
    place = w.flat([f"x{a}" for a in w.axes])
    body += [
        f"total += {device.dialect.load(x.dtype, w.element('x', place))};",
        "}" * len(w.axes),
        f"out[i] = {stored(device, x.dtype, mean)};",
    ]
    return Plan((each_launch(device, k, out.size, _block(body), independent=False),))


@kernel("avg_pool_grad")
def avg_pool_grad(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    input_shape: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int,
) -> Plan | None:
    """Return the launch plan of average pooling's gradient.

    Each input element's gradient is the sum over the windows that contain it. Returns None for
    elements that are not floats, or for more than 3 spatial axes.
    """
    window = (kernel, stride, padding, count_include_pad, divisor)
    return _avg_pool_grad(device, types, results, False, *window)


@kernel("avg_pool_grad_channels_last")
def avg_pool_grad_channels_last(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    input_shape: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int,
) -> Plan | None:
    """Return the launch plan of average pooling's gradient with channels last.

    Returns None on a CPU, for elements that are not floats, or for more than 3 spatial axes.
    """
    if device.serial:
        return None
    window = (kernel, stride, padding, count_include_pad, divisor)
    return _avg_pool_grad(device, types, results, True, *window)


def _avg_pool_grad(
    device: GridDevice,
    types: Types,
    results: Types,
    last: bool,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    count_include_pad: bool,
    divisor: int,
) -> Plan | None:
    """Return the launch plan of average pooling's gradient.

    `last` says whether the channels are the last axis; the other arguments are those of a builder.
    """
    (dout,), (out,) = types, results
    if not dout.dtype.is_floating or len(out.shape) > 5:
        return None
    one = (1,) * len(kernel)
    if not device.serial:
        by = Covering(device, "avg_pool_grad", dout, out, (kernel, stride, padding, one), last)
        count = _counted(by, kernel, padding, count_include_pad, divisor)
        cells = _cells(by.axes, "to", "x") if count == "cells" else []
        acc, _ = _mean(dout.dtype, count)
        share = f"total += {device.dialect.load(dout.dtype, 'dout[from]')} / ({acc})({count});"
        return Plan((by.launch(f"{acc} total = 0;", [*cells, share], dout.dtype),))
    w = Windows(device, "avg_pool_grad", dout, out, last)
    k = w.k
    k.read("dout", dout.dtype, 0)
    k.write("out", dout.dtype, 1)
    w.numbers(window=kernel, stride=stride, low=[low for low, _ in padding])
    count = _counted(w, kernel, padding, count_include_pad, divisor)
    acc, _ = _mean(dout.dtype, count)
    body = [*w.place(), f"{acc} total = 0;"]
    for a in w.axes:
        body.append(f"for (ix t{a} = 0; t{a} < window{a}; t{a}++) {{")
        body.append(f"const ix far{a} = o{a} + low{a} - t{a}, x{a} = far{a} / stride{a};")
        body.append(f"if (far{a} < 0 || x{a} * stride{a} != far{a} || x{a} >= size{a}) continue;")
    if count == "cells":
        body += _cells(w.axes, "to", "x")
    place = w.flat([f"x{a}" for a in w.axes])
    body += [
        f"total += {device.dialect.load(dout.dtype, f'dout[base + {place}]')} / ({acc})({count});",
        "}" * len(w.axes),
        f"out[i] = {stored(device, dout.dtype, 'total')};",
    ]
    return Plan((each_launch(device, k, out.size, _block(body), independent=False),))


@kernel("max_pool_grad")
def max_pool_grad(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    input_shape: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
) -> Plan | None:
    """Return the launch plan of max_pool's gradient, which adds cotangents at the maxima.

    The operands are the cotangent and the index of each window's maximum. On a CPU a work item adds
    the cotangents of whole planes (one channel of one image), in order. Returns None for complex
    elements, or for more than 3 spatial axes.
    """
    (dout, indices), (out,) = types, results
    if not _real(dout.dtype) or len(out.shape) > 5:
        return None
    if not device.serial:
        return _covering_maxima(device, types, out, False, (kernel, stride, padding, dilation))
    planes = dout.shape[0] * dout.shape[1]
    flat = (planes, out.size // max(planes, 1))
    lines = Lines(device, "max_pool_grad", flat, 1, max(out.size, dout.size))
    k = lines.k
    k.read("dout", dout.dtype, 0)
    k.read("indices", indices.dtype, 1)
    k.write("out", dout.dtype, 2)
    k.number("chosen", dout.size // max(planes, 1))
    lines.begin()
    k.open("for (ix j = 0; j < chosen; j++)")
    k.line("const ix at = (ix)indices[line * chosen + j];")
    value = added(device, dout.dtype, "out[from + at]", "dout[line * chosen + j]")
    k.line(f"if (at >= 0 && at < n) out[from + at] = {value};")
    k.close()
    return Plan((fill_launch(device, out, 0, 2), lines.end()))


@kernel("max_pool_grad_channels_last")
def max_pool_grad_channels_last(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    input_shape: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
) -> Plan | None:
    """Return the launch plan of max_pool's gradient with channels last.

    Returns None on a CPU, for complex elements, or for more than 3 spatial axes.
    """
    (dout, _), (out,) = types, results
    if device.serial or not _real(dout.dtype) or len(out.shape) > 5:
        return None
    return _covering_maxima(device, types, out, True, (kernel, stride, padding, dilation))


def _covering_maxima(
    device: GridDevice,
    types: Types,
    out: TensorType,
    last: bool,
    window: tuple[Sequence[int], Sequence[int], Sequence[tuple[int, int]], Sequence[int]],
) -> Plan:
    """Return the launch plan of max_pool's gradient on a GPU.

    `last` says whether the channels are the last axis; `window` has the kernel, stride, padding and
    dilation.
    """
    dout, indices = types
    w = Covering(device, "max_pool_grad", dout, out, window, last, indices.dtype)
    acc = element(dout.dtype)
    value = device.dialect.load(dout.dtype, "dout[from]")
    total = (
        f"total + {value}" if dout.dtype.is_floating else added(device, dout.dtype, "total", value)
    )
    line = f"if (indices[from] == at) total = {total};"
    return Plan((w.launch(f"{acc} total = 0;", [line], dout.dtype),))
