"""CUDA kernels of batch normalisation: sums over channels, results and gradients (channels.cuh).

`Cuda.plan` finds the builders in the backend's kernel table. Compiled functions use only the
kernels for the sums; the rest of the op is decomposed, so that it fuses with neighbouring ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from duograph.backend.grid import GridDevice, Launch, Plan
from duograph.backend.grid.kernel_writer import ceil_div
from duograph.dtype import DType, float32, int64

from .rows import DTYPES
from .templates import launch_of

if TYPE_CHECKING:
    from duograph.backend.grid.table import Builder, Types
    from duograph.types import TensorType

__all__ = ["KERNELS"]

FILES = ("vectors.cuh", "channels.cuh")
# Threads of a block, and those that read a row of a matrix, at most.
THREADS, LANES = 256, 32
# Elements that a thread reads together; blocks for each multiprocessor; the fewest elements of a
# block.
TOGETHER, BUSY, LEAST = 16, 8, 8192


def _supported(types: Types) -> bool:
    x = types[0]
    return all(t.dtype in DTYPES for t in types) and 0 < x.size < 1 << 32


def _vector(x: TensorType) -> int:
    """Return how many elements a thread loads in one access: 16 bytes of them, or a single one.

    It is a single element if the size of an image's channel is not a multiple of 16 bytes.
    """
    return _fitting(x.dtype, math.prod(x.shape[2:]))


def _fitting(dtype: DType, size: int) -> int:
    """Return how many elements have 16 bytes, or 1 if `size` is no multiple of that number."""
    v = 16 // int(dtype.itemsize)
    return 1 if size % v else v


def _plan(
    device: GridDevice,
    x: TensorType,
    what: str,
    reads: Sequence[tuple[DType, int]],
    results: tuple[int, int],
    scratch: int,
) -> Plan:
    """Return the launches that compute two sums per channel.

    If a channel is divided into several parts, a second launch combines their partial sums.
    Channels of one element per image are the columns of a matrix, which have kernels of their own.

    Args:
        x: type of the input: images, channels, spatial axes.
        what: "moments" or "products", which kernels of channels.cuh compute.
        reads: (dtype, buffer number) of each operand.
        results: buffer numbers of the two results.
        scratch: number of the first scratch buffer.
    """
    images, channels, size = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    count = images * size
    if size == 1:
        v = _fitting(x.dtype, channels)
        lanes = min(LANES, 1 << (ceil_div(channels, v) - 1).bit_length())
        columns, groups = v * lanes, ceil_div(channels, v * lanes)
        choices = [v, lanes]
    else:
        v, columns, groups = _vector(x), 1, channels
        choices = [v]
    choices.append(max(1, TOGETHER // max(v, 2)))
    parts = max(1, min(ceil_div(BUSY * device.units, groups), count * columns // LEAST))
    shape = [(int64, m) for m in (images, channels, size)]
    last = [(float32, place) for place in results]
    there = last if parts == 1 else [(float32, scratch + k) for k in range(2)]
    kernel = f"{'column' if size == 1 else 'channel'}_{what}"
    first = launch_of(
        FILES, kernel, (x.dtype,), choices, [*reads, *there], [*shape, (int64, parts)],
        groups * parts, THREADS,
    )  # fmt: skip
    if parts == 1:
        return Plan((first,))
    each = 1 if size == 1 else v
    sizes = [*shape, (int64, each)] if what == "moments" else shape[1:2]
    joined = launch_of(
        FILES, f"channel_{what}_joined", (), (), [*there, *last], [*sizes, (int64, parts)],
        ceil_div(channels, THREADS // 32), THREADS,
    )  # fmt: skip
    return Plan((first, joined), (4 * channels * parts, 4 * channels * parts))


def batch_moments(device: GridDevice, types: Types, results: Types) -> Plan | None:
    """Return the launches that compute each channel's mean and variance.

    Returns None unless the dtype is float16, bfloat16 or float32 and x has 1 to 2**32 - 1 elements.
    """
    (x,) = types
    if not _supported(types):
        return None
    return _plan(device, x, "moments", [(x.dtype, 0)], (1, 2), 3)


def batch_products(device: GridDevice, types: Types, results: Types) -> Plan | None:
    """Return the launches that sum dout and dout * (x - mean) over each channel.

    Returns None unless all dtypes are float16, bfloat16 or float32 and dout has 1 to 2**32 - 1
    elements.
    """
    dout, x, _ = types
    if not _supported(types):
        return None
    reads = [(dout.dtype, 0), (x.dtype, 1), (float32, 2)]
    return _plan(device, x, "products", reads, (3, 4), 5)


def _elements(
    name: str,
    x: TensorType,
    dtypes: Sequence[DType],
    buffers: Sequence[tuple[DType, int]],
    *scalars: tuple[DType, float],
) -> Launch:
    """Return the launch of a kernel with a thread for each vector of the tensor `x`.

    Args:
        name: name of the template in channels.cuh.
        x: type of the tensor.
        dtypes: dtype arguments of the template.
        buffers: (dtype, buffer number) of each pointer argument.
        scalars: (dtype, value) of each argument after the sizes.
    """
    v = _vector(x)
    sizes = (x.size // v, x.shape[1], math.prod(x.shape[2:]) // v)
    numbers = [*((int64, m) for m in sizes), *scalars]
    groups = ceil_div(sizes[0], THREADS)
    return launch_of(FILES, name, dtypes, (v,), buffers, numbers, groups, THREADS)


def batch_norm_train(
    device: GridDevice, types: Types, results: Types, *, eps: float
) -> Plan | None:
    """Return the launches of batch normalisation by the statistics of the batch.

    The op's results are the normalised tensor, and the mean and variance of each channel. Returns
    None unless all dtypes are float16, bfloat16 or float32 and x has 1 to 2**32 - 1 elements.
    """
    if not _supported(types):
        return None
    x, gamma, beta = (t.dtype for t in types)
    moments = _plan(device, types[0], "moments", [(x, 0)], (4, 5), 6)
    buffers = [(x, 0), (gamma, 1), (beta, 2), (float32, 4), (float32, 5), (x, 3)]
    out = _elements("channel_normalised", types[0], (x, gamma, beta), buffers, (float32, eps))
    return Plan((*moments.launches, out), moments.scratch)


def batch_norm_grad(device: GridDevice, types: Types, results: Types, *, eps: float) -> Plan | None:
    """Return the launches of batch normalisation's gradients with respect to x, gamma and beta.

    Returns None unless all dtypes are float16, bfloat16 or float32, dout has the dtype of x, and x
    has 1 to 2**32 - 1 elements.
    """
    if not _supported(types) or types[4].dtype is not types[0].dtype:
        return None
    x, gamma = types[0].dtype, types[1].dtype
    channels = types[0].shape[1]
    # scratch: the two sums of each channel, and those of its parts
    sums = [(float32, 8), (float32, 9)]
    reads = [(x, 4), (x, 0), (float32, 2)]
    products = _plan(device, types[0], "products", reads, (8, 9), 10)
    buffers = [
        (x, 0), (gamma, 1), (float32, 2), (float32, 3), (x, 4), *sums,
        (x, 5), (gamma, 6), (gamma, 7),
    ]  # fmt: skip
    scalars = (float32, eps), (float32, 1.0 / (types[0].size // channels))
    dx = _elements("channel_gradients", types[0], (x, gamma), buffers, *scalars)
    return Plan((*products.launches, dx), (4 * channels, 4 * channels, *products.scratch))


KERNELS: dict[str, Builder] = {
    "batch_moments": batch_moments,
    "batch_products": batch_products,
    "batch_norm_train": batch_norm_train,
    "batch_norm_grad": batch_norm_grad,
}
