"""Conformance test cases of reductions, cumulative sums, softmax and functions composed of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...dtype import ALL, BOOL, FLOATING, NUMERIC, REAL, bfloat16, float16, float32, float64
from ...ops.norms import (
    clip_by_global_norm_of,
    clip_by_norm_of,
    cosine_similarity,
    norm2,
    vector_norm,
)
from ...ops.reduction import (
    argmax_along,
    argmin_along,
    max_with_index,
    min_with_index,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
)
from ...ops.scan import scan_logsumexp, scan_max, scan_min, scan_prod, scan_sum
from ...ops.softmax_ops import (
    log_softmax_along,
    log_softmax_grad,
    logsumexp,
    softmax_along,
    softmax_grad,
)
from ...ops.statistics import (
    median_along,
    reduce_var,
)
from ..case import ROWS, Array, Bad, Make, OpCase, Oracle, Sample, Samples, binary, reduction

EMPTY = np.ones((0, 3), np.float32)
NUMBERS = np.array([1, 2])
IMAGINARY = np.ones(3, np.complex64)
RANGE = Bad((ROWS, 5), ValueError, "axis 5")
TWICE = Bad((ROWS, (0, -2)), ValueError, "twice")
SUMS = {float16: 2e-2, bfloat16: 1e-1, float32: 2e-5}
SUMS_WHY = "sums of a thousand elements, in whatever order"


def wide(x: Array) -> Array:
    return np.asarray(x, np.float64) if np.asarray(x).dtype.kind in "fV" else x


def primitive(
    function: Callable[..., object], distinct: bool = False, empty: bool = True, **options: Any
) -> OpCase:
    samples = reduction(primitive=True, keepdims="keepdims", distinct=distinct, empty=empty)
    bad = [Bad(("text", (0,), False), TypeError, "str")]
    if not empty:
        bad.append(Bad((EMPTY, (0,), False), ValueError, r"\(0, 3\)"))
    return OpCase(function, samples, errors=bad, **options)


def along(
    *, distinct: bool = False, low: float | None = None, empty: bool = True, **kwargs: object
) -> Samples:
    """Return a function that yields test samples of a function of a tensor and one axis.

    With `distinct`, all elements are different. `low` is the least element; `empty` says whether an
    axis of length 0 is tested. `kwargs` are passed to every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def x(*shape: int) -> Array:
            return make.distinct(*shape) if distinct else make(*shape, low=low)

        yield Sample((x(3, 4),), {"axis": 1, **kwargs})
        yield Sample((x(3, 4, 2),), {"axis": 0, **kwargs})
        yield Sample((x(2, 5, 3),), {"axis": 1, **kwargs})
        yield Sample((x(0, 3),), {"axis": 1, **kwargs}, "empty")
        if empty:
            yield Sample((x(0, 3),), {"axis": 0, **kwargs}, "empty")
        yield Sample((x(7, 13),), {"axis": 0, **kwargs}, "odd")
        yield Sample((x(3, 131),), {"axis": 1, **kwargs}, "odd", grad=False)
        yield Sample(
            (make.strided(4, 5, low=low),),
            {"axis": 0, **kwargs},
            "noncontiguous",
            grad=not distinct,
        )
        if make.inexact:
            yield Sample((make.special(9, 2, low=low),), {"axis": 0, **kwargs}, "nan")

    return samples


NO_AXIS = {"zero_d": "a 0-d tensor has no axis; the public function makes it one of one element"}


def scans(make: Make) -> Iterator[Sample]:
    for sample in along()(make):
        if make.dtype.is_integer:
            sample = Sample(
                (sample.args[0] // 3, *sample.args[1:]), sample.kwargs, sample.kind, sample.grad
            )
        for exclusive in (False, True):
            for reverse in (False, True):
                flags = {"exclusive": exclusive, "reverse": reverse}
                yield Sample(sample.args, {**sample.kwargs, **flags}, sample.kind, sample.grad)


def products(make: Make) -> Iterator[Sample]:
    """Yield test samples of a product, with values near 1 and a few zeros.

    At elements that are 0, the gradient of a product cannot be computed by division.
    """
    for sample in scans(make):
        x = sample.args[0]
        if sample.kind == "nan" or x.dtype.kind in "biu":
            yield sample
        else:
            yield Sample(
                (np.asarray(x * 0.25 + 1).astype(x.dtype),), sample.kwargs, sample.kind, sample.grad
            )
    if make.inexact:
        x = make(3, 5, low=0.5)
        x[0, 2] = x[1, 0] = x[1, 3] = 0
        yield Sample(
            (x,),
            {"axis": 1, "exclusive": False, "reverse": False},
            "edge",
            grad=False,
            name="zeros",
        )


def scanned(accumulate: Callable[..., Array], neutral: int) -> Oracle:
    def oracle(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
        dtype = x.dtype
        y = np.flip(wide(x), axis) if reverse else wide(x)
        if exclusive and y.shape[axis]:
            first = np.full_like(np.take(y, [0], axis), neutral)
            y = np.concatenate([first, np.take(y, range(y.shape[axis] - 1), axis)], axis)
        y = accumulate(y, axis=axis, dtype=y.dtype)
        return (np.flip(y, axis) if reverse else y).astype(dtype)

    return oracle


def running(better: Callable[..., Array]) -> Oracle:
    def oracle(x: Array, axis: int) -> tuple[Array, ...]:
        values, index = np.array(x), np.zeros(x.shape, np.int64)
        v, at = np.moveaxis(values, axis, 0), np.moveaxis(index, axis, 0)
        for k in range(1, len(v)):
            take = (v[k] != v[k]) | (better(v[k], v[k - 1]) & (v[k - 1] == v[k - 1]))
            v[k] = np.where(take, v[k], v[k - 1])
            at[k] = np.where(take, k, at[k - 1])
        return values, index

    return oracle


def softmax_of(x: Array, axis: int) -> Array:
    y = wide(x)
    if not y.size:
        return x
    e = np.exp(y - y.max(axis, keepdims=True))
    return (e / e.sum(axis, keepdims=True)).astype(x.dtype)


def log_softmax_of(x: Array, axis: int) -> Array:
    y = wide(x)
    if not y.size:
        return x
    y = y - y.max(axis, keepdims=True)
    return (y - np.log(np.exp(y).sum(axis, keepdims=True))).astype(x.dtype)


def pairs(make: Make) -> Iterator[Sample]:
    """Yield test samples for the gradients of softmax and log_softmax: result and cotangent."""
    for sample in along()(make):
        x = -np.abs(sample.args[0])  # as results of log_softmax are
        yield Sample((x, make(*x.shape)), sample.kwargs, sample.kind, sample.grad)


def logsumexp_of(x: Array, axis: Sequence[int], keepdims: bool) -> Array:
    y = wide(x)
    if any(y.shape[i] == 0 for i in axis):
        return np.full(y.sum(axis, keepdims=keepdims).shape, -np.inf).astype(x.dtype)
    top = y.max(axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    found = np.log(np.exp(y - top).sum(axis, keepdims=True)) + top
    return (found if keepdims else found.reshape(y.sum(axis).shape)).astype(x.dtype)


def spreads(make: Make) -> Iterator[Sample]:
    for sample in reduction(primitive=True, keepdims="keepdims", empty=False)(make):
        yield Sample(sample.args, {**sample.kwargs, "ddof": 0}, sample.kind, sample.grad)
    yield Sample((make(3, 4),), {"axis": (1,), "keepdims": False, "ddof": 1})


def norms(make: Make) -> Iterator[Sample]:
    for p in (1.0, 2.0, 3.0, float("inf"), float("-inf"), 0.0):
        for sample in reduction(0.25, 2.0, primitive=True, keepdims="keepdims", empty=False)(make):
            if sample.kind in ("zero_d", "odd") and p != 2.0:
                continue
            x = sample.args[0]
            smooth = p in (1.0, 2.0, 3.0)
            yield Sample((x,), {**sample.kwargs, "p": p}, sample.kind, smooth)


def norm_of(x: Array, p: float, axis: Sequence[int], keepdims: bool) -> Array:
    y = np.abs(wide(x))
    if p == float("inf"):
        out = y.max(axis, keepdims=keepdims)
    elif p == float("-inf"):
        out = y.min(axis, keepdims=keepdims)
    elif p == 0:
        out = (y != 0).sum(axis, keepdims=keepdims)
    else:
        out = (y**p).sum(axis, keepdims=keepdims) ** (1 / p)
    return np.asarray(out).astype(x.dtype)


def medians(make: Make) -> Iterator[Sample]:
    for ignore in (False, True):
        for sample in along(distinct=True, empty=False)(make):
            if sample.kind == "noncontiguous":
                sample = Sample((make.distinct(5, 4).T,), sample.kwargs, sample.kind)
            yield Sample(
                sample.args,
                {**sample.kwargs, "keepdims": ignore, "ignore_nan": ignore},
                sample.kind,
            )


def median_of(x: Array, axis: int, keepdims: bool, ignore_nan: bool) -> tuple[Array, ...]:
    order = np.argsort(wide(x), axis, kind="stable")
    moved = np.moveaxis(x, axis, -1)
    ordered = np.moveaxis(order, axis, -1)
    values, index = np.empty(moved.shape[:-1], x.dtype), np.empty(moved.shape[:-1], np.int64)
    for at in np.ndindex(values.shape):
        line = moved[at]
        good = int((line == line).sum())
        k = max(good - 1, 0) // 2 if ignore_nan or good == len(line) else good
        index[at] = ordered[at][k]
        values[at] = line[index[at]]
    if keepdims:
        return np.expand_dims(values, axis), np.expand_dims(index, axis)
    return values, index


def clipped(make: Make) -> Iterator[Sample]:
    limit = np.asarray(1.0).astype(make.dtype.np)
    for sample in reduction(0.25, 2.0, primitive=True, keepdims=None, empty=False)(make):
        yield Sample((sample.args[0], limit), sample.kwargs, sample.kind, sample.grad)


def clip_of(x: Array, limit: float, axis: Sequence[int] | int | None) -> Array:
    y = wide(x)
    total = np.sqrt((y * y).sum(axis, keepdims=True))
    return (y * (float(limit) / np.maximum(total, float(limit)))).astype(x.dtype)


def together(make: Make) -> Iterator[Sample]:
    yield Sample(([make(3, 4), make(5)], 1.0, None))
    yield Sample(([make(3, 4)], 100.0, None))
    yield Sample(([make(3, 4), make(5)], 1.0, 2.5))
    yield Sample(([make(), make(2)], 1.0, None), kind="zero_d")
    yield Sample(([make(0, 3), make(2)], 1.0, None), kind="empty")
    yield Sample(([make(7, 11, 3), make(13)], 0.5, None), kind="odd")
    yield Sample(([make.strided(4, 5)], 0.5, None), kind="noncontiguous")
    if make.inexact:
        yield Sample(([make.special(9), make(3)], 1.0, None), kind="nan")


def clip_together(x: Array, limit: float, size: float | None) -> tuple[Array, ...]:
    total = np.sqrt(sum((wide(t) ** 2).sum() for t in x)) if size is None else size
    return tuple((wide(t) * (limit / np.maximum(total, limit))).astype(t.dtype) for t in x)


def vectors(make: Make) -> Iterator[Sample]:
    for sample in binary(0.25, 2.0, scalar=None)(make):
        x, y = sample.args
        if sample.kind in ("zero_d", "broadcast"):
            continue
        yield Sample(
            (x, y if y.shape == x.shape else make(*x.shape)),
            {"axis": x.ndim - 1, "eps": 1e-6},
            sample.kind,
        )


def cosine_of(x: Array, y: Array, axis: int, eps: float) -> Array:
    a, b = wide(x), wide(y)
    sizes = [np.sqrt(np.maximum((v * v).sum(axis), eps * eps)) for v in (a, b)]
    return ((a * b).sum(axis) / sizes[0] / sizes[1]).astype(x.dtype)


def logs(make: Make) -> Iterator[Sample]:
    for sample in along()(make):
        yield Sample(sample.args, {**sample.kwargs, "reverse": False}, sample.kind, sample.grad)
    yield Sample((make(3, 5),), {"axis": 1, "reverse": True})


def logcumsumexp_of(x: Array, axis: int, reverse: bool) -> Array:
    y = np.flip(wide(x), axis) if reverse else wide(x)
    out = np.logaddexp.accumulate(y, axis) if x.size else y
    return (np.flip(out, axis) if reverse else out).astype(x.dtype)


SOFT = [Bad((NUMBERS, 0), TypeError, "int64")]

CASES = [
    primitive(reduce_mean, tol=SUMS, why=SUMS_WHY, grad_tol=SUMS),
    primitive(reduce_max, distinct=True, empty=False),
    primitive(reduce_min, distinct=True, empty=False),
    OpCase(
        reduce_prod,
        reduction(0.8, 1.2, primitive=True, keepdims="keepdims"),
        errors=[Bad((ROWS, 0, False), TypeError, "axis=0; wanted a tuple")],
        tol={float16: 1e-1, bfloat16: 5e-1, float32: 5e-4, float64: 1e-10},
        grad_tol={float16: 2e-1, bfloat16: 1.0, float32: 5e-3, float64: 1e-9},
        why="products of a thousand factors",
    ),
    primitive(reduce_all),
    primitive(reduce_any),
    OpCase(
        argmax_along,
        along(empty=False),
        without=NO_AXIS,
        errors=[Bad((EMPTY, 0), ValueError, r"\(0, 3\)")],
    ),
    OpCase(
        argmin_along,
        along(empty=False),
        without=NO_AXIS,
        errors=[Bad((EMPTY, 0), ValueError, r"\(0, 3\)")],
    ),
    OpCase(
        max_with_index,
        along(distinct=True, empty=False, keepdims=False),
        without=NO_AXIS,
        errors=[Bad((IMAGINARY, 0, False), TypeError, "complex64")],
    ),
    OpCase(
        min_with_index,
        along(distinct=True, empty=False, keepdims=True),
        without=NO_AXIS,
        errors=[Bad((IMAGINARY, 0, False), TypeError, "complex64")],
    ),
    OpCase(
        scan_sum,
        scans,
        oracle=scanned(np.cumsum, 0),
        without=NO_AXIS,
        tol=SUMS,
        grad_tol=SUMS,
        why=SUMS_WHY,
        errors=[Bad((np.ones(3, bool), 0, False, False), TypeError, "bool")],
    ),
    OpCase(
        scan_prod,
        products,
        oracle=scanned(np.cumprod, 1),
        without=NO_AXIS,
        tol={float16: 2e-1, bfloat16: 1.0, float32: 1e-3, float64: 1e-9},
        grad_tol={float16: 1.0, bfloat16: 8.0, float32: 1e-2, float64: 1e-7},
        why="products of many factors",
        errors=[Bad((np.ones(3, bool), 0, False, False), TypeError, "bool")],
    ),
    OpCase(
        scan_max,
        along(distinct=True),
        oracle=running(np.greater_equal),
        without=NO_AXIS,
        errors=[Bad((IMAGINARY, 0), TypeError, "complex64")],
    ),
    OpCase(
        scan_min,
        along(distinct=True),
        oracle=running(np.less_equal),
        without=NO_AXIS,
        errors=[Bad((IMAGINARY, 0), TypeError, "complex64")],
    ),
    OpCase(
        scan_logsumexp,
        logs,
        oracle=logcumsumexp_of,
        without=NO_AXIS,
        tol={float16: 1e-2, bfloat16: 1e-1},
        grad_tol={float16: 5e-2, bfloat16: 5e-1},
        why="logarithms of sums",
        errors=[Bad((IMAGINARY, 0, False), TypeError, "complex64")],
    ),
    OpCase(softmax_along, along(), oracle=softmax_of, without=NO_AXIS, errors=SOFT),
    OpCase(log_softmax_along, along(), oracle=log_softmax_of, without=NO_AXIS, errors=SOFT),
    OpCase(
        softmax_grad,
        pairs,
        without=NO_AXIS,
        errors=[Bad((NUMBERS, NUMBERS, 0), TypeError, "int64")],
        tol={float16: 2e-2, bfloat16: 2e-1, float32: 2e-5},
        grad_tol={float16: 1e-1, bfloat16: 8e-1, float32: 2e-4},
        why="sums of products",
    ),
    OpCase(
        log_softmax_grad,
        pairs,
        without=NO_AXIS,
        errors=[Bad((NUMBERS, NUMBERS, 0), TypeError, "int64")],
        tol={float16: 5e-2, bfloat16: 5e-1, float32: 1e-4},
        grad_tol={float16: 3e-1, bfloat16: 2.0, float32: 1e-3},
        why="sums times exponentials",
    ),
    OpCase(
        logsumexp,
        reduction(primitive=True, keepdims="keepdims"),
        oracle=logsumexp_of,
        errors=[Bad((NUMBERS, (0,), False), TypeError, "int64")],
    ),
    OpCase(
        reduce_var,
        spreads,
        tol=SUMS,
        grad_tol=SUMS,
        why=SUMS_WHY,
        oracle=lambda x, axis, keepdims, ddof: np.asarray(
            np.var(wide(x), axis=axis, keepdims=keepdims, ddof=ddof)
        ).astype(x.dtype),
        errors=[Bad((NUMBERS, (0,), False, 0), TypeError, "int64")],
    ),
    OpCase(
        vector_norm,
        norms,
        oracle=norm_of,
        covers=[norm2],
        tol=SUMS | {float64: 1e-11},
        grad_tol=SUMS | {float32: 1e-4, float64: 1e-11},
        why=SUMS_WHY,
        errors=[Bad((NUMBERS, 2.0, (0,), False), TypeError, "int64")],
    ),
    OpCase(
        median_along,
        medians,
        dtypes=REAL,
        oracle=median_of,
        without=NO_AXIS,
        why="bool and complex are not meant",
        errors=[Bad((IMAGINARY, 0, False, False), TypeError, "complex64")],
    ),
    OpCase(
        clip_by_norm_of,
        clipped,
        oracle=clip_of,
        tol={float16: 1e-2, bfloat16: 1e-1},
        grad_tol={float16: 5e-2, bfloat16: 4e-1, float32: 1e-4},
        why="a quotient of sums",
        grad=(0,),
        errors=[Bad((NUMBERS, 1.0, (0,)), TypeError, "int64")],
    ),
    OpCase(
        clip_by_global_norm_of,
        together,
        dtypes=FLOATING,
        oracle=clip_together,
        tol={float16: 1e-2, bfloat16: 1e-1},
        grad_tol={float16: 5e-2, bfloat16: 4e-1, float32: 1e-4},
        why="a quotient of sums; integers are not meant",
        errors=[Bad(([], 1.0, None), TypeError, "empty")],
    ),
    OpCase(
        cosine_similarity,
        vectors,
        oracle=cosine_of,
        tol={float16: 1e-2, bfloat16: 1e-1},
        grad_tol={float16: 5e-2, bfloat16: 4e-1, float32: 1e-4},
        why="a quotient of sums",
        without={**NO_AXIS, "broadcast": "the public function broadcasts"},
        errors=[Bad((NUMBERS, NUMBERS, 0, 1e-6), TypeError, "int64")],
    ),
    # ---- public functions ----
    OpCase(
        ops.sum,
        reduction(),
        dtypes=ALL,
        name="sum function",
        errors=[RANGE, TWICE],
        tol=SUMS,
        grad_tol=SUMS,
        why=SUMS_WHY,
        oracle=lambda x, axis=None, keep_dims=False: np.asarray(
            np.sum(x if x.dtype.kind in "biuc" else wide(x), axis=axis, keepdims=keep_dims)
        ).astype(np.int64 if x.dtype.kind in "biu" else x.dtype),
    ),
    OpCase(
        ops.prod,
        reduction(0.8, 1.2),
        dtypes=ALL,
        name="prod function",
        errors=[RANGE, TWICE],
        tol={float16: 1e-1, bfloat16: 5e-1, float32: 5e-4, float64: 1e-10},
        grad_tol={float16: 2e-1, bfloat16: 1.0, float32: 5e-3, float64: 1e-9},
        why="products of a thousand factors",
    ),
    OpCase(
        ops.mean,
        reduction(),
        dtypes=NUMERIC,
        name="mean function",
        errors=[RANGE],
        tol=SUMS,
        grad_tol=SUMS,
        why=SUMS_WHY,
    ),
    OpCase(ops.all, reduction(), dtypes=ALL, name="all function", errors=[RANGE], grad=False),
    OpCase(ops.any, reduction(), dtypes=ALL, name="any function", errors=[RANGE], grad=False),
    OpCase(
        ops.amax,
        reduction(distinct=True, empty=False),
        dtypes=BOOL + REAL,
        name="amax function",
        errors=[RANGE],
    ),
    OpCase(
        ops.amin,
        reduction(distinct=True, empty=False),
        dtypes=BOOL + REAL,
        name="amin function",
        errors=[RANGE],
    ),
    OpCase(
        ops.max,
        reduction(distinct=True, empty=False, several=False),
        dtypes=BOOL + REAL,
        name="max function",
        errors=[RANGE],
    ),
    OpCase(
        ops.argmax,
        reduction(distinct=True, empty=False, several=False),
        dtypes=BOOL + REAL,
        name="argmax function",
        errors=[RANGE],
        grad=False,
    ),
    OpCase(
        ops.argmin,
        reduction(distinct=True, empty=False, several=False),
        dtypes=BOOL + REAL,
        name="argmin function",
        errors=[RANGE],
        grad=False,
    ),
    OpCase(
        ops.std,
        reduction(keepdims="keepdims", empty=False),
        dtypes=FLOATING,
        name="std function",
        errors=[RANGE],
        tol=SUMS,
        grad_tol=SUMS | {float32: 1e-4},
        why=SUMS_WHY,
        grad=False,
    ),
    OpCase(
        ops.count_nonzero,
        reduction(),
        dtypes=ALL,
        name="count_nonzero function",
        errors=[RANGE],
        grad=False,
    ),
]
