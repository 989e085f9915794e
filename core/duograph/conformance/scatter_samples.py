"""Samples and oracles of conformance cases that gather, scatter or reduce segments by index.

`cases/indexing.py` lists the cases. A function that yields samples draws the arguments of a case,
an oracle computes its result with NumPy. An oracle must not call an op that a case tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtype import int32, int64
from .case import Array, Make, Oracle, Sample, Samples

if TYPE_CHECKING:
    from ..dtype import DType

__all__ = [
    "element_updates", "elements", "nd", "nd_updates", "of_zeros", "put", "put_elements", "put_nd",
    "rows", "segmented", "segments", "taken",
]  # fmt: skip


def distinct(make: Make, count: int, below: int, dtype: DType = int64) -> Array:
    """Return `count` distinct random indices below `below` for a test sample.

    With equal indices, finite differences would not approximate the gradient of a scatter.
    """
    return make.rng.permutation(below)[:count].astype(dtype.np)


def rows(once: bool) -> Samples:
    """Return a function that yields test samples of scatters: a tensor, indices, updates.

    `once` says whether all indices of a sample are different.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def at(*shape: int, below: int, dtype: DType = int64) -> Array:
            if once:
                size = int(np.prod(shape))
                return distinct(make, size, below, dtype).reshape(shape)
            return make.index(*shape, below=below, low=-below, dtype=dtype)

        yield Sample((make(5, 4), at(3, below=5), make(3, 4), 0))
        yield Sample((make(3, 6, 2), at(2, 2, below=6, dtype=int32), make(3, 2, 2, 2), 1))
        yield Sample((make(5), at(below=5), make(), 0), kind="zero_d")
        yield Sample((make(5, 0), at(2, below=5), make(2, 0), 0), kind="empty")
        yield Sample((make(5, 2), at(0, below=5), make(0, 2), 0), kind="empty")
        yield Sample((make(7, 13), at(5, below=13), make(7, 5), 1), kind="odd")
        yield Sample((make.strided(5, 4), at(3, below=5), make(3, 4), 0), kind="noncontiguous")
        if make.inexact:
            yield Sample((make.special(9, 2), at(3, below=9), make.special(3, 2), 0), kind="nan")
        twice = np.array([1, 3, 1, -4])
        yield Sample((make(5, 2), twice, make(4, 2), 0), kind="edge", name="duplicates")

    return samples


def put(add: bool) -> Oracle:
    """Return the oracle of a scatter along an axis, which adds the updates or writes them."""

    def oracle(x: Array, indices: Array, updates: Array, axis: int) -> Array:
        out = np.moveaxis(np.array(x), axis, 0)
        flat = updates.reshape(*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
        for i, row in zip(indices.reshape(-1), np.moveaxis(flat, axis, 0)):
            out[i] = out[i] + row if add else row
        return np.moveaxis(out, 0, axis)

    return oracle


def elements(make: Make) -> Iterator[Sample]:
    """Yield samples of gather_elements: a tensor, an axis, indices."""
    yield Sample((make(5, 4), 0, make.index(3, 4, below=5)))
    yield Sample((make(2, 6, 3), -2, make.index(2, 2, 3, below=6, low=-6, dtype=int32)))
    yield Sample((make(4, 5), 1, make.index(2, 7, below=5)), name="fewer rows")
    yield Sample((make(), 0, make.index(below=1)), kind="zero_d")
    yield Sample((make(5, 0), 0, make.index(2, 0, below=5)), kind="empty")
    yield Sample((make(5, 2), 0, make.index(0, 2, below=5)), kind="empty")
    yield Sample((make(7, 13), 1, make.index(7, 11, below=13)), kind="odd")
    yield Sample((make.strided(5, 4), 1, make.index(5, 2, below=4)), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(9), 0, make.index(9, below=9)), kind="nan")


def taken(x: Array, axis: int, index: Array) -> Array:
    """Return the result of gather_elements: the elements of `x` at `index` along an axis."""
    if x.ndim == 0:
        return x
    part = tuple(slice(None) if k == axis % x.ndim else slice(n) for k, n in enumerate(index.shape))
    return np.take_along_axis(x[part], index.astype(np.int64), axis)


def element_updates(make: Make) -> Iterator[Sample]:
    """Yield samples of scatters of elements: a tensor, an axis, indices, updates."""

    def at(*shape: int, axis: int, below: int, dtype: DType = int64) -> Array:
        """Return an index array of the given shape, with random ints from 0 to `below` - 1.

        Along `axis`, all indices are different.
        """
        other = [n for k, n in enumerate(shape) if k != axis]
        found = [distinct(make, shape[axis], below) for _ in range(int(np.prod(other)))]
        stacked = np.array(found, np.int64).reshape(*other, shape[axis])
        return np.moveaxis(stacked, -1, axis).astype(dtype.np)

    yield Sample((make(5, 4), 0, at(3, 4, axis=0, below=5), make(3, 4)))
    yield Sample((make(2, 6, 3), 1, at(2, 2, 3, axis=1, below=6, dtype=int32), make(2, 2, 3)))
    yield Sample((make(4, 5), 1, at(2, 3, axis=1, below=5), make(2, 3)), name="fewer rows")
    yield Sample((make(5, 4), 0, at(3, 4, axis=0, below=5), make(4, 4)), name="larger source")
    yield Sample((make(5, 0), 0, make.index(2, 0, below=5), make(2, 0)), kind="empty")
    yield Sample((make(5, 2), 0, make.index(0, 2, below=5), make(0, 2)), kind="empty")
    yield Sample((make(7, 13), 1, at(7, 11, axis=1, below=13), make(7, 11)), kind="odd")
    yield Sample(
        (make.strided(5, 4), 1, at(5, 2, axis=1, below=4), make(5, 2)), kind="noncontiguous"
    )
    if make.inexact:
        yield Sample((make.special(9), 0, at(9, axis=0, below=9), make.special(9)), kind="nan")
    twice = np.array([[1, 1, -4, 0]])
    yield Sample((make(1, 5), 1, twice, make(1, 4)), kind="edge", name="duplicates")


def put_elements(add: bool) -> Oracle:
    """Return the oracle of a scatter of elements, which adds the updates or writes them."""

    def oracle(x: Array, axis: int, index: Array, src: Array, reduction: str = "") -> Array:
        out = np.array(x)
        for at in np.ndindex(*index.shape):
            to = list(at)
            to[axis] = index[at]
            out[tuple(to)] = out[tuple(to)] + src[at] if add else src[at]
        return out

    return oracle


def nd(make: Make) -> Iterator[Sample]:
    """Yield samples of gather_nd: a tensor, and indices with one column for each indexed axis."""

    def at(*shape: int, of: tuple[int, ...], dtype: DType = int64) -> Array:
        columns = [make.index(*shape, below=n, low=-n) for n in of]
        return np.stack(columns, -1).astype(dtype.np)

    yield Sample((make(3, 4), at(5, of=(3, 4))))
    yield Sample((make(3, 4, 2), at(2, 2, of=(3,), dtype=int32)))
    yield Sample((make(3, 4), at(of=(3, 4))), kind="zero_d")
    yield Sample((make(3, 4), at(0, of=(3, 4))), kind="empty")
    yield Sample((make(3, 0), at(2, of=(3,))), kind="empty")
    yield Sample((make(7, 11, 3), at(13, of=(7, 11))), kind="odd")
    yield Sample((make.strided(4, 5), at(3, of=(4, 5))), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(3, 3), at(9, of=(3, 3))), kind="nan")


def nd_updates(low: float | None = None, high: float | None = None) -> Samples:
    """Return a function that yields samples of scatter_nd ops: a tensor, indices, updates.

    The elements are drawn from `low` to `high`.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def at(count: int, of: tuple[int, ...], dtype: DType = int64) -> Array:
            flat = distinct(make, count, int(np.prod(of)))
            return np.stack(np.unravel_index(flat, of), -1).astype(dtype.np)

        def x(*shape: int) -> Array:
            return make(*shape, low=low, high=high)

        yield Sample((x(3, 4), at(5, (3, 4)), x(5)))
        yield Sample((x(5, 2), at(3, (5,), int32), x(3, 2)))
        yield Sample((x(3, 4), at(1, (3, 4))[0], x()), kind="zero_d")
        yield Sample((x(3, 4), at(0, (3, 4)), x(0)), kind="empty")
        yield Sample((x(3, 0), at(2, (3,)), x(2, 0)), kind="empty")
        yield Sample((x(7, 11, 3), at(13, (7, 11)), x(13, 3)), kind="odd")
        strided = make.strided(4, 5, low=low, high=high)
        yield Sample((strided, at(3, (4, 5)), x(3)), kind="noncontiguous")
        if make.inexact:
            yield Sample((make.special(9), at(3, (9,)), make.special(3)), kind="nan")
        twice = np.array([[1], [0], [1], [-2], [1]])
        yield Sample((x(3, 2), twice, x(5, 2)), kind="edge", name="duplicates")

    return samples


def put_nd(mode: str) -> Oracle:
    """Return the oracle of a scatter_nd op, which combines old elements and updates by `mode`."""
    table: dict[str, Oracle] = {
        "update": lambda a, b: b,
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "min": np.minimum,
    }
    function = table[mode]

    def oracle(x: Array, indices: Array, updates: Array) -> Array:
        out = np.array(x)
        for at in np.ndindex(*indices.shape[:-1]):
            to = tuple(indices[at])
            out[to] = function(out[to], updates[at]).astype(x.dtype)
        return out

    return oracle


def of_zeros(make: Make) -> Iterator[Sample]:
    """Yield samples of scatter_nd into zeros: indices, updates, the shape of the result."""
    for sample in nd_updates()(make):
        x, indices, updates = sample.args
        yield Sample((indices, updates, x.shape), kind=sample.kind)


def segments(low: float | None = None, high: float | None = None) -> Samples:
    """Return a function that yields samples of segment ops: a tensor, ids, the number of segments.

    The elements are drawn from `low` to `high`.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def x(*shape: int) -> Array:
            return make(*shape, low=low, high=high)

        yield Sample((x(5, 2), np.array([0, 2, 0, 1, 2]), 3))
        yield Sample(
            (x(5, 2), np.array([0, 2, 0, 3, 2]), 4), kind="edge", grad=False, name="empty segment"
        )
        yield Sample((x(2, 3), np.array([[0, 1, -1], [1, 1, 2]], np.int32), 3))
        yield Sample((x(0, 2), np.zeros(0, np.int64), 2), kind="empty", grad=False)
        yield Sample((x(13, 3), make.rng.permutation(13) % 5, 5), kind="odd")
        yield Sample(
            (make.strided(4, 5, low=low, high=high), np.array([1, 0, 1, 1]), 2),
            kind="noncontiguous",
        )
        if make.inexact:
            yield Sample((make.special(9), make.index(9, below=2), 2), kind="nan")

    return samples


def segmented(mode: str) -> Oracle:
    """Return the oracle of the segment op `mode`: sum, prod, max or min of the rows with one id."""

    def oracle(x: Array, ids: Array, count: int) -> Array:
        start: Any = {"sum": 0, "prod": 1}.get(mode)
        if start is None:
            lowest = mode == "max"
            if x.dtype.name == "bfloat16":
                start = 3.3895313892515355e38 * (-1 if lowest else 1)
            else:
                info = np.iinfo(x.dtype) if x.dtype.kind in "iu" else np.finfo(x.dtype)
                start = info.min if lowest else info.max
        out = np.full((count, *x.shape[ids.ndim :]), start, x.dtype)
        function = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[mode]
        for at in np.ndindex(*ids.shape):
            if ids[at] >= 0:
                out[ids[at]] = function(out[ids[at]], x[at]).astype(x.dtype)
        return out

    return oracle
