"""Padding of axes (constant, reflect, edge, circular) and block rearrangements of images.

Layers, primitive classes and users call these functions. They must check paddings, because the ops
that compute the results, `pad_by` and `pad_index`, expect valid ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from .arguments import ints_of
from .gather_scatter import gather
from .movement import pad_by, slice_by
from .primitive import primitive
from .shape_primitives import reshape_to, transpose_by

__all__ = [
    "pad", "mirror_pad", "padding", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle",
    "depth_to_space", "space_to_depth", "space_to_batch_nd", "batch_to_space_nd",
]  # fmt: skip


@op(name="pad_index")
def pad_index(input: Tensor, low: Sequence[int], high: Sequence[int], mode: str):
    """Composite op: extend axes with elements of `input`, chosen by `mode`.

    `low` and `high` are the numbers of elements to add before and after each axis; negative ones
    remove elements. The modes are those of `padded_positions`.
    """
    out = input
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if a or b:
            out = gather(out, padded_positions(input.shape[axis], a, b, mode), axis)
    return out


def padded_positions(n: int, low: int, high: int, mode: str) -> Array:
    """Return the int64 source index of each element of a padded axis of size `n`.

    `low` and `high` elements are added before and after. `mode` is "replicate" (the edge),
    "circular" (from the other side), "symmetric" (mirrored with the edge) or "reflect" (mirrored
    without it).
    """
    at = np.arange(-low, n + high)
    if mode == "replicate":
        at = at.clip(0, max(n - 1, 0))
    elif mode == "circular":
        at = at % n if n else at
    elif mode == "symmetric":
        at = at % (2 * n) if n else at
        at = np.where(at >= n, 2 * n - 1 - at, at)
    else:  # reflect: the edge element is not repeated
        period = max(2 * (n - 1), 1)
        at = at % period
        at = np.where(at >= n, period - at, at)
    return at.astype(np.int64)


def pad(
    input_x: Tensor,
    padding: int | Sequence[int],
    mode: str = "constant",
    value: Tensor | int | float | None = None,
) -> Tensor:
    """Lengthen axes before and after (`mindspore.ops.pad`).

    Args:
        input_x: Tensor.
        padding: (elements before, elements after) of the last axis, then of the one before it, and
            so on; negative numbers remove elements.
        mode: ``"constant"``; ``"reflect"``: mirrored, without repeating the edge; ``"replicate"``:
            the edge repeated; ``"circular"``: elements from the other side.
        value: the constant; default 0.

    Raises:
        ValueError: another mode, more numbers than axes, more than can be reflected, or a value
            with another mode.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.pad(ms.Tensor([1, 2, 3]), (1, 2))
        Tensor(shape=[6], dtype=Int64, value= [0, 1, 2, 3, 0, 0])
        >>> ms.ops.pad(ms.Tensor([[1, 2, 3]]), (1, 2), mode="reflect")
        Tensor(shape=[1, 6], dtype=Int64, value=
        [[2, 1, 2, 3, 2, 1]])
    """
    numbers = ints_of("pad", "padding", padding)
    shape = input_x.shape
    if len(numbers) % 2 or len(numbers) > 2 * len(shape):
        raise ArgumentValueError(
            f"pad: got padding={numbers} for shape {shape}; wanted two numbers (before, after) for "
            f"each axis, the last axis first: at most {2 * len(shape)} numbers"
        )
    pairs = [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]
    pairs = [(0, 0)] * (len(shape) - len(pairs)) + pairs[::-1]
    low, high = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    _check_sizes("pad", shape, low, high)
    if mode == "constant":
        return pad_with(input_x, low, high, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise ArgumentValueError(
            f"pad: got mode={mode!r}; wanted 'constant', 'reflect', 'replicate' or 'circular'"
        )
    if value is not None and value != 0:
        raise ArgumentValueError(f"pad: got value={value} with mode={mode!r}; wanted None")
    _check_room("pad", shape, low, high, mode)
    return pad_index(input_x, low, high, mode)


def _check_sizes(name: str, shape: Sequence[int], low: Sequence[int], high: Sequence[int]) -> None:
    if any(
        n + a + b < 0 or n + a < 0 or n + b < 0 for n, a, b in zip(shape, low, high, strict=True)
    ):
        raise ShapeError(
            f"{name}: got low={low} and high={high} for shape {shape}: less than nothing is left"
        )


def _check_room(
    name: str, shape: Sequence[int], low: Sequence[int], high: Sequence[int], mode: str
) -> None:
    for axis, (n, a, b) in enumerate(zip(shape, low, high, strict=True)):
        room = n - 1 if mode == "reflect" else n
        most = max(a, b)
        if most > (room if mode in ("reflect", "symmetric", "circular") else (most if n else 0)):
            raise ShapeError(
                f"{name}: got {a} and {b} for axis {axis} of size {n}; mode {mode!r} has at most "
                f"{room} to give"
            )


def pad_with(input: Tensor, low: Sequence[int], high: Sequence[int], value: object) -> Tensor:
    """Pad with a constant `value`: `low` elements before and `high` elements behind each axis.

    `low` and `high` have one number per axis; a negative number removes elements.
    """
    if isinstance(value, Tensor):
        value = value.item()
    out = input
    if min((*low, *high), default=0) < 0:
        begin = [max(-a, 0) for a in low]
        end = [n - max(-b, 0) for n, b in zip(input.shape, high, strict=True)]
        out = slice_by(out, begin, end, [1] * len(begin))
        low, high = [max(a, 0) for a in low], [max(b, 0) for b in high]
    if any(low) or any(high):
        out = pad_by(out, tuple(low), tuple(high), value)
    return out


def _pairs(
    name: str, paddings: object, ndim: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(paddings, Tensor):
        paddings = paddings.tolist()
    if (
        isinstance(paddings, (tuple, list))
        and all(isinstance(p, (tuple, list)) and len(p) == 2 for p in paddings)
        and len(paddings) == (len(paddings) if ndim is None else ndim)
    ):
        pairs = [ints_of(name, "paddings", p) for p in paddings]
        return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    wanted = "a pair for each axis" if ndim is None else f"a pair for each of {ndim} axes"
    raise ArgumentValueError(f"{name}: got paddings={paddings!r}; wanted {wanted}")


@primitive("Pad(paddings)")
def pad_pairs(
    input: Tensor, paddings: Tensor | Sequence[Sequence[int]], name: str = "Pad"
) -> Tensor:
    """Pad with zeros; `paddings` has one (before, after) pair per axis, from the first axis on.

    `name` is the user's function in errors.
    """
    low, high = _pairs(name, paddings, len(input.shape))
    if name == "Pad" and min((*low, *high), default=0) < 0:
        raise ArgumentValueError(f"Pad: got paddings={paddings!r}; wanted none negative")
    _check_sizes(name, input.shape, low, high)
    return pad_with(input, low, high, 0)


@primitive('MirrorPad(mode="REFLECT")')
def mirror_pad(input_x: Tensor, paddings: Tensor | Sequence[Sequence[int]], mode: str) -> Tensor:
    """Lengthen axes by their mirror image (`mindspore.ops.mirror_pad`).

    Args:
        input_x: Tensor.
        paddings: a pair (before, after) for each axis: nested tuples or a Tensor (ndim, 2).
        mode: ``"REFLECT"`` without repeating the edge, ``"SYMMETRIC"`` with it.

    Raises:
        ValueError: another mode, or more padding than there are elements to mirror.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.mirror_pad(ms.Tensor([[1, 2]]), ((0, 0), (1, 1)), "SYMMETRIC")
        Tensor(shape=[1, 4], dtype=Int64, value=
        [[1, 1, 2, 2]])
    """
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ArgumentValueError(f"mirror_pad: got mode={mode!r}; wanted 'REFLECT' or 'SYMMETRIC'")
    low, high = _pairs("mirror_pad", paddings, len(input_x.shape))
    if min((*low, *high), default=0) < 0:
        raise ArgumentValueError(f"mirror_pad: got paddings={paddings}; wanted none negative")
    _check_room("mirror_pad", input_x.shape, low, high, mode.lower())
    return pad_index(input_x, low, high, mode.lower())


@primitive("Padding(pad_dim_size=8)")
def padding(x: Tensor, pad_dim_size: int = 8) -> Tensor:
    """Lengthen a last axis of size 1 by zeros (`mindspore.ops.padding`).

    Raises:
        ValueError: the last axis is not of size 1, or `pad_dim_size` not positive.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.padding(ms.Tensor([[1.0], [2.0]]), 3)
        Tensor(shape=[2, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  0.00000000e+00,  0.00000000e+00],
         [ 2.00000000e+00,  0.00000000e+00,  0.00000000e+00]])
    """
    if len(x.shape) < 2 or x.shape[-1] != 1 or pad_dim_size < 1:
        raise ShapeError(
            f"padding: got shape {x.shape}, pad_dim_size={pad_dim_size}; wanted a last axis of "
            "size 1"
        )
    lead = (0,) * (len(x.shape) - 1)
    return pad_with(x, (*lead, 0), (*lead, pad_dim_size - 1), 0)


# ---- blocks --------------------------------------------------------------------------------------


def _positive(name: str, what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentError(f"{name}: got {what}={value!r}; wanted an int")
    if value < 1:
        raise ArgumentValueError(f"{name}: got {what}={value}; wanted a positive int")
    return int(value)


@op(name="pixel_shuffle")
def pixel_shuffle(input: Tensor, upscale_factor: int):
    """Move channels into blocks of pixels: (*, C r², H, W) to (*, C, H r, W r)
    (`mindspore.ops.pixel_shuffle`).

    Args:
        input: Tensor of at least three axes.
        upscale_factor: the factor r.

    Raises:
        ValueError: fewer axes, or a number of channels that r² does not divide.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.pixel_shuffle(ms.ops.ones((1, 8, 2, 3)), 2).shape
        (1, 2, 4, 6)
    """
    r = _positive("pixel_shuffle", "upscale_factor", upscale_factor)
    if len(input.shape) < 3 or input.shape[-3] % (r * r):
        raise ShapeError(
            f"pixel_shuffle: got shape {input.shape}; wanted channels divided by {r * r}"
        )
    *lead, c, h, w = input.shape
    k = len(lead)
    split = reshape_to(input, (*lead, c // (r * r), r, r, h, w))
    moved = transpose_by(split, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return reshape_to(moved, (*lead, c // (r * r), h * r, w * r))


@op(name="pixel_unshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int):
    """Move blocks of pixels into channels: (*, C, H r, W r) to (*, C r², H, W)
    (`mindspore.ops.pixel_unshuffle`).

    Raises:
        ValueError: fewer than three axes, or sizes that r does not divide.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.pixel_unshuffle(ms.ops.ones((1, 2, 4, 6)), 2).shape
        (1, 8, 2, 3)
    """
    r = _positive("pixel_unshuffle", "downscale_factor", downscale_factor)
    if len(input.shape) < 3 or input.shape[-1] % r or input.shape[-2] % r:
        raise ShapeError(f"pixel_unshuffle: got shape {input.shape}; wanted sizes divided by {r}")
    *lead, c, h, w = input.shape
    k = len(lead)
    split = reshape_to(input, (*lead, c, h // r, r, w // r, r))
    moved = transpose_by(split, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return reshape_to(moved, (*lead, c * r * r, h // r, w // r))


@op(name="channel_shuffle")
def channel_shuffle(x: Tensor, groups: int):
    """Reorder the channels of (N, C, ...), taking one from each of `groups` groups in turn
    (`mindspore.ops.channel_shuffle`).

    Raises:
        ValueError: fewer than three axes, or channels that `groups` does not divide.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.channel_shuffle(ms.Tensor([[[0], [1], [2], [3]]]), 2)
        Tensor(shape=[1, 4, 1], dtype=Int64, value=
        [[[0],
          [2],
          [1],
          [3]]])
    """
    n = _positive("channel_shuffle", "groups", groups)
    if len(x.shape) < 3 or x.shape[1] % n:
        raise ShapeError(f"channel_shuffle: got shape {x.shape}; wanted channels divided by {n}")
    batch, c, *rest = x.shape
    split = reshape_to(x, (batch, n, c // n, *rest))
    moved = transpose_by(split, (0, 2, 1, *range(3, 3 + len(rest))))
    return reshape_to(moved, x.shape)


def _four(name: str, x: Tensor) -> None:
    if len(x.shape) != 4:
        raise ShapeError(f"{name}: got shape {x.shape}; wanted four axes (N, C, H, W)")


@op(name="depth_to_space", primitive="DepthToSpace(block_size)")
def depth_to_space(x: Tensor, block_size: int):
    """Move channels into blocks of pixels: (N, r r C, H, W) to (N, C, H r, W r).

    With r = `block_size`, channel ``p * C + c`` of `x` becomes the pixel at position p, in
    row-major order, of each r x r block in channel c.

    Args:
        x: Tensor (N, C, H, W).
        block_size: int; its square divides C.

    Raises:
        ValueError: another shape.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.depth_to_space(ms.ops.ones((1, 8, 2, 3)), 2).shape
        (1, 2, 4, 6)
    """
    r = _positive("DepthToSpace", "block_size", block_size)
    _four("DepthToSpace", x)
    n, c, h, w = x.shape
    if c % (r * r):
        raise ShapeError(f"DepthToSpace: got shape {x.shape}; wanted channels divided by {r * r}")
    split = reshape_to(x, (n, r, r, c // (r * r), h, w))
    return reshape_to(transpose_by(split, (0, 3, 4, 1, 5, 2)), (n, c // (r * r), h * r, w * r))


@op(name="space_to_depth", primitive="SpaceToDepth(block_size)")
def space_to_depth(x: Tensor, block_size: int):
    """Move blocks of pixels into channels; the inverse of `depth_to_space`.

    Args:
        x: Tensor (N, C, H, W).
        block_size: int; it divides H and W.

    Raises:
        ValueError: another shape.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.space_to_depth(ms.ops.ones((1, 2, 4, 6)), 2).shape
        (1, 8, 2, 3)
    """
    r = _positive("SpaceToDepth", "block_size", block_size)
    _four("SpaceToDepth", x)
    n, c, h, w = x.shape
    if h % r or w % r:
        raise ShapeError(f"SpaceToDepth: got shape {x.shape}; wanted H and W divided by {r}")
    split = reshape_to(x, (n, c, h // r, r, w // r, r))
    return reshape_to(transpose_by(split, (0, 3, 5, 1, 2, 4)), (n, c * r * r, h // r, w // r))


@primitive("SpaceToBatch(block_size, paddings)")
def space_to_batch_nd(
    input_x: Tensor, block_size: int | Sequence[int], paddings: Tensor | Sequence[Sequence[int]]
) -> Tensor:
    """Move blocks of the last axes into the batch axis, after zero padding
    (`mindspore.ops.space_to_batch_nd`).

    Args:
        input_x: Tensor; axis 0 is the batch, the last len(block_size) axes are cut in blocks.
        block_size: int or ints.
        paddings: a pair (before, after) for each of these axes.

    Raises:
        ValueError: padded sizes that the blocks do not divide.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.space_to_batch_nd(ms.ops.ones((1, 1, 4, 4)), (2, 2), ((0, 0), (0, 0))).shape
        (4, 1, 2, 2)
    """
    low, high = _pairs("space_to_batch_nd", paddings)
    blocks = _blocks("space_to_batch_nd", block_size, len(low), len(input_x.shape))
    lead = (0,) * (len(input_x.shape) - len(blocks))
    x = pad_with(input_x, lead + low, lead + high, 0)
    k = len(lead)
    split: list[int] = list(x.shape[:k])
    for n, b in zip(x.shape[k:], blocks, strict=True):
        if n % b:
            raise ShapeError(
                f"space_to_batch_nd: got padded sizes {x.shape[k:]} for blocks {blocks}"
            )
        split += [n // b, b]
    inner = [k + 2 * i + 1 for i in range(len(blocks))]
    outer = [k + 2 * i for i in range(len(blocks))]
    moved = transpose_by(reshape_to(x, split), (*inner, *range(k), *outer))
    area = int(np.prod(blocks))
    return reshape_to(moved, (area * x.shape[0], *x.shape[1:k], *[split[i] for i in outer]))


def _blocks(name: str, block: int | Sequence[int], count: int, ndim: int) -> tuple[int, ...]:
    sizes = ints_of(name, "block", block)
    sizes = sizes * count if len(sizes) == 1 else sizes
    if len(sizes) != count or min(sizes) < 1 or count >= ndim:
        raise ArgumentValueError(f"{name}: got blocks {sizes} and {count} pairs for {ndim} axes")
    return sizes


@primitive("BatchToSpaceND(block_shape, crops)")
def batch_to_space_nd(
    input_x: Tensor, block_shape: int | Sequence[int], crops: Tensor | Sequence[Sequence[int]]
) -> Tensor:
    """Undo `space_to_batch_nd`, and remove elements at the edges
    (`mindspore.ops.batch_to_space_nd`).

    Raises:
        ValueError: a batch that the blocks do not divide, or crops larger than the result.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.batch_to_space_nd(ms.ops.ones((4, 1, 2, 2)), (2, 2), ((0, 0), (0, 0))).shape
        (1, 1, 4, 4)
    """
    low, high = _pairs("batch_to_space_nd", crops)
    blocks = _blocks("batch_to_space_nd", block_shape, len(low), len(input_x.shape))
    shape = input_x.shape
    area = int(np.prod(blocks))
    if shape[0] % area:
        raise ShapeError(f"batch_to_space_nd: got {shape[0]} in the batch for blocks {blocks}")
    m = len(blocks)
    k = len(shape) - m
    split = reshape_to(input_x, (*blocks, shape[0] // area, *shape[1:]))
    order = [m + i for i in range(k)]
    for i in range(m):
        order += [m + k + i, i]
    sizes = [n * b for n, b in zip(shape[k:], blocks, strict=True)]
    out = reshape_to(transpose_by(split, order), (shape[0] // area, *shape[1:k], *sizes))
    lead = (0,) * k
    cut_low, cut_high = lead + tuple(-a for a in low), lead + tuple(-b for b in high)
    _check_sizes("batch_to_space_nd", out.shape, cut_low, cut_high)
    return pad_with(out, cut_low, cut_high, 0)
