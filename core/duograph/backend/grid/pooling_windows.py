"""Writers of pooling kernels for GPU-style devices: loops over windows of the input.

The kernel builders in `pooling.py` use them. `Windows` runs statements for each element of the
result, `Covering` for each window that covers an element of the input. The module must not decide
what is pooled: the statements come from the builder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dtype import DType, bfloat16, float16, int32
from ...types import TensorType
from ..codegen.dialect import SUFFIX
from .device import GridDevice, Launch
from .kernel_writer import Kernel, ceil_div

__all__ = ["Covering", "Windows", "stored"]

# Groups of work items for each compute unit, where an item computes an element of several planes.
GROUPS = 64


def _layout(type_: TensorType, last: bool) -> tuple[int, int, tuple[int, ...]]:
    """Return (number of images, number of channels, spatial sizes) of a tensor of images.

    `last` says whether the channels are the last axis.
    """
    n, *others = type_.shape
    if last:
        return n, others[-1], tuple(others[:-1])
    return n, others[0], tuple(others[1:])


class Windows:
    """Writes a pooling kernel: a loop over the results, and in it one over each window's elements.

    Windows have 1 to 3 spatial axes. `source` and `out` are the types of the tensor that is read
    and of the result; `last` says whether their channels are the last axis.
    """

    def __init__(
        self, device: GridDevice, name: str, source: TensorType, out: TensorType, last: bool
    ) -> None:
        self.device, self.last = device, last
        self.k = Kernel(device, name, max(source.size, out.size))
        _, self.channels, self.sizes = _layout(source, last)
        _, _, self.out = _layout(out, last)
        self.axes = range(len(self.sizes))
        self.total = out.size

    def numbers(self, **given: Sequence[int]) -> None:
        """Declare kernel arguments: sizes ``size0`` ... of the source, ``to0`` ... of the result.

        Each keyword, such as ``stride=(2, 2)``, declares further arguments (``stride0``,
        ``stride1``).
        """
        self.k.number("n", self.total)
        if self.last:
            self.k.number("channels", self.channels)
        for name, values in (("size", self.sizes), ("to", self.out), *given.items()):
            self.k.numbers(name, values)

    def place(self) -> list[str]:
        """Return the C lines that define the position of result element i in its image.

        They define the variables ``o0``, ``o1`` ... (the position) and ``base`` (the offset of the
        first element of the element's channel in the source image).
        """
        found, rest = [], "i"
        if self.last:
            found, rest = ["const ix line = i / channels, c = i - line * channels;"], "line"
        for a in reversed(self.axes):
            found += [f"const ix q{a} = {rest} / to{a};", f"const ix o{a} = {rest} - q{a} * to{a};"]
            rest = f"q{a}"
        planes = " * ".join(f"size{a}" for a in self.axes)
        base = f"{rest} * ({planes})"
        return [
            *found,
            f"const ix base = {base} * channels + c;" if self.last else f"const ix base = {base};",
        ]

    def element(self, buffer: str, place: str) -> str:
        """Return the C expression of the element of `buffer` at offset `place` in its channel."""
        return (
            f"{buffer}[base + ({place}) * channels]" if self.last else f"{buffer}[base + {place}]"
        )

    def flat(self, names: Sequence[str]) -> str:
        """Return the C expression for an element's offset in its image (one channel).

        `names` are the C variables that hold the element's position, one for each spatial axis.
        """
        text = names[0]
        for a in self.axes[1:]:
            text = f"({text} * size{a} + {names[a]})"
        return text


class Covering(Windows):
    """Writes the kernel of a pooling gradient on a GPU: one work item per element of the input.

    A work item sums over the windows that cover its element, in order, in several planes one after
    the other. A plane is a channel of an image, or with channels last a whole image. The sizes of
    the window are constants in the source, so that compilers replace the divisions and unroll the
    loops.

    In the kernel, ``o0``, ``o1`` ... are the element's position, `at` its offset among the elements
    of one channel, ``x0``, ``x1`` ... the position of a window and `from` its offset in `dout`.
    """

    def __init__(
        self,
        device: GridDevice,
        name: str,
        dout: TensorType,
        out: TensorType,
        window: tuple[Sequence[int], Sequence[int], Sequence[tuple[int, int]], Sequence[int]],
        last: bool,
        indices: DType | None = None,
    ) -> None:
        super().__init__(device, name, dout, out, last)
        self.window = window
        # a work item computes one element, of one channel or of all, in several planes
        images, channels, _ = _layout(out, last)
        self.planes, self.together = (images, channels) if last else (images * channels, 1)
        # unsigned divisions are faster
        self.counter = "u32" if self.k.index is int32 else "u64"
        self.k.read("dout", dout.dtype, 0)
        if indices is not None:
            self.k.read("indices", indices, 1)
        self.k.write("out", dout.dtype, 1 if indices is None else 2)

    def _bounds(self, a: int, most: int) -> list[str]:
        """Return C lines that compute which windows along axis `a` may cover an element.

        With A standing for the number of the axis, they define the first and last such window,
        ``firstA`` and ``lastA``, and ``mostA``, the greatest number of such windows, which is
        `most`.
        """
        return [
            f"const {self.counter} near{a} = ({self.counter})(o{a} + low{a});",
            f"const ix last{a} = (ix)(near{a} / stride{a});",
            f"const ix first{a} = near{a} > span{a} ? (ix)((near{a} - span{a} + stride{a} - 1) "
            f"/ stride{a}) : 0;",
            f"enum {{ most{a} = {most} }};",
        ]

    def launch(self, start: str, lines: Sequence[str], dtype: DType) -> Launch:
        """Return the launch that sums over the windows of each input element.

        `start` is the C line that defines the variable `total`; `lines` are those that add the
        contribution of one window to it.
        """
        k, (kernel, stride, padding, dilation) = self.k, self.window
        planes, cells = self.planes, math.prod(self.out) * self.together
        k.number("planes", planes)
        k.number("cells", cells)
        if self.last:
            k.number("channels", self.channels)
        k.number("windows", math.prod(self.sizes))
        k.numbers("size", self.sizes)
        k.numbers("to", self.out)
        for a in self.axes:
            k.line(
                f"enum {{ window{a} = {kernel[a]}, stride{a} = {stride[a]}, "
                f"low{a} = {padding[a][0]}, apart{a} = {dilation[a]}, "
                f"span{a} = {(kernel[a] - 1) * dilation[a]} }};"
            )
        k.line("const ix item = (ix)DG_ITEM(0);", "if (item >= cells) return;")
        if self.last:
            k.line(
                f"const ix at = (ix)(({self.counter})item / ({self.counter})channels);",
                "const ix c = item - at * channels;",
            )
        else:
            k.line("const ix at = item;")
        rest = "at"
        for a in reversed(self.axes[1:]):
            k.line(
                f"const ix q{a} = (ix)(({self.counter}){rest} / ({self.counter})to{a}), "
                f"o{a} = {rest} - q{a} * to{a};"
            )
            rest = f"q{a}"
        k.line(f"const ix o0 = {rest};")
        for a in self.axes:
            k.line(*self._bounds(a, (kernel[a] - 1) * dilation[a] // stride[a] + 1))
        k.open("for (ix plane = (ix)DG_GROUP(1); plane < planes; plane += (ix)DG_GROUPS(1))")
        k.line(start)
        for a in self.axes:
            k.open(f"for (i32 r{a} = 0; r{a} < most{a}; r{a}++)")
            k.line(f"const ix x{a} = first{a} + r{a};")
            k.line(f"if (x{a} > last{a} || x{a} >= size{a}) continue;")
            if dilation[a] > 1:
                k.line(f"if ((near{a} - ({self.counter})(x{a} * stride{a})) % apart{a}) continue;")
        place = f"plane * windows + {self.flat([f'x{a}' for a in self.axes])}"
        k.line(f"const ix from = {f'({place}) * channels + c' if self.last else place};")
        k.line(*lines)
        for _ in self.axes:
            k.close()
        k.line(f"out[plane * cells + item] = {stored(self.device, dtype, 'total')};")
        k.close()
        size = min(self.device.group, 256)
        groups = ceil_div(cells, size)
        each = max(1, min(planes, 65535, ceil_div(GROUPS * self.device.units, max(1, groups))))
        return k.launch(groups, each if cells else 0, size=(size,))


def stored(device: GridDevice, dtype: DType, text: str) -> str:
    """Return the C expression that rounds the value `text` to the stored dtype."""
    if dtype in (float16, bfloat16):
        return device.dialect.store(dtype, text)
    return f"({SUFFIX[dtype]})({text})"
