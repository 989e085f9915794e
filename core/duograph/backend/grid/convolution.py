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
from collections.abc import Sequence

from ...dtype import DType
from ...types import TensorType
from .convolution_operands import (
    Contributions,
    Geometry,
    Results,
    TransposedWeights,
    Window,
    geometry_of,
)
from .device import GridDevice, Launch, Plan
from .kernel_writer import ceil_div
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


def _suits(x: TensorType) -> bool:
    """Return whether the convolution kernels support the dtype and number of axes of an input."""
    return not x.dtype.is_complex and 1 <= len(x.shape) - 2 <= 3


def _over_images(
    device: GridDevice,
    g: Geometry,
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
    device: GridDevice, g: Geometry, dtype: DType, whole: int, picked: int, back: bool = False
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


def _images_at_once(g: Geometry, dtype: DType, each: int) -> int:
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
    g = geometry_of(x.shape, w.shape, out.shape, stride, padding, dilation, groups)
    rows, columns, depth = g.filters, g.n_places, g.channels * g.taps
    if not out.size:
        return Plan(())
    weights = Matrices(1, w.dtype, w.size, (0, 1), groups, rows, depth, depth, 1)
    if not device.serial and g.picks and not g.plain and columns >= LEAST_RUN:
        size = x.size // g.n_inputs * columns
        image = Window(3, x.dtype, size, (1,), groups, g.picked, False, True, 0, 0)
        made = _over_images(device, g.picked, (rows, columns, depth), weights, image, out)
        pick = _picking(device, g, x.dtype, 0, 3)
        return Plan((pick, *made.launches), (size * x.dtype.itemsize,))
    if not device.serial:
        everywhere = Window(0, x.dtype, x.size, (1,), groups, g, False, True, 0, 0)
        return _over_images(device, g, (rows, columns, depth), weights, everywhere, out)
    chunk = _images_at_once(g, x.dtype, groups * columns * depth)
    parts = []
    for first in range(0, g.images, chunk):
        images = min(chunk, g.images - first)
        window = Window(0, x.dtype, x.size, (groups, 1), images * groups, g, False, False, first, 0)
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
    g = geometry_of(out.shape, w.shape, y.shape, stride, padding, dilation, groups)
    rows, columns, depth = g.channels, g.n_inputs, g.filters * g.taps
    if not out.size:
        return Plan(())
    weights: Operand = TransposedWeights(
        1, w.dtype, w.size, (0, 1), groups, g.channels, g.filters, g.taps
    )
    if g.taps == 1:
        weights = Matrices(1, w.dtype, w.size, (0, 1), groups, rows, depth, 1, rows)
    if not device.serial and g.picks and not g.plain and g.n_places >= LEAST_RUN:
        size = out.size // columns * g.n_places
        met = Contributions(0, y.dtype, y.size, (1,), groups, g.picked, True, 0)
        sizes = (rows, g.n_places, depth)
        made = _over_images(device, g.picked, sizes, weights, met, out, 3)
        scattered = _picking(device, g, out.dtype, 2, 3, back=True)
        launches = (*made.launches, fill_launch(device, out, 0, 2), scattered)
        return Plan(launches, (size * out.dtype.itemsize,))
    if not device.serial:
        everywhere = Contributions(0, y.dtype, y.size, (1,), groups, g, True, 0)
        return _over_images(device, g, (rows, columns, depth), weights, everywhere, out)
    chunk = _images_at_once(g, y.dtype, groups * columns * depth)
    parts = []
    for first in range(0, g.images, chunk):
        images = min(chunk, g.images - first)
        met = Contributions(0, y.dtype, y.size, (groups, 1), images * groups, g, False, first)
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
    g = geometry_of(x.shape, out.shape, y.shape, stride, padding, dilation, groups)
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
    results_: Operand = Results(1, y.dtype, y.size, steps, matrices, g, each)
    window: Operand = Window(0, x.dtype, x.size, steps, matrices, g, True, False, 0, each)
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
