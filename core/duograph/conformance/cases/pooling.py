"""Conformance test cases of pooling, unfold and fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtype import FLOATING, bfloat16, float16
from ...ops.adaptive_pooling import adaptive_avg, adaptive_max
from ...ops.channels_last import (
    avg_pool_channels_last,
    avg_pool_grad_channels_last,
    max_pool_channels_last,
    max_pool_grad_channels_last,
    max_pool_indices_channels_last,
)
from ...ops.convolution_functions import fold, unfold
from ...ops.pooling import (
    avg_pool,
    avg_pool_grad,
    max_pool,
    max_pool_grad,
)
from ..case import ROWS, Array, Bad, Make, OpCase, Sample, Samples
from .convolution import (
    IMAGE,
    IMAGINARY,
    NO_POINT,
    Ints,
    Pairs,
    array_of,
    last,
    last_of,
    shape_after,
    wide,
)

INDICES = np.zeros((1, 3, 4), np.int64)
POINT = ((1,), (1,), ((0, 0),), (1,))  # windows of one element

POOLS: list[tuple[str, Any, Any, Any, Any, Any]] = [
    ("normal", (2, 3, 7), (3,), (2,), ((1, 1),), (1,)),
    ("normal", (1, 2, 5, 6), (2, 3), (2, 1), ((0, 1), (1, 1)), (1, 2)),
    ("normal", (1, 1, 3, 4, 3), (2, 2, 2), (1, 1, 1), ((0, 0),) * 3, (1, 1, 1)),
    ("normal", (2, 1, 4, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ("empty", (0, 2, 4, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ("odd", (3, 5, 11, 7), (3, 2), (2, 3), ((1, 1), (1, 0)), (1, 1)),
    ("noncontiguous", (2, 3, 4, 5), (2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ("nan", (1, 2, 5, 5), (2, 2), (1, 1), ((0, 1), (1, 0)), (1, 1)),
]


def max_pools(make: Make) -> Iterator[Sample]:
    for kind, x, kernel, stride, padding, dilation in POOLS:
        if kind == "nan" and not make.inexact:
            continue
        array = (
            array_of(make, kind, x, 0) if kind in ("nan", "noncontiguous") else make.distinct(*x)
        )
        common = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        yield Sample((array,), common, kind, kind != "noncontiguous")


def max_pool_of(
    x: Array, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints
) -> tuple[Array, ...]:
    out = shape_after(x.shape, (x.shape[1], 0, *kernel), stride, padding, dilation)
    values, index = np.empty(out, x.dtype), np.empty(out, np.int64)
    size = x.shape[2:]
    for at in np.ndindex(*out):
        best: Any = None
        for k in np.ndindex(*kernel):
            i = tuple(
                a * s - low + b * d
                for a, b, s, (low, _), d in zip(at[2:], k, stride, padding, dilation)
            )
            if all(0 <= a < n for a, n in zip(i, size)):
                v = x[(*at[:2], *i)]
                if best is None or (best[0] == best[0] and (v > best[0] or v != v)):
                    best = (v, int(np.ravel_multi_index(i, size)))
        values[at], index[at] = best
    return values, index


def max_pool_grads(make: Make) -> Iterator[Sample]:
    for kind, x, kernel, stride, padding, dilation in POOLS:
        if kind == "nan" and not make.inexact:
            continue
        out = shape_after(x, (x[1], 0, *kernel), stride, padding, dilation)
        common = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        _, index = max_pool_of(make.distinct(*x), **common)
        yield Sample((array_of(make, kind, out, 0), index), {"input_shape": x, **common}, kind)


def max_pool_grad_of(
    dout: Array,
    index: Array,
    input_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
) -> Array:
    dx = np.zeros((*input_shape[:2], int(np.prod(input_shape[2:]))), wide(dout).dtype)
    for at in np.ndindex(*dout.shape):
        dx[(*at[:2], index[at])] += wide(dout)[at]
    return dx.reshape(input_shape).astype(dout.dtype)


def avg_pools(of_gradient: bool) -> Samples:
    def samples(make: Make) -> Iterator[Sample]:
        for include, divisor in ((True, 0), (False, 0), (True, 3)):
            for kind, x, kernel, stride, padding, _ in POOLS:
                if kind == "nan" and not make.inexact:
                    continue
                one = (1,) * len(kernel)
                common = {"kernel": kernel, "stride": stride, "padding": padding,
                          "count_include_pad": include, "divisor": divisor}  # fmt: skip
                out = shape_after(x, (x[1], 0, *kernel), stride, padding, one)
                if of_gradient:
                    yield Sample(
                        (array_of(make, kind, out, 0),), {"input_shape": x, **common}, kind
                    )
                else:
                    yield Sample((array_of(make, kind, x, 0),), common, kind)

    return samples


def _cells(size: Ints, out: Ints, kernel: Ints, stride: Ints, padding: Pairs) -> Iterator[Any]:
    """Yield (output position, input positions in its window) of a sliding window."""
    for o in np.ndindex(*out):
        inside = []
        for k in np.ndindex(*kernel):
            i = tuple(a * s - low + b for a, b, s, (low, _) in zip(o, k, stride, padding))
            if all(0 <= a < n for a, n in zip(i, size)):
                inside.append(i)
        yield o, inside


def avg_pool_of(
    x: Array, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool, divisor: int
) -> Array:
    out = shape_after(x.shape, (x.shape[1], 0, *kernel), stride, padding, (1,) * len(kernel))
    y = np.zeros(out)
    every = slice(None)
    for o, inside in _cells(x.shape[2:], out[2:], kernel, stride, padding):
        count = divisor or (int(np.prod(kernel)) if count_include_pad else max(len(inside), 1))
        y[(every, every, *o)] = (
            sum(x[(every, every, *i)].astype(np.float64) for i in inside) / count
        )
    return y.astype(x.dtype)


def avg_pool_grad_of(
    dout: Array,
    input_shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    count_include_pad: bool,
    divisor: int,
) -> Array:
    dx = np.zeros(input_shape)
    every = slice(None)
    for o, inside in _cells(input_shape[2:], dout.shape[2:], kernel, stride, padding):
        count = divisor or (int(np.prod(kernel)) if count_include_pad else max(len(inside), 1))
        for i in inside:
            dx[(every, every, *i)] += dout[(every, every, *o)].astype(np.float64) / count
    return dx.astype(dout.dtype)


def adaptive(distinct: bool) -> Samples:
    def samples(make: Make) -> Iterator[Sample]:
        rows: list[tuple[str, Ints, Ints]] = [
            ("normal", (2, 3, 9), (4,)),
            ("normal", (1, 2, 6, 5), (3, 2)),
            ("normal", (1, 1, 4, 3, 5), (2, 3, 2)),
            ("empty", (0, 2, 4, 4), (2, 3)),
            ("odd", (3, 5, 11, 7), (4, 3)),
            ("noncontiguous", (2, 3, 4, 5), (3, 2)),
            ("nan", (1, 2, 5, 5), (2, 3)),
        ]
        for kind, x, out in rows:
            array = array_of(make, kind, x, 0)
            if distinct and kind in ("normal", "odd"):
                array = make.distinct(*x)
            yield Sample((array, out), kind=kind, grad=not (distinct and kind == "noncontiguous"))

    return samples


def _bins(n: int, out: int) -> list[tuple[int, int]]:
    return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def adaptive_avg_of(x: Array, output_size: Ints) -> Array:
    y = np.zeros((*x.shape[:2], *output_size))
    every = slice(None)
    bins = [_bins(n, o) for n, o in zip(x.shape[2:], output_size)]
    for o in np.ndindex(*output_size):
        where = tuple(slice(*bins[i][a]) for i, a in enumerate(o))
        part = wide(x)[(every, every, *where)]
        y[(every, every, *o)] = part.mean(tuple(range(2, x.ndim)))
    return y.astype(x.dtype)


def adaptive_max_of(x: Array, output_size: Ints) -> tuple[Array, ...]:
    shape = (*x.shape[:2], *output_size)
    values, index = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    bins = [_bins(n, o) for n, o in zip(x.shape[2:], output_size)]
    size = x.shape[2:]
    for at in np.ndindex(*shape):
        best: Any = None
        for i in np.ndindex(*size):
            if all(bins[j][a][0] <= c < bins[j][a][1] for j, (a, c) in enumerate(zip(at[2:], i))):
                v = x[(*at[:2], *i)]
                if best is None or (best[0] == best[0] and (v > best[0] or v != v)):
                    best = (v, int(np.ravel_multi_index(i, size)))
        values[at], index[at] = best
    return values, index


def foldings(of_fold: bool) -> Samples:
    def samples(make: Make) -> Iterator[Sample]:
        for kind, x, kernel, stride, padding, dilation in POOLS:
            if kind == "nan" and not make.inexact:
                continue
            out = shape_after(x, (x[1], 0, *kernel), stride, padding, dilation)
            if of_fold:
                columns = (x[0], x[1] * int(np.prod(kernel)), int(np.prod(out[2:])))
                array = make.strided(*columns) if kind == "noncontiguous" else make(*columns)
                if kind == "nan":
                    array[0, 1, 2] = np.nan
                yield Sample((array, x[2:], kernel, stride, padding, dilation), kind=kind)
            else:
                yield Sample(
                    (array_of(make, kind, x, 0), kernel, stride, padding, dilation), kind=kind
                )

    return samples


CASES = [
    OpCase(
        max_pool,
        max_pools,
        oracle=max_pool_of,
        without=NO_POINT,
        errors=[
            Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), (1, 1)), ValueError, "kernel of 5"),
            Bad((ROWS, (1,), (1,), ((0, 0),), (1,)), ValueError, r"\(2, 3\)"),
            Bad((IMAGINARY, (1,), (1,), ((0, 0),), (1,)), TypeError, "complex64"),
        ],
    ),
    OpCase(
        max_pool_grad,
        max_pool_grads,
        oracle=max_pool_grad_of,
        grad=(0,),
        without=NO_POINT,
        errors=[
            Bad(
                (IMAGINARY, INDICES, (1, 3, 4), *POINT),
                TypeError,
                "complex64",
            ),
            Bad((ROWS, np.zeros((2, 3), np.int64), (2, 3), *POINT), ValueError, "spatial axes"),
            Bad(
                (np.ones((1, 3, 4)), INDICES, (1, 3, 5), *POINT),
                ValueError,
                r"spatial axes \(5,\)",
            ),
        ],
        tol={float16: 1e-2, bfloat16: 1e-1},
        why="several cotangents meet in one element",
    ),
    OpCase(
        avg_pool,
        avg_pools(False),
        oracle=avg_pool_of,
        without=NO_POINT,
        dtypes=FLOATING,
        tol={float16: 1e-2, bfloat16: 5e-2},
        why="means of integers round as the sum over the divisor does in floating point, which "
        "no one asks for",
        errors=[Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), True, 0), ValueError, "kernel of 5")],
    ),
    OpCase(
        max_pool_channels_last,
        last(max_pools),
        oracle=last_of(max_pool_of),
        without=NO_POINT,
        errors=[
            Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), (1, 1)), ValueError, "kernel of 5"),
            Bad((IMAGINARY, (1,), (1,), ((0, 0),), (1,)), TypeError, "complex64"),
        ],
    ),
    OpCase(
        max_pool_indices_channels_last,
        last(max_pools),
        oracle=last_of(max_pool_of, results=2),
        without=NO_POINT,
        errors=[
            Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), (1, 1)), ValueError, "kernel of 5"),
            Bad((IMAGINARY, (1,), (1,), ((0, 0),), (1,)), TypeError, "complex64"),
        ],
    ),
    OpCase(
        max_pool_grad_channels_last,
        last(max_pool_grads, 2),
        oracle=last_of(max_pool_grad_of, 2),
        grad=(0,),
        without=NO_POINT,
        errors=[
            Bad((IMAGINARY, INDICES, (1, 4, 3), *POINT), TypeError, "complex64"),
            Bad(
                (np.ones((1, 3, 4)), INDICES, (1, 4, 5), *POINT), ValueError, r"spatial axes \(5,\)"
            ),
        ],
        tol={float16: 1e-2, bfloat16: 1e-1},
        why="several cotangents meet in one element",
    ),
    OpCase(
        avg_pool_grad_channels_last,
        last(avg_pools(True)),
        oracle=last_of(avg_pool_grad_of),
        without=NO_POINT,
        dtypes=FLOATING,
        tol={float16: 1e-2, bfloat16: 1e-1},
        why="as for avg_pool_grad",
        errors=[
            Bad((IMAGINARY, (1, 4, 3), (1,), (1,), ((0, 0),), True, 0), TypeError, "complex64")
        ],
    ),
    OpCase(
        avg_pool_channels_last,
        last(avg_pools(False)),
        oracle=last_of(avg_pool_of),
        without=NO_POINT,
        dtypes=FLOATING,
        tol={float16: 1e-2, bfloat16: 5e-2},
        why="as for avg_pool",
        errors=[Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), True, 0), ValueError, "kernel of 5")],
    ),
    OpCase(
        avg_pool_grad,
        avg_pools(True),
        oracle=avg_pool_grad_of,
        without=NO_POINT,
        dtypes=FLOATING,
        tol={float16: 1e-2, bfloat16: 1e-1},
        why="sums of shares; integers have no gradient",
        errors=[
            Bad((IMAGINARY, (1, 3, 4), (1,), (1,), ((0, 0),), True, 0), TypeError, "complex64")
        ],
    ),
    OpCase(
        adaptive_avg,
        adaptive(False),
        oracle=adaptive_avg_of,
        without=NO_POINT,
        tol={float16: 1e-2, bfloat16: 1e-1},
        grad_tol={float16: 5e-2, bfloat16: 5e-1},
        why="means of means",
        errors=[Bad((np.ones((1, 2, 3), np.int64), (2,)), TypeError, "int64")],
    ),
    OpCase(
        adaptive_max,
        adaptive(True),
        oracle=adaptive_max_of,
        without=NO_POINT,
        errors=[Bad((np.ones((1, 2, 3), np.int64), (2,)), TypeError, "int64")],
    ),
    OpCase(
        unfold,
        foldings(False),
        without=NO_POINT,
        errors=[Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), (1, 1)), ValueError, "kernel of 5")],
    ),
    OpCase(
        fold,
        foldings(True),
        without=NO_POINT,
        tol={float16: 1e-2, bfloat16: 1e-1},
        grad_tol={float16: 5e-2, bfloat16: 5e-1},
        why="several elements meet in one",
        errors=[Bad((IMAGINARY, (4,), (1,), (1,), ((0, 0),), (1,)), TypeError, "complex64")],
    ),
]
