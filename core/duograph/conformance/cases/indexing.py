"""Conformance test cases of ops that read or assign tensor elements by index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from ... import ops
from ...dtype import ALL, FLOATING, INTEGER, REAL, bool_, float32, int32
from ...ops.gather_scatter import (
    checked_labels_by,
    gather_elements_by,
    scatter_add_by,
    scatter_elements_add_by,
    scatter_elements_set_by,
    scatter_set_by,
)
from ...ops.gathering import gather_batch, gather_nd_by, reverse_sequence
from ...ops.indexing import getitem_by, masked_by, setitem_by
from ...ops.movement import identity
from ...ops.scattering import scatter_nd, scatter_nd_write, scatter_reduce_by
from ...ops.segments import segments_by
from ...tensor import Tensor
from ..case import FOUR, ROWS, Array, Bad, Make, OpCase, Sample
from ..scatter_samples import (
    element_updates,
    elements,
    nd,
    nd_updates,
    of_zeros,
    put,
    put_elements,
    put_nd,
    rows,
    segmented,
    segments,
    taken,
)

HALF = np.array([[0.5]], np.float32)
NOT_BOOL = tuple(d for d in ALL if d is not bool_)
SELECTS = {"broadcast": "indices select, they do not broadcast"}
ROW_ERRORS = [
    Bad((ROWS, np.array([0]), FOUR, 0), ValueError, "scatter_...: got updates of"),
    Bad((ROWS, np.array([2]), ROWS[:1], 0), IndexError, "got index 2|index 2 .*"),
]


def scattered_add(input: Any, axis: int, index: Array, src: Array) -> Array:
    """Return `input.scatter_add(axis, index, src)`, so that a test case can call the method."""
    return input.scatter_add(axis, index, src)


def primitive_elements(name: str) -> list[Bad]:
    return [
        Bad((ROWS, 0, HALF), TypeError, "index: got indices of dtype float32"),
        Bad((ROWS, 0, np.array([1])), ValueError, f"{name}: got indices of shape"),
        Bad((ROWS, 2, np.array([[1]])), ValueError, f"{name}: got (axis|dim) 2"),
        Bad((ROWS, 0, np.array([[2]])), IndexError, "got index 2|index 2 "),
    ]


def nd_errors(name: str) -> list[Bad]:
    return [
        Bad(
            (ROWS, np.array([[0, 0, 0]]), np.ones(1, np.float32)),
            ValueError,
            f"{name}: got indices of",
        ),
        Bad((ROWS, np.array([[0]]), FOUR), ValueError, f"{name}: got updates of shape"),
        Bad(
            (ROWS, np.array([[0, 3]]), np.ones(1, np.float32)), IndexError, "got index 3 for axis 1"
        ),
    ]


class Index:
    """Object whose brackets return the index expression, such as ``at[1:, None]``, for tests."""

    def __getitem__(self, index: Any) -> tuple[Array, ...]:
        return index if isinstance(index, tuple) else (index,)


at = Index()
INDICES: list[tuple[str, Any]] = [
    ("normal", at[1]),
    ("normal", at[-1, 1:3]),
    ("normal", at[..., ::-1, None]),
    ("normal", at[::2, -1:-4:-2]),
    ("normal", at[None, 0, ..., 1]),
    ("normal", at[np.array([2, 0, -1])]),
    ("normal", at[:, np.array([[0, 3], [1, 1]])]),
    ("normal", at[np.array([[0], [2]]), np.array([1, -1])]),
    ("normal", at[np.array([0, 1]), :, np.array([0, 1])]),
    ("normal", at[0, :, np.array([0, 1])]),
    ("normal", at[..., np.array([0, 1]), None, 1]),
    ("normal", at[np.array([True, False, True])]),
    ("normal", at[:, np.array([[True, False], [False, True], [True, True], [False, False]])]),
    ("normal", at[True, ..., 0]),
    ("zero_d", at[np.array(1)]),
    ("empty", at[5:, :0]),
    ("empty", at[np.zeros(0, np.int64)]),
    ("empty", at[False]),
]


def brackets(make: Make) -> Iterator[Sample]:
    for kind, index in INDICES:
        yield Sample((make(3, 4, 2), index), kind=kind)
    yield Sample((make(), ()), kind="zero_d")
    yield Sample((make(), at[..., None]), kind="zero_d")
    yield Sample((make(7, 11, 3), at[1::3, make.index(13, below=11)]), kind="odd")
    yield Sample((make.strided(4, 5), at[1:, np.array([0, 4])]), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(9), at[::-2]), kind="nan")


def assignments(make: Make) -> Iterator[Sample]:
    for sample in brackets(make):
        x, index = sample.args
        part = x[index]
        yield Sample((x, index, make(*part.shape)), kind=sample.kind)
        if part.ndim > 1:
            yield Sample((x, index, make(*part.shape[1:])), kind="broadcast")
    yield Sample((make(3, 4), at[1:], 1), kind="edge", name="number")
    mask = make.rng.random((3, 4)) < 0.5
    yield Sample((make(3, 4), (mask,), make()), kind="edge", name="mask and 0-d value")


def read(x: Tensor, index: Array) -> Tensor:
    """Return `x[index]`, so that test cases can call indexing as a function."""
    return x[index]


def write(x: Tensor, index: Array, value: Array) -> Tensor:
    """Return a copy of tensor `x` in which `value` was assigned to `[index]`."""
    out = identity(x)
    out[index] = value
    return out


def assigned(x: Array, index: Array, value: Array) -> Array:
    out = np.array(x)
    out[index] = value
    return out


def found(x: Array, values: Array, right: bool = False, out_int32: bool = False) -> Array:
    side: Literal["left", "right"] = "right" if right else "left"
    if x.dtype.kind == "V" or x.dtype.itemsize == 2:
        kind = np.float32 if x.dtype.kind in "fV" else np.int64
        x, values = x.astype(kind), values.astype(kind)
    if x.ndim == 1:
        out = np.searchsorted(x, values, side)
    else:
        out = np.stack([np.searchsorted(a, b, side) for a, b in zip(x, values)])
    return np.asarray(out).astype(np.int32 if out_int32 else np.int64)


def batches(make: Make) -> Iterator[Sample]:
    yield Sample((make(2, 5, 3), make.index(2, 4, below=5, low=-5), 1, 1))
    yield Sample((make(2, 3, 4, 5), make.index(2, 2, below=5, dtype=int32), 3, 1))
    yield Sample((make(2, 5), make.index(2, below=5), 1, 1), kind="zero_d")
    yield Sample((make(0, 5), make.index(0, 2, below=5), 1, 1), kind="empty")
    yield Sample((make(3, 7, 11), make.index(3, 13, below=7), 1, 1), kind="odd")
    yield Sample((make.strided(4, 5), make.index(4, 2, below=5), 1, 1), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(3, 3), make.index(3, 2, below=3), 1, 1), kind="nan")


def batched(x: Array, indices: Array, axis: int, batch_dims: int) -> Array:
    return (
        np.stack([np.take(a, i, axis - 1) for a, i in zip(x, indices)])
        if len(x)
        else np.empty((0, 2), x.dtype)
    )


def sequences(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4), np.array([0, 2, 4]), 1))
    yield Sample((make(4, 3, 2), np.array([1, 4, 3], np.int32), 0, 1))
    yield Sample((make(0, 3), np.zeros(0, np.int64), 1), kind="empty")
    yield Sample((make(5, 13), make.index(5, below=14), 1), kind="odd")
    yield Sample((make.strided(4, 5), make.index(4, below=5), 1), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(2, 6), np.array([3, 6]), 1), kind="nan")


def turned(x: Array, lengths: Array, seq_dim: int, batch_dim: int = 0) -> Array:
    out = np.array(x)
    view = np.moveaxis(out, (batch_dim, seq_dim), (0, 1))
    for row, n in zip(view, lengths):
        row[:n] = row[:n][::-1].copy()
    return out


def labels(make: Make) -> Iterator[Sample]:
    yield Sample((make.index(7, below=5, dtype=make.dtype), 5, "loss"))
    yield Sample((make.index(3, 5, below=9, dtype=make.dtype), 9, "loss"), kind="odd")
    yield Sample((make.index(below=2, dtype=make.dtype), 2, "loss"), kind="zero_d")
    yield Sample((make.index(0, below=2, dtype=make.dtype), 2, "loss"), kind="empty")
    yield Sample(
        (make.index(4, 6, below=3, dtype=make.dtype)[:, ::2], 3, "loss"), kind="noncontiguous"
    )


CASES = [
    OpCase(
        scatter_set_by,
        rows(True),
        oracle=put(False),
        without=SELECTS,
        errors=ROW_ERRORS,
        grad=(0, 2),
        dtypes=ALL,
    ),
    OpCase(
        scatter_add_by,
        rows(False),
        oracle=put(True),
        without=SELECTS,
        grad=(0, 2),
        dtypes=ALL,
        errors=ROW_ERRORS,
    ),
    OpCase(
        checked_labels_by,
        labels,
        oracle=lambda labels, classes, owner: labels,
        without={"broadcast": "one tensor", "nan": "labels are integers"},
        grad=(),
        dtypes=INTEGER,
        errors=[
            Bad((np.array([0, n]), 3, "loss"), IndexError, rf"loss: got the label {n}|index -?\d+ ")
            for n in (-1, 3)
        ],
    ),
    OpCase(
        ops.gather_elements,
        elements,
        dtypes=ALL,
        oracle=taken,
        grad=(0,),
        covers=[gather_elements_by],
        errors=primitive_elements("gather_elements"),
    ),
    OpCase(
        ops.scatter,
        element_updates,
        dtypes=ALL,
        oracle=put_elements(False),
        grad=(0, 2),
        covers=[scatter_elements_set_by],
        errors=[
            Bad((ROWS, 0, np.array([[0, 1]]), HALF), ValueError, "scatter: got src of shape"),
            Bad((ROWS, 0, np.array([[9]]), HALF), IndexError, "got index 9|index 9 "),
        ],
    ),
    OpCase(
        scattered_add,
        element_updates,
        dtypes=NOT_BOOL,
        oracle=put_elements(True),
        grad=(0, 2),
        covers=[scatter_elements_add_by],
        name="Tensor.scatter_add",
        errors=[
            Bad((ROWS, 0, np.array([[0, 1]]), HALF), ValueError, "scatter_add: got src of shape")
        ],
    ),
    OpCase(
        ops.gather_nd,
        nd,
        dtypes=ALL,
        oracle=lambda x, i: x[tuple(np.moveaxis(i, -1, 0))],
        grad=(0,),
        covers=[gather_nd_by],
        errors=[
            Bad((ROWS, np.array([[0, 0, 0]])), ValueError, "gather_nd: got indices of shape"),
            Bad(
                (ROWS, np.array([[0, 3]])),
                IndexError,
                "gather_nd: got index 3 for axis 1 of size 3",
            ),
        ],
    ),
    *[
        OpCase(
            getattr(ops, f"tensor_scatter_{mode}"),
            nd_updates(0.5, 2.0) if mode in ("mul", "div") else nd_updates(),
            dtypes=NOT_BOOL
            if mode in ("update", "add", "sub")
            else FLOATING
            if mode == "div"
            else REAL,
            oracle=put_nd(mode),
            grad=(0, 2),
            name=f"tensor_scatter_{mode}",
            covers={"update": [scatter_nd_write], "mul": [scatter_reduce_by]}.get(mode, []),
            errors=nd_errors(f"tensor_scatter_{mode}"),
            tol={float32: 1e-5} if mode in ("mul", "div") else {},
            why="products are taken in another order" if mode in ("mul", "div") else "",
        )
        for mode in ("update", "add", "sub", "mul", "div", "max", "min")
    ],
    OpCase(
        ops.scatter_nd,
        of_zeros,
        dtypes=NOT_BOOL,
        grad=(1,),
        covers=[scatter_nd],
        oracle=lambda i, u, shape: put_nd("add")(np.zeros(shape, u.dtype), i, u),
        errors=[
            Bad(
                (np.array([[0]]), FOUR, (3,)),
                ValueError,
                r"scatter_nd: got updates of shape \(4,\)",
            )
        ],
    ),
    *[
        OpCase(
            getattr(ops, f"unsorted_segment_{mode}"),
            segments(0.5, 2.0) if mode == "prod" else segments(),
            dtypes=REAL,
            oracle=segmented(mode),
            grad=(0,),
            covers=[segments_by] if mode == "sum" else [],
            errors=[
                Bad(
                    (ROWS, np.array([0, 1, 1]), 2),
                    ValueError,
                    f"unsorted_segment_{mode}: got shape",
                )
            ],
        )
        for mode in ("sum", "max", "min", "prod")
    ],
    OpCase(
        ops.gather,
        batches,
        dtypes=ALL,
        oracle=batched,
        grad=(0,),
        covers=[gather_batch],
        name="gather batched",
        errors=[Bad((ROWS, np.array([0]), 1, 1), ValueError, "gather: got batch_dims=1")],
    ),
    OpCase(
        ops.reverse_sequence,
        sequences,
        dtypes=ALL,
        oracle=turned,
        grad=(0,),
        covers=[reverse_sequence],
        errors=[
            Bad((ROWS, np.array([1]), 1), ValueError, r"reverse_sequence: got \(1,\) lengths"),
            *(
                Bad((ROWS, np.array(n), 1), IndexError, r"reverse_sequence: got the label|index ")
                for n in ([-1, 1], [1, ROWS.shape[1] + 1], [-9, -9])
            ),
        ],
    ),
    OpCase(
        read,
        brackets,
        dtypes=ALL,
        oracle=lambda x, index: x[index],
        grad=(0,),
        covers=[getitem_by],
        name="getitem of Tensor",
        errors=[
            Bad((ROWS, 2), IndexError, "index: got 2 for axis 0 of size 2"),
            Bad((ROWS, (0, 0, 0)), IndexError, "index: got 3 indices"),
            Bad((ROWS, 1.5), (IndexError, TypeError), "index: got 1.5"),
            Bad((ROWS, (Ellipsis, Ellipsis)), IndexError, "more than one Ellipsis"),
            Bad((ROWS, ([0, 5],)), IndexError, "index: got index 5 for axis 0 of size 2"),
            Bad((ROWS, (0, [0, 7])), IndexError, "index: got index 7 for axis 1 of size 3"),
            Bad((ROWS, ([0, 1], [0, 1, 2])), IndexError, "index: got index arrays of shapes"),
            Bad((ROWS, (slice(None, None, 0),)), ValueError, "index: got a slice with step 0"),
            Bad((ROWS, ([True, False, True],)), IndexError, "index: got a mask of shape"),
        ],
    ),
    OpCase(
        write,
        assignments,
        dtypes=ALL,
        oracle=assigned,
        covers=[setitem_by, masked_by],
        name="setitem of Tensor",
        errors=[
            Bad((ROWS, 2, 0), IndexError, "index: got 2 for axis 0 of size 2"),
            Bad(
                (ROWS, 0, FOUR),
                ValueError,
                r"setitem: got a value of shape \(4,\) for a part of shape \(3,\)",
            ),
            Bad((ROWS, 0, None), TypeError, "setitem: got None"),
            Bad((ROWS, 0, 1j), TypeError, "setitem: got a complex"),
        ],
    ),
]
