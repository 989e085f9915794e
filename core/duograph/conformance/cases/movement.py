"""Conformance test cases of ops that move and repeat elements: slices, concatenation, tiling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from ... import ops
from ...dtype import ALL
from ...ops.joining import stack_by
from ...ops.movement import concat_by, flip_by, identity, slice_by, stop_gradient, update_by
from ...ops.repeating import repeat_interleave, tile
from ...ops.rolling import roll_by
from ...ops.shape_primitives import broadcast_to, reshape_to, strided_copy, transpose_by
from ..case import CUBE, FOUR, NUMBER, ROWS, Array, Bad, Make, OpCase, Sample, Samples, by_shape


def lists(*rows: tuple[Any, ...]) -> Samples:
    """Return a function that yields test samples of an op on lists of tensors.

    Each of `rows` makes one sample; it holds the kind of sample, the shapes of the tensors in the
    list, and the other arguments. Rows of kind nan are skipped for dtypes without NaN.
    """

    def samples(make: Make) -> Iterator[Sample]:
        for kind, shapes, *args in rows:
            if kind == "nan" and not make.inexact:
                continue
            one = {"nan": make.special, "noncontiguous": make.strided}.get(kind, make)
            yield Sample(([one(*shape) for shape in shapes], *args), {}, kind)

    return samples


def slices(begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> tuple[slice, ...]:
    return tuple(
        slice(b, e if e >= 0 else None, s) if len(range(b, e, s)) else slice(0)
        for b, e, s in zip(begin, end, strides)
    )


def strided(x: Array, shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
    flat = x.reshape(-1)
    out = np.empty(shape, x.dtype)
    for at in np.ndindex(*shape):
        out[at] = flat[offset + sum(i * s for i, s in zip(at, strides))]
    return out


def broadcasted(x: Array, shape: Sequence[int]) -> Array:
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)])


def cut(x: Array, sizes: Any, axis: int = 0) -> list[Array]:
    at = np.cumsum(sizes)[:-1] if isinstance(sizes, tuple) else range(sizes, x.shape[axis], sizes)
    return np.split(x, at, axis)


def updates(make: Make) -> Iterator[Sample]:
    """Yield test samples of a slice assignment: tensor, new values, begin, end and strides."""
    yield Sample((make(4, 5), make(2, 2), (1, 4), (3, -1), (1, -3)))
    yield Sample((make(), make(), (), (), ()), kind="zero_d")
    yield Sample((make(3, 4), make(0, 4), (0, 0), (0, 4), (1, 1)), kind="empty")
    yield Sample((make(0, 4), make(0, 4), (0, 0), (0, 4), (1, 1)), kind="empty")
    yield Sample((make(7, 11, 3), make(4, 11, 1), (6, 0, 1), (-1, 11, 2), (-2, 1, 1)), kind="odd")
    yield Sample((make.strided(4, 5), make(4, 3), (0, 1), (4, 4), (1, 1)), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(3, 3), make.special(3, 1), (0, 2), (3, 3), (1, 1)), kind="nan")


def updated(
    x: Array, v: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]
) -> Array:
    out = np.array(x)
    out[slices(begin, end, strides)] = v
    return out


def grid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    return tuple(np.meshgrid(*arrays, indexing=indexing))


def grids(make: Make) -> Iterator[Sample]:
    yield Sample((make(2), make(3)))
    yield Sample((make(2), make(3), make(4)), {"indexing": "ij"})
    yield Sample((make(0), make(3)), kind="empty")
    yield Sample((make(7), make(11)), kind="odd")


AXES = (0, 2, 1)


CASES = [
    OpCase(
        ops.reshape,
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
            ("normal", (5, 2), 3),
            ("normal", (2, 5), (1, 3), 1),
            ("empty", (0, 3), 2),
            ("odd", (7, 11), 4, 1),
        ),
        dtypes=ALL,
        oracle=np.array_split,
        errors=[Bad((ROWS, 0), ValueError, "tensor_split: got 0 parts")],
    ),
    OpCase(
        ops.unstack,
        by_shape(
            ("normal", (3, 4)), ("normal", (2, 3, 4), -1), ("empty", (2, 0)), ("odd", (3, 7), 1)
        ),
        dtypes=ALL,
        oracle=lambda x, axis=0: list(np.moveaxis(x, axis, 0)),
        errors=[Bad((NUMBER,), ValueError, "unstack: got a 0-d")],
    ),
    OpCase(
        ops.tile,
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
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
        by_shape(
            ("normal", (1, 3, 1)), ("normal", (1, 3, 1), 0), ("zero_d", ()), ("empty", (0, 1))
        ),
        dtypes=ALL,
        oracle=lambda x, axis=None: np.squeeze(x, axis),
        errors=[Bad((ROWS, 2), ValueError, "squeeze: got axis 2")],
    ),
    OpCase(
        ops.expand_dims,
        by_shape(
            ("normal", (2, 3), 1), ("normal", (2, 3), -1), ("zero_d", (), 0), ("empty", (0,), 0)
        ),
        dtypes=ALL,
        oracle=np.expand_dims,
        errors=[Bad((ROWS, 3), ValueError, r"expand_dims: got axis 3; wanted one in \[-3, 3\)")],
    ),
    OpCase(
        ops.flatten,
        by_shape(("normal", (2, 3, 4)), ("zero_d", ()), ("empty", (0, 2, 3)), ("odd", (7, 11))),
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
        by_shape(
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
        by_shape(
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
]
