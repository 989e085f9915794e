"""Conformance test cases of ops that sort, search and select by value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from ... import ops
from ...dtype import ALL, BOOL, REAL, bool_
from ...ops.sorting import searchsorted_by, sort_by, topk_by
from ...ops.value_sizes import nonzero_by, unique_by, unique_consecutive_by
from ..case import FOUR, NUMBER, ROWS, Array, Bad, Make, OpCase, Sample, Samples


def ordered(*calls: tuple[object, ...], **kwargs: object) -> Samples:
    """Return a function that yields test samples of a sorting op, with ties and NaN.

    Each of `calls` is a tuple of the arguments after the tensor; `kwargs` are passed to every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        for call in calls:
            yield Sample((make.distinct(3, 4), *call), kwargs)
            yield Sample((make.distinct(7, 13), *call), kwargs, "odd")
            wide = make.distinct(5, 8)
            yield Sample((wide.T, *call), kwargs, "noncontiguous")
            yield Sample((make(6, 5), *call), kwargs, "edge", grad=False, name="ties")
            if make.inexact:
                yield Sample((make.special(9, 6), *call), kwargs, "nan")
        yield Sample((make(0, 4), *calls[0]), kwargs, "empty")

    return samples


def arranged(x: Array, axis: int, descending: bool) -> Array:
    """Return a stable argsort along an axis, computed in Python, with NaN last."""
    sign = -1 if descending else 1

    def key(row: Array) -> list[int]:
        wide = row.astype(np.float64) if row.dtype.kind in "fV" else row.astype(object)
        nan = [bool(v != v) for v in wide]
        return sorted(range(len(row)), key=lambda i: (nan[i], 0 if nan[i] else sign * wide[i], i))

    if x.size == 0:
        return np.zeros(x.shape, np.int64)
    moved = np.moveaxis(x, axis, -1)
    order = np.array([key(row) for row in moved.reshape(-1, moved.shape[-1])])
    return np.moveaxis(order.reshape(moved.shape), -1, axis)


def sorted_pair(x: Array, axis: int = -1, descending: bool = False) -> tuple[Array, ...]:
    order = arranged(x, axis, descending)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def top(x: Array, k: int, dim: int | None = None, largest: bool = True) -> tuple[Array, ...]:
    axis = -1 if dim is None else dim
    order = np.take(arranged(x, axis, largest), np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def bounds(make: Make) -> Iterator[Sample]:
    x = np.sort(make(7).astype(np.float64 if make.inexact else make.dtype.np)).astype(make.dtype.np)
    for right in (False, True):
        yield Sample((x, make(3, 4)), {"right": right})
        yield Sample((x, x), {"right": right}, "odd")
    rows_ = np.sort(make(2, 5).astype(np.float64 if make.inexact else make.dtype.np), -1).astype(
        make.dtype.np
    )
    yield Sample((rows_, make(2, 3)), {"out_int32": True}, "broadcast")
    yield Sample((x, make()), kind="zero_d")
    yield Sample((make(0), make(3)), kind="empty")
    yield Sample((x, make(0)), kind="empty")
    yield Sample((x, make.strided(4, 5)), kind="noncontiguous")
    if make.inexact:
        yield Sample((x, make.special(9)), kind="nan")


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


def any_kind(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4),))
    yield Sample((make(),), kind="zero_d")
    yield Sample((make(0, 3),), kind="empty")
    yield Sample((make(7, 11),), kind="odd")
    yield Sample((make.strided(4, 5),), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(9),), kind="nan")


def repeated(make: Make) -> Iterator[Sample]:
    """Yield test samples with repeated elements, for ops that find unique values."""
    x = make.index(7, below=3, dtype=make.dtype) if make.dtype is not bool_ else make(7)
    yield Sample((x,))
    yield Sample((x[:6].reshape(2, 3),))
    yield Sample((make(),), kind="zero_d")
    yield Sample((make(0),), kind="empty")
    yield Sample(
        (make.index(31, below=5, dtype=make.dtype) if make.dtype is not bool_ else make(31),),
        kind="odd",
    )
    yield Sample((make.strided(4, 5),), kind="noncontiguous")


def first_seen(x: Array) -> tuple[Array, ...]:
    seen: list[object] = []
    inverse = []
    for v in x.reshape(-1):
        same = [i for i, w in enumerate(seen) if w == v]
        inverse.append(same[0] if same else len(seen))
        if not same:
            seen.append(v)
    return np.array(seen, x.dtype), np.array(inverse, np.int32).reshape(x.shape)


def runs(x: Array, return_inverse: bool = True, return_counts: bool = True) -> tuple[Array, ...]:
    values: list[object] = []
    inverse: list[int] = []
    counts: list[int] = []
    for v in x.reshape(-1):
        if not values or values[-1] != v:
            values.append(v)
            counts.append(0)
        counts[-1] += 1
        inverse.append(len(values) - 1)
    return (
        np.array(values, x.dtype),
        np.array(inverse, np.int64).reshape(x.shape),
        np.array(counts, np.int64),
    )


def masks(make: Make) -> Iterator[Sample]:
    for sample in any_kind(make):
        (x,) = sample.args
        yield Sample((x, np.asarray(make.rng.random(x.shape) < 0.6)), kind=sample.kind)
    yield Sample((make(3, 4), np.array([True, False, True, True])), kind="broadcast")


def picked(x: Array, mask: Array) -> Array:
    wide, where = np.broadcast_arrays(x, mask)
    return wide[where]


CASES = [
    OpCase(
        ops.masked_select,
        masks,
        dtypes=ALL,
        grad=(0,),
        oracle=picked,
        errors=[
            Bad((ROWS, FOUR), TypeError, "masked_select: mask has dtype float32"),
            Bad((ROWS, np.array([True] * 4)), ValueError, "masked_select: got shapes"),
        ],
    ),
    OpCase(
        nonzero_by,
        any_kind,
        oracle=np.argwhere,
        errors=[Bad(("text",), TypeError, "nonzero: got str")],
    ),
    OpCase(
        ops.unique,
        repeated,
        dtypes=ALL,
        grad=False,
        oracle=first_seen,
        covers=[unique_by],
        errors=[Bad(("text",), TypeError, "unique: got str")],
    ),
    OpCase(
        lambda x: ops.unique_consecutive(x, True, True),
        repeated,
        dtypes=ALL,
        grad=False,
        oracle=runs,
        covers=[unique_consecutive_by],
        name="unique_consecutive",
        errors=[Bad(("text",), TypeError, "unique_consecutive: got str")],
    ),
    OpCase(
        ops.sort,
        ordered((), (0,), (1, True)),
        dtypes=(*BOOL, *REAL),
        oracle=sorted_pair,
        covers=[sort_by],
        errors=[
            Bad((ROWS, 2), ValueError, "sort: got axis 2"),
            Bad((np.ones(2, np.complex64),), TypeError, "sort: .*complex64"),
        ],
    ),
    OpCase(
        ops.topk,
        ordered((2,), (3, 0), (2, 1, False)),
        dtypes=(*BOOL, *REAL),
        oracle=top,
        covers=[topk_by],
        errors=[
            Bad((ROWS, 4), ValueError, "topk: got k=4 for axis 1 of size 3"),
            Bad((NUMBER, 1), ValueError, "topk: got a 0-d"),
        ],
    ),
    OpCase(
        ops.searchsorted,
        bounds,
        dtypes=REAL,
        grad=False,
        oracle=found,
        covers=[searchsorted_by],
        errors=[
            Bad(
                (ROWS, np.ones((3, 3), np.float32)),
                ValueError,
                "searchsorted: got a sequence of shape",
            ),
            Bad((FOUR, FOUR), ValueError, "searchsorted: got side=", {"side": "middle"}),
        ],
    ),
]
