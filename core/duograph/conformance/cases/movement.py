"""Ops that move, repeat and make elements: shapes, slices, joints, padding, triangles, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import ops
from ...dtype import ALL, INTEGER, REAL, bool_, float32, float64, int32, int64
from ...ops.creation import fill, iota
from ...ops.creation_functions import (
    eye,
    full_like,
    linspace,
    new_full_by,
    one_hot,
    one_hot_mask,
    sequence_mask,
)
from ...ops.diagonals import (
    diag_embed_by,
    diagonal_by,
    fill_diagonal,
    matrix_band_part,
    matrix_diag,
    set_diagonal_by,
    trace,
    tril,
    triu,
)
from ...ops.joining import stack_by
from ...ops.movement import concat_by, flip_by, identity, pad_by, slice_by, stop_gradient, update_by
from ...ops.padding import (
    channel_shuffle,
    depth_to_space,
    pad_index,
    pixel_shuffle,
    pixel_unshuffle,
    space_to_depth,
)
from ...ops.repeating import repeat_interleave, tile
from ...ops.rolling import roll_by
from ...ops.shape_primitives import broadcast_to, reshape_to, strided_copy, transpose_by
from ..case import Bad, Make, OpCase, Sample, Samples

ROWS = np.ones((2, 3), np.float32)
FOUR = np.ones(4, np.float32)
CUBE = np.ones((2, 3, 4), np.float32)
NUMBER = np.ones((), np.float32)
NOT_A_TENSOR = Bad((None,), (TypeError, AttributeError), "None")


def table(*rows: tuple[Any, ...], **kwargs: Any) -> Samples:
    """Samples from rows of (kind, shape of the first operand, further arguments...)."""

    def samples(make: Make) -> Iterator[Sample]:
        for kind, shape, *args in rows:
            if kind == "nan" and not make.inexact:
                continue
            one = {"nan": make.special, "noncontiguous": make.strided}.get(kind, make)
            yield Sample((one(*shape), *args), kwargs, kind)

    return samples


def lists(*rows: tuple[Any, ...]) -> Samples:
    """Samples from rows of (kind, shapes of a list of operands, further arguments...)."""

    def samples(make: Make) -> Iterator[Sample]:
        for kind, shapes, *args in rows:
            if kind == "nan" and not make.inexact:
                continue
            one = {"nan": make.special, "noncontiguous": make.strided}.get(kind, make)
            yield Sample(([one(*shape) for shape in shapes], *args), {}, kind)

    return samples


def slices(begin: Any, end: Any, strides: Any) -> tuple[slice, ...]:
    return tuple(
        slice(b, e if e >= 0 else None, s) if len(range(b, e, s)) else slice(0)
        for b, e, s in zip(begin, end, strides)
    )


def strided(x: Any, shape: Any, strides: Any, offset: int) -> Any:
    flat = x.reshape(-1)
    out = np.empty(shape, x.dtype)
    for at in np.ndindex(*shape):
        out[at] = flat[offset + sum(i * s for i, s in zip(at, strides))]
    return out


def broadcasted(x: Any, shape: Any) -> Any:
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)])


def cut(x: Any, sizes: Any, axis: int = 0) -> Any:
    at = np.cumsum(sizes)[:-1] if isinstance(sizes, tuple) else range(sizes, x.shape[axis], sizes)
    return np.split(x, at, axis)


def updates(make: Make) -> Iterator[Sample]:
    """A tensor, the value that replaces a slice of it, and the slice."""
    yield Sample((make(4, 5), make(2, 2), (1, 4), (3, -1), (1, -3)))
    yield Sample((make(), make(), (), (), ()), kind="zero_d")
    yield Sample((make(3, 4), make(0, 4), (0, 0), (0, 4), (1, 1)), kind="empty")
    yield Sample((make(0, 4), make(0, 4), (0, 0), (0, 4), (1, 1)), kind="empty")
    yield Sample((make(7, 11, 3), make(4, 11, 1), (6, 0, 1), (-1, 11, 2), (-2, 1, 1)), kind="odd")
    yield Sample((make.strided(4, 5), make(4, 3), (0, 1), (4, 4), (1, 1)), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(3, 3), make.special(3, 1), (0, 2), (3, 3), (1, 1)), kind="nan")


def updated(x: Any, v: Any, begin: Any, end: Any, strides: Any) -> Any:
    out = np.array(x)
    out[slices(begin, end, strides)] = v
    return out


def padded(mode: str) -> Callable[..., Any]:
    def oracle(x: Any, padding: Any, mode_: Any = None, value: Any = None) -> Any:
        pairs = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)]
        pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
        inner = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape))]
        if mode != "constant":
            inner = x  # what is cut off is still reflected
            full = [(max(a, 0), max(b, 0)) for a, b in pairs]
            how: Any = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
            wide = np.pad(inner, full, how)
            return wide[
                tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, wide.shape))
            ]
        fit = np.asarray(0 if value is None else value).astype(x.dtype)
        full = [(max(a, 0), max(b, 0)) for a, b in pairs]
        return np.pad(inner, full, constant_values=fit) if x.ndim else x

    return oracle


def pads(mode: str) -> Samples:
    rows: list[tuple[Any, ...]] = [
        ("normal", (3, 4), (2, 1), mode),
        ("normal", (2, 3, 4), (1, 2, 2, 1), mode),
        ("normal", (3, 5), (-1, 1, 1, -1), mode),
        ("noncontiguous", (4, 5), (1, 1), mode),
        ("odd", (7, 11, 3), (0, 2, 3, 0), mode),
        ("nan", (3, 3), (1, 1), mode),
    ]
    if mode == "constant":
        rows += [("empty", (0, 3), (1, 1, 2, 0), mode), ("zero_d", (), (), mode)]
        rows += [("edge", (2, 3), (1, 1), mode, 1)]
    return table(*rows)


def grid(*arrays: Any, indexing: Any = "xy") -> Any:
    return tuple(np.meshgrid(*arrays, indexing=indexing))


def grids(make: Make) -> Iterator[Sample]:
    yield Sample((make(2), make(3)))
    yield Sample((make(2), make(3), make(4)), {"indexing": "ij"})
    yield Sample((make(0), make(3)), kind="empty")
    yield Sample((make(7), make(11)), kind="odd")


def blocks_out(x: Any, r: int, depth_first: bool) -> Any:
    *lead, c, h, w = x.shape
    if depth_first:  # the place in the block is the slower part of the channel
        parts = x.reshape(lead[0], r, r, c // (r * r), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        k = len(lead)
        parts = x.reshape(*lead, c // (r * r), r, r, h, w)
        parts = parts.transpose(*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return parts.reshape(*lead, c // (r * r), h * r, w * r)


def blocks_in(x: Any, r: int, depth_first: bool) -> Any:
    *lead, c, h, w = x.shape
    if depth_first:
        parts = x.reshape(lead[0], c, h // r, r, w // r, r).transpose(0, 3, 5, 1, 2, 4)
    else:
        k = len(lead)
        parts = x.reshape(*lead, c, h // r, r, w // r, r)
        parts = parts.transpose(*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return parts.reshape(*lead, c * r * r, h // r, w // r)


NO_ZERO_D = {"zero_d": "it has three axes at least"}
MATRICES = {"zero_d": "a matrix has two axes"}


def shuffles(factor: int, channels: int, side: int) -> Samples:
    c, s = channels, side
    return table(
        ("normal", (1, c, s, s), factor),
        ("normal", (2, 2 * c, s, 2 * s), factor),
        ("empty", (0, c, s, s), factor),
        ("odd", (3, c, 3 * s, 5 * s), factor),
        ("noncontiguous", (1, c, s, 2 * s), factor),
        ("nan", (1, c, s, 2 * s), factor),
    )


def triangle(*args: Any) -> Samples:
    return table(
        ("normal", (3, 4), *args),
        ("normal", (4, 2), *args),
        ("normal", (2, 3, 3), *args),
        ("empty", (0, 3), *args),
        ("empty", (2, 3, 0), *args),
        ("odd", (7, 11, 13), *args),
        ("noncontiguous", (4, 5), *args),
        ("nan", (3, 3), *args),
    )


def band(x: Any, lower: int, upper: int) -> Any:
    at = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    keep = ((lower < 0) | (at >= -lower)) & ((upper < 0) | (at <= upper))
    return np.where(keep, x, np.zeros((), x.dtype))


def embedded(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    i = np.arange(x.shape[-1])
    out[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def set_diagonals(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4), make(3), 0, 0, 1))
    yield Sample((make(2, 4, 3), make(2, 2), 1, 1, 2))
    yield Sample((make(3, 4), make(2), -1, 0, 1))
    yield Sample((make(2, 0), make(0), 0, 0, 1), kind="empty")
    yield Sample((make(7, 11), make(7), 2, 0, 1), kind="odd")
    yield Sample((make.strided(4, 5), make(4), 0, 0, 1), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(3, 3), make.special(3), 0, 0, 1), kind="nan")


def set_diagonal(x: Any, values: Any, offset: int, dim1: int, dim2: int) -> Any:
    out = np.array(x)
    view = np.moveaxis(out, (dim1, dim2), (-2, -1))
    i = np.arange(values.shape[-1])
    view[..., i + max(-offset, 0), i + max(offset, 0)] = values
    return out


def filled_diagonal(x: Any, value: Any, wrap: bool = False) -> Any:
    out = np.array(x)
    if out.size:
        np.fill_diagonal(out, np.asarray(value).astype(x.dtype), wrap)
    return out


def dtyped(*calls: tuple[Any, ...], name: str = "dtype") -> Samples:
    """Calls of a function without operands, for each dtype."""

    def samples(make: Make) -> Iterator[Sample]:
        for call in calls:
            yield Sample(call, {name: make.dtype})

    return samples


def full(shape: Any, value: Any, dtype: Any) -> Any:
    return np.full(shape, np.asarray(value).astype(dtype.np), dtype.np)


def counted(shape: Any, axis: int, dtype: Any) -> Any:
    lead = [1] * len(shape)
    lead[axis] = -1
    return np.broadcast_to(np.arange(shape[axis]).astype(dtype.np).reshape(lead), shape)


def ends(make: Make) -> Iterator[Sample]:
    yield Sample((make(3), make(3), 5))
    yield Sample((make(2, 2), make(2, 2), 1))
    yield Sample((make(), make(), 4), kind="zero_d")
    yield Sample((make(0), make(0), 4), kind="empty")
    yield Sample((make(7), make(7), 11), kind="odd")
    yield Sample((make.strided(3, 2), make(3, 2), 3), kind="noncontiguous")


def spaced(start: Any, end: Any, steps: int) -> Any:
    wide = np.linspace(start.astype(np.float64), end.astype(np.float64), steps, axis=-1)
    return wide.astype(start.dtype)


def labels(make: Make) -> Iterator[Sample]:
    dtype = make.dtype
    yield Sample((make.index(5, below=4, dtype=dtype), 4))
    yield Sample((make.index(2, 3, below=4, dtype=dtype), 4, 1.0, 0.0, 0))
    yield Sample((make.index(3, below=9, dtype=dtype), 4, 5, -1))
    yield Sample((make.index(below=4, dtype=dtype), 4), kind="zero_d")
    yield Sample((make.index(0, below=4, dtype=dtype), 4), kind="empty")
    yield Sample((make.index(17, below=13, dtype=dtype), 13), kind="odd")


def hot(indices: Any, depth: int, on: Any = 1, off: Any = 0, axis: int = -1) -> Any:
    dtype = np.int64 if isinstance(on, int) else np.float32
    out = np.where(indices[..., None] == np.arange(depth), on, off).astype(dtype)
    return np.moveaxis(out, -1, axis)


def lengths(make: Make) -> Iterator[Sample]:
    dtype = make.dtype
    yield Sample((make.index(5, below=7, dtype=dtype), 6))
    yield Sample((make.index(2, 3, below=7, dtype=dtype),))
    yield Sample((make.index(below=7, dtype=dtype), 3), kind="zero_d")
    yield Sample((make.index(0, below=7, dtype=dtype), 3), kind="empty")
    yield Sample((make.index(7, below=17, dtype=dtype), 13), kind="odd")


def before_end(found: Any, maxlen: int | None = None) -> Any:
    return np.arange(found.max() if maxlen is None else maxlen) < found[..., None]


AXES = (0, 2, 1)
CASES = [
    OpCase(
        ops.reshape,
        table(
            ("normal", (3, 4), (2, 6)),
            ("normal", (2, 3, 4), (4, -1)),
            ("zero_d", (), (1, 1)),
            ("zero_d", (1,), ()),
            ("empty", (0, 3), (3, 0)),
            ("odd", (7, 11), (11, 7)),
            ("noncontiguous", (4, 5), (20,)),
            ("nan", (9,), (3, 3)),
            ("edge", (1,), (1,) * 9),
        ),
        dtypes=ALL,
        oracle=np.reshape,
        covers=[reshape_to],
        errors=[
            Bad((ROWS, (4, 2)), ValueError, r"reshape: .*\(2, 3\).*\(4, 2\)"),
            Bad((ROWS, (-1, -1)), ValueError, "reshape: .*at most one -1"),
            Bad((ROWS, (-2, 3)), ValueError, "reshape"),
        ],
    ),
    OpCase(
        identity,
        table(
            ("normal", (3, 4)),
            ("zero_d", ()),
            ("empty", (0, 3)),
            ("odd", (7, 11)),
            ("noncontiguous", (4, 5)),
            ("nan", (9,)),
        ),
        errors=[Bad(("text",), TypeError, "identity: got str")],
    ),
    OpCase(
        stop_gradient,
        table(
            ("normal", (3, 4)),
            ("zero_d", ()),
            ("empty", (0, 3)),
            ("odd", (7, 11)),
            ("noncontiguous", (4, 5)),
            ("nan", (9,)),
        ),
        errors=[Bad(("text",), TypeError, "stop_gradient: got str")],
    ),
    OpCase(
        strided_copy,
        table(
            ("normal", (3, 4), (2, 3), (4, 1), 1),
            ("normal", (3, 4), (2, 2, 2), (0, -4, 2), 5),
            ("zero_d", (), (), (), 0),
            ("zero_d", (5,), (), (), 3),
            ("empty", (0, 3), (0, 2), (3, 1), 0),
            ("odd", (7, 11), (11, 7), (1, 11), 0),
            ("noncontiguous", (4, 5), (5, 4), (-1, 5), 4),
            ("nan", (9,), (4,), (-2,), 8),
        ),
        oracle=strided,
        errors=[Bad((ROWS, (4,), (2,), 0), ValueError, "strided_copy: got positions 0 to 6 for 6")],
    ),
    OpCase(
        ops.transpose,
        table(
            ("normal", (2, 3, 4), AXES),
            ("normal", (2, 3), (-1, 0)),
            ("zero_d", (), ()),
            ("empty", (0, 3), (1, 0)),
            ("odd", (7, 11, 3), (2, 0, 1)),
            ("noncontiguous", (4, 5), (1, 0)),
            ("nan", (3, 3), (1, 0)),
            ("edge", (2, 1, 2, 1, 2, 1, 2), (6, 5, 4, 3, 2, 1, 0)),
        ),
        dtypes=ALL,
        oracle=np.transpose,
        covers=[transpose_by],
        errors=[
            Bad((CUBE, (0, 1)), ValueError, "transpose: got axes .*3 axes once"),
            Bad((CUBE, (0, 1, 1)), ValueError, "transpose: got axes"),
        ],
    ),
    OpCase(
        ops.broadcast_to,
        table(
            ("normal", (3, 1), (2, 3, 4)),
            ("normal", (3,), (2, -1)),
            ("zero_d", (), (2, 3)),
            ("zero_d", (), ()),
            ("empty", (1, 3), (0, 3)),
            ("odd", (7, 1), (7, 13)),
            ("noncontiguous", (4, 5), (2, 4, 5)),
            ("nan", (9,), (2, 9)),
        ),
        dtypes=ALL,
        covers=[broadcast_to],
        oracle=broadcasted,
        errors=[Bad((ROWS, (2, 4)), ValueError, r"broadcast_to: got shape \(2, 3\).*\(2, 4\)")],
    ),
    OpCase(
        slice_by,
        table(
            ("normal", (4, 5), (1, 0), (3, 5), (1, 2)),
            ("normal", (4, 5), (3, 4), (-1, 0), (-2, -1)),
            ("zero_d", (), (), (), ()),
            ("empty", (3, 4), (1, 0), (1, 4), (1, 1)),
            ("empty", (0, 4), (0, 3), (0, -1), (1, -1)),
            ("odd", (7, 11, 3), (6, 1, 0), (0, 10, 3), (-3, 4, 1)),
            ("noncontiguous", (4, 5), (1, 1), (4, 4), (1, 1)),
            ("nan", (9,), (8,), (-1,), (-3,)),
        ),
        oracle=lambda x, begin, end, strides: x[slices(begin, end, strides)],
        errors=[
            Bad((ROWS, (0,), (1,), (1,)), ValueError, "strided_slice: got 1 begins"),
            Bad((ROWS, (0, 0), (3, 1), (1, 1)), ValueError, "positions 0 to 2 on axis 0 of size 2"),
        ],
    ),
    OpCase(
        update_by,
        updates,
        oracle=updated,
        without={"broadcast": "the value has the slice's shape"},
        errors=[
            Bad((ROWS, FOUR, (0, 0), (1, 3), (1, 1)), ValueError, "slice_update: got a value of")
        ],
    ),
    OpCase(
        ops.flip,
        table(
            ("normal", (3, 4), (0,)),
            ("normal", (2, 3, 4), (0, -1)),
            ("zero_d", (), ()),
            ("empty", (0, 3), (0,)),
            ("odd", (7, 11), (0, 1)),
            ("noncontiguous", (4, 5), (1,)),
            ("nan", (9,), (0,)),
        ),
        dtypes=ALL,
        oracle=np.flip,
        covers=[flip_by],
        errors=[
            Bad((ROWS, (2,)), ValueError, "flip: got axis 2"),
            Bad((ROWS, (0, -2)), ValueError, "flip: .*names an axis twice"),
        ],
    ),
    OpCase(
        ops.concat,
        lists(
            ("normal", [(3, 4), (2, 4)]),
            ("normal", [(2, 3), (2, 1), (2, 5)], 1),
            ("normal", [(2, 3)], -1),
            ("empty", [(0, 3), (2, 3)]),
            ("empty", [(0,), (0,)]),
            ("odd", [(7, 11), (7, 3)], 1),
            ("noncontiguous", [(4, 5), (4, 5)], 1),
            ("nan", [(9,), (9,)]),
            ("edge", [(1, 2)] * 33),
        ),
        dtypes=ALL,
        covers=[concat_by],
        oracle=lambda tensors, axis=0: np.concatenate(tensors, axis),
        errors=[
            Bad(([ROWS, FOUR],), ValueError, r"concat: got shapes \(2, 3\).*\(4,\) \(number 1\)"),
            Bad(([],), ValueError, "concat: got no tensors"),
            Bad(([NUMBER],), ValueError, "concat: got 0-d"),
            Bad(([ROWS], 2), ValueError, "concat: got axis 2"),
        ],
    ),
    OpCase(
        ops.stack,
        lists(
            ("normal", [(3, 4)] * 2),
            ("normal", [(2, 3)] * 3, -1),
            ("zero_d", [()] * 3),
            ("empty", [(0, 3)] * 2, 1),
            ("odd", [(7, 11)] * 3, 1),
            ("noncontiguous", [(4, 5)] * 2),
            ("nan", [(9,)] * 2),
        ),
        dtypes=ALL,
        oracle=lambda tensors, axis=0: np.stack(tensors, axis),
        covers=[stack_by],
        errors=[Bad(([ROWS, FOUR],), ValueError, "stack: got shapes")],
    ),
    OpCase(
        ops.split,
        table(
            ("normal", (5, 2), 2),
            ("normal", (2, 5), (1, 4), 1),
            ("empty", (0, 3), 2),
            ("odd", (7, 11), 3, 1),
            ("noncontiguous", (4, 6), 2, 1),
            ("nan", (9,), 4),
        ),
        dtypes=ALL,
        oracle=cut,
        errors=[
            Bad((ROWS, (1, 2)), ValueError, r"split: got sizes \(1, 2\) for axis 0 of size 2"),
            Bad((ROWS, 0), ValueError, "split: got the size 0"),
            Bad((NUMBER, 1), ValueError, "split: got a 0-d"),
        ],
    ),
    OpCase(
        ops.tensor_split,
        table(
            ("normal", (5, 2), 3),
            ("normal", (2, 5), (1, 3), 1),
            ("empty", (0, 3), 2),
            ("odd", (7, 11), 4, 1),
        ),
        dtypes=ALL,
        oracle=np.array_split,
        errors=[Bad((ROWS, 0), ValueError, "tensor_split: got 0 pieces")],
    ),
    OpCase(
        ops.unstack,
        table(("normal", (3, 4)), ("normal", (2, 3, 4), -1), ("empty", (2, 0)), ("odd", (3, 7), 1)),
        dtypes=ALL,
        oracle=lambda x, axis=0: list(np.moveaxis(x, axis, 0)),
        errors=[Bad((NUMBER,), ValueError, "unstack: got a 0-d")],
    ),
    OpCase(
        ops.tile,
        table(
            ("normal", (2, 3), (2, 2)),
            ("normal", (3,), (2, 1, 3)),
            ("normal", (2, 3), 2),
            ("zero_d", (), (3,)),
            ("empty", (2, 3), (0, 1)),
            ("odd", (3, 5), (3, 5)),
            ("noncontiguous", (4, 5), (1, 2)),
            ("nan", (9,), (2,)),
        ),
        dtypes=ALL,
        oracle=np.tile,
        covers=[tile],
        errors=[Bad((ROWS, (-1,)), ValueError, "tile: got dims=")],
    ),
    OpCase(
        ops.repeat_interleave,
        table(
            ("normal", (2, 3), 2),
            ("normal", (2, 3), 3, 1),
            ("normal", (3, 2), (2, 0, 1), 0),
            ("zero_d", (), 3),
            ("empty", (0, 3), 2, 0),
            ("empty", (2, 3), 0, 0),
            ("odd", (7, 5), 3, 0),
            ("noncontiguous", (4, 5), 2, 1),
            ("nan", (9,), 2),
        ),
        dtypes=ALL,
        oracle=np.repeat,
        covers=[repeat_interleave],
        errors=[Bad((ROWS, (1, 2, 3), 0), ValueError, "repeat_interleave: got repeats=")],
    ),
    OpCase(
        ops.meshgrid,
        grids,
        dtypes=ALL,
        oracle=grid,
        errors=[Bad((ROWS,), ValueError, "meshgrid: got shapes")],
    ),
    OpCase(
        ops.roll,
        table(
            ("normal", (3, 4), 1),
            ("normal", (3, 4), (1, -6), (0, 1)),
            ("normal", (3, 4), 2, -1),
            ("zero_d", (), 1),
            ("empty", (0, 3), 1, 0),
            ("odd", (7, 11), 5, 1),
            ("noncontiguous", (4, 5), 2, 0),
            ("nan", (9,), 4),
        ),
        dtypes=ALL,
        oracle=lambda x, shifts, dims=None: np.roll(x, shifts, dims),
        covers=[roll_by],
        errors=[Bad((ROWS, (1, 2), (0,)), ValueError, "roll: got shifts=")],
    ),
    OpCase(
        ops.rot90,
        table(
            ("normal", (3, 4), 1, (0, 1)),
            ("normal", (2, 3, 4), 3, (2, 0)),
            ("normal", (2, 3), -2, (0, 1)),
            ("empty", (0, 3), 1, (0, 1)),
            ("odd", (7, 11), 5, (1, 0)),
        ),
        dtypes=ALL,
        oracle=np.rot90,
        errors=[Bad((ROWS, 1, (0, 0)), ValueError, "rot90: got dims=")],
    ),
    OpCase(
        ops.squeeze,
        table(("normal", (1, 3, 1)), ("normal", (1, 3, 1), 0), ("zero_d", ()), ("empty", (0, 1))),
        dtypes=ALL,
        oracle=lambda x, axis=None: np.squeeze(x, axis),
        errors=[Bad((ROWS, 2), ValueError, "squeeze: got axis 2")],
    ),
    OpCase(
        ops.expand_dims,
        table(("normal", (2, 3), 1), ("normal", (2, 3), -1), ("zero_d", (), 0), ("empty", (0,), 0)),
        dtypes=ALL,
        oracle=np.expand_dims,
        errors=[Bad((ROWS, 3), ValueError, r"expand_dims: got axis 3; wanted one in \[-3, 3\)")],
    ),
    OpCase(
        ops.flatten,
        table(("normal", (2, 3, 4)), ("zero_d", ()), ("empty", (0, 2, 3)), ("odd", (7, 11))),
        dtypes=ALL,
        oracle=lambda x: x.reshape((x.shape[0], int(np.prod(x.shape[1:]))) if x.ndim else 1),
        errors=[
            Bad(
                (CUBE,),
                ValueError,
                "flatten: got start_dim=2 after",
                {"start_dim": 2, "end_dim": 1},
            )
        ],
    ),
    OpCase(
        ops.moveaxis,
        table(
            ("normal", (2, 3, 4), 0, -1),
            ("normal", (2, 3, 4), (0, 1), (2, 0)),
            ("empty", (0, 3), 0, 1),
        ),
        dtypes=ALL,
        oracle=np.moveaxis,
        errors=[Bad((CUBE, (0, 0), (1, 2)), ValueError, "moveaxis: got source=")],
    ),
    OpCase(
        ops.diff,
        table(
            ("normal", (3, 5)),
            ("normal", (3, 5), 2, 0),
            ("empty", (0, 3), 1, 0),
            ("odd", (7, 11), 3),
        ),
        dtypes=tuple(d for d in ALL if d.kind in "ifc"),
        oracle=np.diff,
        errors=[
            Bad((NUMBER,), ValueError, "diff: got a 0-d"),
            Bad((ROWS, -1), ValueError, "diff: got n=-1"),
        ],
    ),
    # ---- padding and blocks
    OpCase(
        pad_by,
        table(
            ("normal", (2, 3), (1, 0), (0, 2), 0),
            ("normal", (2, 3), (1, 1), (1, 1), 1),
            ("zero_d", (), (), (), 0),
            ("empty", (0, 3), (1, 0), (1, 0), 1),
            ("odd", (7, 11), (3, 5), (2, 0), 0),
            ("noncontiguous", (4, 5), (1, 1), (0, 0), 0),
            ("nan", (9,), (1,), (1,), 0),
        ),
        errors=[Bad((ROWS, (-1, 0), (0, 0), 0), ValueError, "pad_constant: got low=")],
    ),
    *[
        OpCase(
            ops.pad,
            pads(mode),
            dtypes=ALL,
            oracle=padded(mode),
            name=f"pad {mode}",
            covers=[pad_index] if mode == "reflect" else (),
            errors=[
                Bad((ROWS, (1, 1, 1)), ValueError, "pad: got padding="),
                Bad((ROWS, (1, 1), "odd"), ValueError, "pad: got mode='odd'"),
                Bad((ROWS, (3, 0), "reflect"), ValueError, "pad: .*has at most 2 to give"),
                Bad((ROWS, (-2, -2)), ValueError, "pad: .*less than nothing"),
            ],
        )
        for mode in ("constant", "reflect", "replicate", "circular")
    ],
    OpCase(
        pixel_shuffle,
        shuffles(2, 4, 1),
        oracle=lambda x, r: blocks_out(x, r, False),
        without=NO_ZERO_D,
        errors=[
            Bad((CUBE, 2), ValueError, "pixel_shuffle: got shape"),
            Bad((CUBE, 0), ValueError, "positive"),
        ],
    ),
    OpCase(
        pixel_unshuffle,
        shuffles(2, 3, 2),
        oracle=lambda x, r: blocks_in(x, r, False),
        without=NO_ZERO_D,
        errors=[Bad((CUBE, 2), ValueError, "pixel_unshuffle: got shape")],
    ),
    OpCase(
        depth_to_space,
        shuffles(2, 8, 1),
        oracle=lambda x, r: blocks_out(x, r, True),
        without=NO_ZERO_D,
        errors=[Bad((CUBE, 2), ValueError, "DepthToSpace: got shape")],
    ),
    OpCase(
        space_to_depth,
        shuffles(2, 3, 2),
        oracle=lambda x, r: blocks_in(x, r, True),
        without=NO_ZERO_D,
        errors=[Bad((CUBE, 2), ValueError, "SpaceToDepth: got shape")],
    ),
    OpCase(
        channel_shuffle,
        shuffles(2, 4, 2),
        without=NO_ZERO_D,
        oracle=lambda x, g: (
            x.reshape(x.shape[0], g, x.shape[1] // g, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)
        ),
        errors=[Bad((CUBE, 2), ValueError, "channel_shuffle: got shape")],
    ),
    # ---- triangles and diagonals
    OpCase(
        tril,
        triangle(1),
        oracle=np.tril,
        without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "tril: got shape")],
    ),
    OpCase(
        triu,
        triangle(-1),
        oracle=np.triu,
        without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "triu: got shape")],
    ),
    OpCase(
        matrix_band_part,
        triangle(1, 0),
        oracle=band,
        without=MATRICES,
        errors=[Bad((FOUR, 0, 0), ValueError, "matrix_band_part: got shape")],
    ),
    OpCase(
        ops.diagonal,
        table(
            ("normal", (3, 4)),
            ("normal", (2, 3, 4), 1, 0, 2),
            ("normal", (3, 4), -1),
            ("empty", (0, 3)),
            ("empty", (2, 3), 7),
            ("odd", (7, 11, 3), 2, 1, 0),
            ("noncontiguous", (4, 5)),
            ("nan", (3, 3)),
        ),
        dtypes=ALL,
        oracle=np.diagonal,
        covers=[diagonal_by],
        errors=[
            Bad((FOUR,), ValueError, "diagonal: got 1 axes"),
            Bad((ROWS, 0, 1, -1), ValueError, "diagonal: got dim1="),
        ],
    ),
    OpCase(
        trace,
        table(
            ("normal", (3, 4)),
            ("empty", (0, 3)),
            ("odd", (7, 11)),
            ("noncontiguous", (4, 5)),
            ("nan", (3, 3)),
        ),
        dtypes=tuple(d for d in ALL if d is not bool_),
        why="a sum of bools is none",
        without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "trace: got shape")],
    ),
    OpCase(
        ops.diag_embed,
        table(
            ("normal", (3,)),
            ("normal", (2, 3), 1),
            ("normal", (2, 3), -2, 0, 1),
            ("empty", (0,)),
            ("empty", (0, 2)),
            ("odd", (7, 11)),
            ("noncontiguous", (4, 5)),
            ("nan", (9,)),
        ),
        dtypes=ALL,
        oracle=embedded,
        covers=[diag_embed_by],
        errors=[Bad((NUMBER,), ValueError, "diag_embed: got 1 axes")],
    ),
    OpCase(
        ops.diagonal_scatter,
        set_diagonals,
        dtypes=ALL,
        oracle=set_diagonal,
        covers=[set_diagonal_by],
        errors=[
            Bad(
                (ROWS, FOUR),
                ValueError,
                r"diagonal_scatter: got src of shape \(4,\); wanted \(2,\)",
            )
        ],
    ),
    OpCase(
        ops.matrix_diag,
        table(
            ("normal", (3,)),
            ("normal", (2, 2), 1, 3, 3),
            ("empty", (0,)),
            ("odd", (7, 5), -3),
            ("nan", (9,)),
        ),
        dtypes=ALL,
        covers=[matrix_diag],
        oracle=lambda x, k=0, rows=-1, columns=-1: embedded(x, k),
        errors=[Bad((FOUR, 0, 3, 3), ValueError, "matrix_diag: got shape")],
    ),
    OpCase(
        ops.fill_diagonal,
        table(
            ("normal", (3, 4), 1),
            ("normal", (5, 2), 1, True),
            ("normal", (3, 3, 3), 1),
            ("empty", (0, 3), 1),
            ("odd", (13, 7), 1),
            ("noncontiguous", (4, 5), 1),
            ("nan", (3, 3), 0),
        ),
        dtypes=ALL,
        oracle=filled_diagonal,
        covers=[fill_diagonal],
        errors=[Bad((FOUR, 1), ValueError, "fill_diagonal: got shape")],
    ),
    # ---- constants
    OpCase(
        fill,
        dtyped(((2, 3), 1), ((), 0), ((0, 2), 1), ((7, 13), 1)),
        dtypes=ALL,
        oracle=full,
        errors=[Bad(((2,),), TypeError, "fill: got no value for 'value'")],
    ),
    OpCase(
        iota,
        dtyped(((2, 3), 0), ((2, 3), 1), ((0,), 0), ((5, 7, 3), 1)),
        dtypes=tuple(d for d in ALL if d is not bool_),
        oracle=counted,
        errors=[Bad(((2,),), TypeError, "iota: got no value for 'axis'")],
    ),
    OpCase(
        ops.full_like,
        table(
            ("normal", (2, 3), 1),
            ("zero_d", (), 0),
            ("empty", (0, 3), 1),
            ("odd", (7, 13), 1),
            ("noncontiguous", (4, 5), 1),
        ),
        dtypes=ALL,
        grad=False,
        covers=[full_like],
        oracle=lambda x, value: np.full(x.shape, np.asarray(value).astype(x.dtype), x.dtype),
        errors=[Bad((ROWS, "text"), TypeError, "full_like: got str")],
    ),
    OpCase(
        new_full_by,
        table(
            ("normal", (2, 3), (4,), 1),
            ("zero_d", (), (), 0),
            ("empty", (0, 3), (2, 0), 1),
            ("odd", (7, 13), (11,), 1),
            ("noncontiguous", (4, 5), (3, 3), 1),
            ("nan", (3,), (2,), 0),
            dtype=float32,
        ),
        oracle=lambda x, shape, value, dtype: np.full(shape, value, np.float32),
        errors=[Bad((ROWS, (2,)), TypeError, "new_full: got no value for 'value'")],
    ),
    OpCase(
        ops.eye,
        dtyped((2, 3), (3,), (0, 2), (7, 5)),
        dtypes=ALL,
        grad=False,
        covers=[eye],
        oracle=lambda n, m=None, dtype=None: np.eye(n, m).astype(dtype.np),
        errors=[Bad((-1,), ValueError, "eye: got shape")],
    ),
    OpCase(
        ops.arange,
        dtyped((5,), (1, 7, 2), (7, 1, -3), (3, 3), (0, 1, 1), (0.5, 3.0, 0.25)),
        dtypes=tuple(d for d in REAL),
        grad=False,
        oracle=lambda *args, dtype: np.arange(*args).astype(dtype.np),
        errors=[Bad((1, 5, 0), ValueError, "arange: got step=0")],
    ),
    OpCase(
        ops.linspace,
        ends,
        dtypes=(float32, float64),
        oracle=spaced,
        covers=[linspace],
        without={
            "nan": "what lies between NaN or infinity and a number depends on how it is written"
        },
        errors=[Bad((0, 1, -1), ValueError, "linspace: got shape")],
    ),
    OpCase(
        ops.one_hot,
        labels,
        dtypes=INTEGER,
        grad=False,
        oracle=hot,
        covers=[one_hot_mask, one_hot],
        errors=[
            Bad((ROWS, 3), TypeError, "one_hot: indices have dtype float32"),
            Bad((np.array([1]), -1), ValueError, "one_hot: got shape"),
        ],
    ),
    OpCase(
        ops.sequence_mask,
        lengths,
        dtypes=(int32, int64),
        grad=False,
        oracle=before_end,
        covers=[sequence_mask],
        errors=[Bad((ROWS, 3), TypeError, "index: got indices of dtype float32")],
    ),
]
