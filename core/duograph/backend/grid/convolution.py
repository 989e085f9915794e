"""Convolution kernels: matmuls with the unrolled input (im2col), which is never stored on GPUs.

The result of ``conv`` is the matrix of weights (O, C * taps) times the matrix of columns (C * taps,
positions), for O filters, C input channels, and as many taps as the filter has spatial elements;
the gradients are similar matmuls of other operands. A GPU kernel computes the offset of each
element of the columns. On a CPU the columns are packed (copied into the order in which the kernel
reads them) as for any matmul, some images at a time. The kernel table of `GridBackend` has the
builders; nothing here runs a kernel. Reference: Chellapilla, Puri, Simard, "High Performance
Convolutional Neural Networks for Document Processing" (2006).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ...dtype import DType
from ...types import TensorType
from .device import GridDevice, Launch, Plan
from .kernel_writer import Kernel, ceil_div
from .matmul import matmul_plan
from .matmul_operands import Matmul, Matrices, Operand, sum_dtype
from .movement import copy_launch, fill_launch
from .reductions import sum_parts
from .strides import dense
from .table import Types, kernel

# Bytes of columns that a CPU packs at a time.
PACKED = 64 << 20
# The largest number of partial sums of a weight gradient.
MOST_PARTS = 64
# The fewest positions of an image that fill tiles alone; smaller images share tiles.
LEAST_RUN = 128


@dataclasses.dataclass(frozen=True)
class _Geometry:
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
    def picked(self) -> _Geometry:
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


def _geometry(
    x: Sequence[int],
    w: Sequence[int],
    y: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> _Geometry:
    return _Geometry(
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
class _Window(Operand):
    """Matmul operand: the unrolled input of a convolution (im2col), whose offsets are computed.

    Attributes:
        transposed: if false, a line (row of the matrix) is a position of the result, and the sum
            runs over channels and taps. If true, a line is a pair of a channel and a tap, and the
            sum runs over the positions of `images_each` images.
        whole: whether a matrix has the lines of all images, numbered consecutively; otherwise each
            matrix has those of one image. Used only if `transposed` is false.
        first: number of the first image, from 0.
    """

    geometry: _Geometry
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
class _Contributions(Operand):
    """Matmul operand of a convolution's input gradient: the cotangents that each pixel sums up.

    A line (row of the matrix) is a position of the input image; the sum runs over filters and taps.
    `whole` says whether a matrix has the lines of all images, numbered consecutively; otherwise
    each matrix has those of one image. `first` is the number of the first image, from 0.
    """

    geometry: _Geometry
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
class _TransposedWeights(Operand):
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
class _Results(Operand):
    """Matmul operand: the cotangents of a convolution's result.

    A *line* (row of the left operand) is a filter; the sum runs over the positions of `images_each`
    images.
    """

    geometry: _Geometry
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


def _suits(x: TensorType) -> bool:
    """Return whether the convolution kernels support the dtype and number of axes of an input."""
    return not x.dtype.is_complex and 1 <= len(x.shape) - 2 <= 3


def _over_images(
    device: GridDevice,
    g: _Geometry,
    sizes: tuple[int, int, int],
    weights: Operand,
    columns: Operand,
    out: TensorType,
    place: int = 2,
) -> Plan:
    """Return the plan of one matmul that computes the results of all images.

    The operand `columns`, such as the unrolled input, is one matrix with the columns of all images,
    so that fewer tiles of the matmul are incomplete. Only if the columns are the input itself, and
    an image has at least LEAST_RUN positions, each image is a matrix of its own in a batch.

    `sizes` are the number of rows, of positions of one image, and of summed elements. The result
    has the dtype of `out` and is written to buffer number `place`.
    """
    rows, run, depth = sizes
    if g.plain and run >= LEAST_RUN:  # the image itself is the matrix of columns
        matrices = g.images * g.groups
        x = Matrices(
            columns.place, columns.dtype, columns.size, (g.groups, 1), matrices, run, depth, 1, run
        )
        batch = (g.images, g.groups)
        return matmul_plan(device, Matmul(sizes, batch, weights, x, out.dtype, place))
    weights = dataclasses.replace(weights, batch_steps=(1,))
    sizes = (rows, g.images * run, depth)
    problem = Matmul(sizes, (g.groups,), weights, columns, out.dtype, place, columns_together=run)
    return matmul_plan(device, problem)


def _picking(
    device: GridDevice, g: _Geometry, dtype: DType, whole: int, picked: int, back: bool = False
) -> Launch:
    """Return the launch that copies the convolution's input elements at multiples of the stride.

    It copies from buffer number `whole` to buffer number `picked` or, with `back`, in the opposite
    direction.
    """
    lines = g.images * g.groups * g.channels
    shape = (lines, *g.places)
    steps = [step * n for step, n in zip(dense(g.size), g.stride)]
    view = (whole, [g.n_inputs, *steps], 0, lines * g.n_inputs)
    packed = (picked, dense(shape), 0, lines * g.n_places)
    return copy_launch(device, dtype, shape, *((packed, view) if back else (view, packed)))


def _images_at_once(g: _Geometry, dtype: DType, each: int) -> int:
    """Return for how many images the columns fit into PACKED bytes of memory; at least 1.

    `each` is the number of elements of one image's columns (the unrolled input), which are stored
    in the dtype in which a matmul of dtype `dtype` accumulates.
    """
    return max(1, min(g.images, PACKED // max(1, each * sum_dtype(dtype).itemsize)))


def _joined(parts: Sequence[Plan]) -> Plan:
    """Concatenate launch plans that run one after the other and use the same scratch buffers."""
    scratch = [max(sizes) for sizes in zip(*(p.scratch for p in parts))]
    launches: list[Launch] = []
    for p in parts:
        launches += p.launches
    return Plan(tuple(launches), tuple(scratch))


@kernel("conv")
def conv(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Plan | None:
    """Return the launch plan of a convolution, or None for an unsupported dtype or rank."""
    x, w = types
    (out,) = results
    if not _suits(x):
        return None
    g = _geometry(x.shape, w.shape, out.shape, stride, padding, dilation, groups)
    rows, columns, depth = g.filters, g.n_places, g.channels * g.taps
    if not out.size:
        return Plan(())
    weights = Matrices(1, w.dtype, w.size, (0, 1), groups, rows, depth, depth, 1)
    if not device.serial and g.picks and not g.plain and columns >= LEAST_RUN:
        size = x.size // g.n_inputs * columns
        image = _Window(3, x.dtype, size, (1,), groups, g.picked, False, True, 0, 0)
        made = _over_images(device, g.picked, (rows, columns, depth), weights, image, out)
        pick = _picking(device, g, x.dtype, 0, 3)
        return Plan((pick, *made.launches), (size * x.dtype.itemsize,))
    if not device.serial:
        everywhere = _Window(0, x.dtype, x.size, (1,), groups, g, False, True, 0, 0)
        return _over_images(device, g, (rows, columns, depth), weights, everywhere, out)
    chunk = _images_at_once(g, x.dtype, groups * columns * depth)
    parts = []
    for first in range(0, g.images, chunk):
        images = min(chunk, g.images - first)
        window = _Window(
            0, x.dtype, x.size, (groups, 1), images * groups, g, False, False, first, 0
        )
        offset = first * groups * rows * columns
        sizes, batch = (rows, columns, depth), (images, groups)
        problem = Matmul(sizes, batch, weights, window, out.dtype, 2, offset=offset)
        parts.append(matmul_plan(device, problem))
    return _joined(parts)


@kernel("conv_input_grad")
def conv_input_grad(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    input_shape: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Plan | None:
    """Return the launch plan of a convolution's input gradient.

    It multiplies the transposed weights by the cotangents. Returns None for dtypes and shapes that
    it does not support.
    """
    y, w = types
    (out,) = results
    if not _suits(y):
        return None
    g = _geometry(out.shape, w.shape, y.shape, stride, padding, dilation, groups)
    rows, columns, depth = g.channels, g.n_inputs, g.filters * g.taps
    if not out.size:
        return Plan(())
    weights: Operand = _TransposedWeights(
        1, w.dtype, w.size, (0, 1), groups, g.channels, g.filters, g.taps
    )
    if g.taps == 1:
        weights = Matrices(1, w.dtype, w.size, (0, 1), groups, rows, depth, 1, rows)
    if not device.serial and g.picks and not g.plain and g.n_places >= LEAST_RUN:
        size = out.size // columns * g.n_places
        met = _Contributions(0, y.dtype, y.size, (1,), groups, g.picked, True, 0)
        sizes = (rows, g.n_places, depth)
        made = _over_images(device, g.picked, sizes, weights, met, out, 3)
        scattered = _picking(device, g, out.dtype, 2, 3, back=True)
        launches = (*made.launches, fill_launch(device, out, 0, 2), scattered)
        return Plan(launches, (size * out.dtype.itemsize,))
    if not device.serial:
        everywhere = _Contributions(0, y.dtype, y.size, (1,), groups, g, True, 0)
        return _over_images(device, g, (rows, columns, depth), weights, everywhere, out)
    chunk = _images_at_once(g, y.dtype, groups * columns * depth)
    parts = []
    for first in range(0, g.images, chunk):
        images = min(chunk, g.images - first)
        met = _Contributions(0, y.dtype, y.size, (groups, 1), images * groups, g, False, first)
        offset = first * groups * rows * columns
        sizes, batch = (rows, columns, depth), (images, groups)
        problem = Matmul(sizes, batch, weights, met, out.dtype, 2, offset=offset)
        parts.append(matmul_plan(device, problem))
    return _joined(parts)


@kernel("conv_weight_grad")
def conv_weight_grad(
    device: GridDevice,
    types: Types,
    results: Types,
    *,
    weight_shape: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Plan | None:
    """Return the launch plan of a convolution's weight gradient, or None if it is not supported."""
    x, y = types
    (out,) = results
    if not _suits(x):
        return None
    g = _geometry(x.shape, out.shape, y.shape, stride, padding, dilation, groups)
    rows, columns = g.filters, g.channels * g.taps
    if not out.size:
        return Plan(())
    if not x.size or not y.size:
        return Plan((fill_launch(device, out, 0, 2),))
    each = _images_at_once(g, x.dtype, groups * columns * g.n_places) if device.serial else g.images
    wanted = max(ceil_div(g.images, each), min(MOST_PARTS, g.images, 4 * device.units))
    each = max(1, ceil_div(g.images, wanted))
    count = max(1, ceil_div(g.images, each))
    depth = each * g.n_places
    acc = sum_dtype(x.dtype)
    partial = count * groups * rows * columns
    place, dtype = (2, out.dtype) if count == 1 else (3, acc)
    steps, matrices = (groups, 1), count * groups
    results_: Operand = _Results(1, y.dtype, y.size, steps, matrices, g, each)
    window: Operand = _Window(0, x.dtype, x.size, steps, matrices, g, True, False, 0, each)
    picking: list[Launch] = []
    picked: tuple[int, ...] = ()
    if g.picks and each == 1 and not device.serial:  # both operands are read directly
        image, size = 0, x.size
        if not g.plain:
            image, size = place + 1, x.size // g.n_inputs * g.n_places
            picking.append(_picking(device, g, x.dtype, 0, image))
            picked = (size * x.dtype.itemsize,)
        results_ = Matrices(1, y.dtype, y.size, steps, matrices, rows, depth, depth, 1)
        window = Matrices(image, x.dtype, size, steps, matrices, columns, depth, depth, 1)
    batch = (count, groups)
    problem = Matmul((rows, columns, depth), batch, results_, window, dtype, place)
    made = matmul_plan(device, problem)
    if count == 1:
        return Plan((*picking, *made.launches), (*picked, *made.scratch))
    added = sum_parts(device, count, groups * rows * columns, (3, acc), (2, out.dtype))
    launches = (*picking, *made.launches, added)
    return Plan(launches, (partial * acc.itemsize, *picked, *made.scratch))
