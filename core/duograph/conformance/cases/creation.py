"""Conformance test cases of ops that create tensors: constants, ranges, one-hot rows, masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import ops
from ...dtype import ALL, INTEGER, REAL, bool_, float32, float64, int32, int64
from ...ops.creation import fill, iota
from ...ops.creation_functions import (
    eye,
    full_like,
    new_full_by,
    one_hot,
    one_hot_mask,
    sequence_mask,
)
from ...ops.creation_ranges import linspace
from ..case import ROWS, Array, Bad, Make, OpCase, Sample, Samples, by_shape

if TYPE_CHECKING:
    from ...dtype import DType


def dtyped(*calls: tuple[object, ...], name: str = "dtype") -> Samples:
    """Return a function that yields one test sample for each tuple of arguments in `calls`.

    The tested dtype is passed by the keyword `name`.
    """

    def samples(make: Make) -> Iterator[Sample]:
        for call in calls:
            yield Sample(call, {name: make.dtype})

    return samples


def full(shape: Sequence[int], value: Array, dtype: DType) -> Array:
    return np.full(shape, np.asarray(value).astype(dtype.np), dtype.np)


def counted(shape: Sequence[int], axis: int, dtype: DType) -> Array:
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


def spaced(start: Array, end: Array, steps: int) -> Array:
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


def hot(indices: Array, depth: int, on: float = 1, off: float = 0, axis: int = -1) -> Array:
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


def before_end(found: Array, maxlen: int | None = None) -> Array:
    return np.arange(found.max() if maxlen is None else maxlen) < found[..., None]


CASES = [
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
        by_shape(
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
        by_shape(
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
        errors=[Bad((-1,), ValueError, "eye: got n=-1")],
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
        errors=[Bad((0, 1, -1), ValueError, "linspace: got steps=-1")],
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
            Bad((np.array([1]), -1), ValueError, "one_hot: got depth=-1"),
        ],
    ),
    OpCase(
        ops.sequence_mask,
        lengths,
        dtypes=(int32, int64),
        grad=False,
        oracle=before_end,
        covers=[sequence_mask],
        errors=[Bad((ROWS, 3), TypeError, "sequence_mask: got indices of dtype float32")],
    ),
]
