"""Operands of the matmuls that compute convolutions and their gradients on GPU-style devices.

The kernel builders in `convolution.py` make them, and the matmul kernels print their C expressions.
An operand says where in a tensor each matrix element is stored, and which elements are padding. It
must not store the matrix, launch anything or choose how the work is divided.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ...dtype import DType
from .kernel_writer import Kernel
from .matmul_operands import Operand

__all__ = [
    "Contributions", "Geometry", "Results", "TransposedWeights", "Window", "geometry_of",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Geometry:
    """The sizes of a convolution.

    The input has shape (images, groups * channels, *size), the result (images, groups * filters,
    *places). `channels` and `filters` are thus the numbers of input channels and of filters in one
    group. `low` is the padding before the first element of each spatial axis.
    """

    images: int
    groups: int
    channels: int
    filters: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    places: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]

    @property
    def taps(self) -> int:
        """Number of kernel elements (taps) per channel of a convolution."""
        return math.prod(self.kernel)

    @property
    def plain(self) -> bool:
        """Whether the unrolled columns are the input itself: one tap, stride 1 and no padding."""
        return self.picks and self.size == self.places

    @property
    def picks(self) -> bool:
        """Whether the columns are just every stride-th input element: one tap, no padding."""
        lasts = [(n - 1) * step for n, step in zip(self.places, self.stride)]
        inside = all(last < n for last, n in zip(lasts, self.size))
        return self.taps == 1 and not any(self.low) and inside

    @property
    def picked(self) -> Geometry:
        """The same convolution with stride 1, on an input without the skipped elements."""
        return dataclasses.replace(self, size=self.places, stride=(1,) * len(self.stride))

    @property
    def n_places(self) -> int:
        """Number of spatial positions in a convolution's result."""
        return math.prod(self.places)

    @property
    def n_inputs(self) -> int:
        """Number of spatial positions in a convolution's input."""
        return math.prod(self.size)


def geometry_of(
    x: Sequence[int],
    w: Sequence[int],
    y: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Geometry:
    """Return the sizes of a convolution of input shape `x`, weight shape `w` and result shape `y`.

    The other arguments are the attributes of the op `conv`.
    """
    return Geometry(
        x[0], groups, w[1], w[0] // groups, tuple(x[2:]), tuple(w[2:]), tuple(y[2:]), tuple(stride),
        tuple(dilation), tuple(low for low, _ in padding),
    )  # fmt: skip


def _unrolled(at: str, sizes: Sequence[str]) -> list[str]:
    """Return C expressions for the coordinates of flat index `at` along axes of sizes `sizes`."""
    found = []
    rest = at
    for size in reversed(sizes[1:]):
        found.append(f"({rest}) % {size}")
        rest = f"({rest}) / {size}"
    return [rest, *reversed(found)]


def _image_size(label: str, lines: str, places: str) -> str:
    """Return the C expression for the number of elements of one image: a product of three sizes.

    The factors are the kernel parameters ``LABEL_groups``, ``LABEL_LINES`` and ``LABEL_PLACES``,
    where LABEL, LINES and PLACES stand for the arguments. For an input, `lines` is "channels" and
    `places` is "inputs"; for a result, "filters" and "places".
    """
    return f"{label}_groups * {label}_{lines} * {label}_{places}"


def _start_of_part(label: str, depth: str, lines: str, places: str) -> tuple[str, str]:
    """Return a C variable for the offset of the image at a position of the summed axis.

    The summed axis runs through several images; `depth` is the C expression of the position.
    Returns (name of the variable, C expression of its value), which is -1 past the last image. The
    names of the kernel's parameters begin with `label`; `lines` and `places` are their last parts:
    "channels" and "inputs" for an input, "filters" and "places" for a result.
    """
    image = f"({label}_part * {label}_each + ({depth}) / {label}_places)"
    return (
        f"{label}_start",
        f"{image} < {label}_images ? {image} * {_image_size(label, lines, places)} : -1",
    )


def _where(inside: Sequence[str], element: str, dtype: DType) -> str:
    """Return the C expression for `element` if all conditions in `inside` hold, else for 0."""
    zero = "(u16)0" if dtype.itemsize == 2 else "0"
    return f"({' && '.join(inside)} ? {element} : {zero})"


@dataclasses.dataclass(frozen=True)
class Window(Operand):
    """Matmul operand: the unrolled input of a convolution (im2col), whose offsets are computed.

    Attributes:
        transposed: if false, a line (row of the matrix) is a position of the result, and the sum
            runs over channels and taps. If true, a line is a pair of a channel and a tap, and the
            sum runs over the positions of `images_each` images.
        whole: whether a matrix has the lines of all images, numbered consecutively; otherwise each
            matrix has those of one image. Used only if `transposed` is false.
        first: number of the first image, from 0.
    """

    geometry: Geometry
    transposed: bool
    whole: bool
    first: int
    images_each: int

    @property
    def along(self) -> bool:
        return self.transposed

    def numbers(self, k: Kernel, label: str) -> None:
        g = self.geometry
        for name, values in (
            ("size", g.size), ("kernel", g.kernel), ("place", g.places), ("stride", g.stride),
            ("dilation", g.dilation), ("low", g.low),
        ):  # fmt: skip
            k.numbers(f"{label}_{name}", values)
        for name, value in (
            ("inputs", g.n_inputs),
            ("taps", g.taps),
            ("places", g.n_places),
            ("groups", g.groups),
            ("channels", g.channels),
            ("first", self.first),
            ("each", self.images_each),
            ("images", g.images),
        ):
            k.number(f"{label}_{name}", value)

    def _axes(self, label: str, name: str) -> list[str]:
        return [f"{label}_{name}{a}" for a in range(len(self.geometry.size))]

    def _place(self, label: str, at: str) -> list[tuple[str, str]]:
        places = _unrolled(at, self._axes(label, "place"))
        return [
            (f"{label}_base{a}", f"({p}) * {label}_stride{a} - {label}_low{a}")
            for a, p in enumerate(places)
        ]

    def _tap(self, label: str, at: str) -> list[tuple[str, str]]:
        taps = _unrolled(f"({at}) % {label}_taps", self._axes(label, "kernel"))
        return [(f"{label}_channel", f"({at}) / {label}_taps * {label}_inputs")] + [
            (f"{label}_tap{a}", f"({t}) * {label}_dilation{a}") for a, t in enumerate(taps)
        ]

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        if self.transposed:
            return self._tap(label, line)
        if not self.whole:
            return self._place(label, line)
        return [
            (
                f"{label}_start",
                f"({line}) / {label}_places * {_image_size(label, 'channels', 'inputs')}",
            ),
            *self._place(label, f"({line}) % {label}_places"),
        ]

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        if not self.transposed:
            return self._tap(label, depth)
        return [
            _start_of_part(label, depth, "channels", "inputs"),
            *self._place(label, f"({depth}) % {label}_places"),
        ]

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        group = (
            f"{label}_group",
            f"({matrix}) % {label}_groups * {label}_channels * {label}_inputs",
        )
        if self.transposed:
            return [(f"{label}_part", f"({matrix}) / {label}_groups"), group]
        if self.whole:
            return [group]
        image = f"({label}_first + ({matrix}) / {label}_groups)"
        return [(f"{label}_start", f"{image} * {_image_size(label, 'channels', 'inputs')}"), group]

    def element(self, label: str) -> str:
        axes = range(len(self.geometry.size))
        at = [f"({label}_base{a} + {label}_tap{a})" for a in axes]
        inside = [f"{at[a]} >= 0 && {at[a]} < {label}_size{a}" for a in axes]
        if self.transposed:
            inside.append(f"{label}_start >= 0")
        place = at[0]
        for a in axes[1:]:
            place = f"({place} * {label}_size{a} + {at[a]})"
        return _where(
            inside,
            f"{label}[{label}_start + {label}_group + {label}_channel + {place}]",
            self.dtype,
        )


@dataclasses.dataclass(frozen=True)
class Contributions(Operand):
    """Matmul operand of a convolution's input gradient: the cotangents that each pixel sums up.

    A line (row of the matrix) is a position of the input image; the sum runs over filters and taps.
    `whole` says whether a matrix has the lines of all images, numbered consecutively; otherwise
    each matrix has those of one image. `first` is the number of the first image, from 0.
    """

    geometry: Geometry
    whole: bool
    first: int

    def numbers(self, k: Kernel, label: str) -> None:
        g = self.geometry
        for name, values in (
            ("size", g.size), ("kernel", g.kernel), ("place", g.places), ("stride", g.stride),
            ("dilation", g.dilation), ("low", g.low),
        ):  # fmt: skip
            k.numbers(f"{label}_{name}", values)
        for name, value in (
            ("places", g.n_places), ("taps", g.taps), ("filters", g.filters), ("first", self.first),
            ("groups", g.groups), ("inputs", g.n_inputs),
        ):  # fmt: skip
            k.number(f"{label}_{name}", value)

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        axes = range(len(self.geometry.size))
        image = []
        if self.whole:
            image = [
                (
                    f"{label}_image",
                    f"({line}) / {label}_inputs * {_image_size(label, 'filters', 'places')}",
                )
            ]
            line = f"({line}) % {label}_inputs"
        places = _unrolled(line, [f"{label}_size{a}" for a in axes])
        return image + [
            (f"{label}_base{a}", f"({p}) + {label}_low{a}") for a, p in enumerate(places)
        ]

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        axes = range(len(self.geometry.size))
        taps = _unrolled(f"({depth}) % {label}_taps", [f"{label}_kernel{a}" for a in axes])
        return [(f"{label}_filter", f"({depth}) / {label}_taps * {label}_places")] + [
            (f"{label}_tap{a}", f"({t}) * {label}_dilation{a}") for a, t in enumerate(taps)
        ]

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        # the matrix number counts images and groups, as that of filters does
        start = f"({label}_first * {label}_groups + ({matrix})) * {label}_filters * {label}_places"
        return [(f"{label}_start", start)]

    def element(self, label: str) -> str:
        axes = range(len(self.geometry.size))
        inside, at = [], []
        for a in axes:
            far = f"({label}_base{a} - {label}_tap{a})"
            if all(s == 1 for s in self.geometry.stride):
                inside.append(f"{far} >= 0 && {far} < {label}_place{a}")
                at.append(far)
            else:
                whole = f"{far} / {label}_stride{a}"
                exact = f"{whole} * {label}_stride{a} == {far}"
                inside.append(f"{far} >= 0 && {exact} && {whole} < {label}_place{a}")
                at.append(f"({whole})")
        place = at[0]
        for a in axes[1:]:
            place = f"({place} * {label}_place{a} + {at[a]})"
        image = f"{label}_image + " if self.whole else ""
        return _where(
            inside, f"{label}[{image}{label}_start + {label}_filter + {place}]", self.dtype
        )


@dataclasses.dataclass(frozen=True)
class TransposedWeights(Operand):
    """Matmul operand: a convolution's transposed weights.

    A *line* (row of the left operand) is an input channel; the sum runs over filters and taps.
    """

    channels: int
    filters: int
    taps: int

    @property
    def along(self) -> bool:
        return self.taps > 1

    def numbers(self, k: Kernel, label: str) -> None:
        for name in ("channels", "filters", "taps"):
            k.number(f"{label}_{name}", getattr(self, name))

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        return [(f"{label}_line", f"({line}) * {label}_taps")]

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        filter_ = f"({depth}) / {label}_taps * {label}_channels * {label}_taps"
        return [(f"{label}_along", f"{filter_} + ({depth}) % {label}_taps")]

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        size = f"{label}_filters * {label}_channels * {label}_taps"
        return [(f"{label}_from", f"({matrix}) * {size}")]

    def element(self, label: str) -> str:
        return f"{label}[{label}_from + {label}_line + {label}_along]"


@dataclasses.dataclass(frozen=True)
class Results(Operand):
    """Matmul operand: the cotangents of a convolution's result.

    A *line* (row of the left operand) is a filter; the sum runs over the positions of `images_each`
    images.
    """

    geometry: Geometry
    images_each: int

    @property
    def along(self) -> bool:
        return True

    def numbers(self, k: Kernel, label: str) -> None:
        g = self.geometry
        for name, value in (
            ("places", g.n_places),
            ("groups", g.groups),
            ("filters", g.filters),
            ("images", g.images),
            ("each", self.images_each),
        ):
            k.number(f"{label}_{name}", value)

    def of_line(self, label: str, line: str) -> list[tuple[str, str]]:
        return [(f"{label}_line", f"({line}) * {label}_places")]

    def of_depth(self, label: str, depth: str) -> list[tuple[str, str]]:
        return [
            _start_of_part(label, depth, "filters", "places"),
            (f"{label}_place", f"({depth}) % {label}_places"),
        ]

    def of_matrix(self, label: str, matrix: str) -> list[tuple[str, str]]:
        return [
            (f"{label}_part", f"({matrix}) / {label}_groups"),
            (f"{label}_group", f"({matrix}) % {label}_groups * {label}_filters * {label}_places"),
        ]

    def element(self, label: str) -> str:
        element = f"{label}[{label}_start + {label}_group + {label}_line + {label}_place]"
        return _where([f"{label}_start >= 0"], element, self.dtype)
