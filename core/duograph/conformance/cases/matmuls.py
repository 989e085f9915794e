"""Conformance test cases of matmul and other functions of matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ... import ops
from ...dtype import FLOATING, NUMERIC, bfloat16, complex64, float16, float32, float64
from ...ops import linalg
from ...ops.linalg import bias_add, matmul_of
from ...ops.matrices import cholesky_by, det, inverse, slogdet, solve_by
from ..case import FOUR, ROWS, Array, Bad, Make, OpCase, Sample, Samples

NUMBERS = np.array([[1, 2], [3, 4]])
TRUE = np.ones((2, 2), bool)
PRODUCTS = {float16: 2e-2, bfloat16: 2e-1, float32: 2e-5, complex64: 2e-5}
PRODUCTS_WHY = "sums of a hundred products, in whatever order"
NO_POINT = {"zero_d": "there are no 0-d matrices"}


def wide(x: Array) -> Array:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "fV" else x


def matrices(make: Make) -> Iterator[Sample]:
    for ta in (False, True):
        for tb in (False, True):
            flags = {"transpose_a": ta, "transpose_b": tb}
            x, y = make(3, 4), make(4, 5)
            yield Sample(
                (np.ascontiguousarray(x.T) if ta else x, np.ascontiguousarray(y.T) if tb else y),
                flags,
            )
            x, y = make(2, 3, 4), make(2, 4, 5)
            x = np.ascontiguousarray(x.swapaxes(1, 2)) if ta else x
            yield Sample((x, np.ascontiguousarray(y.swapaxes(1, 2)) if tb else y), flags)
    yield Sample((make(2, 1, 3, 4), make(5, 4, 2)), kind="broadcast")
    yield Sample((make(3, 4), make(2, 4, 5)), kind="broadcast")
    yield Sample((make(2, 3, 4), make(4, 5)), kind="broadcast")
    yield Sample((make(0, 4), make(4, 5)), kind="empty")
    yield Sample((make(3, 0), make(0, 5)), kind="empty")
    yield Sample((make(2, 0, 3, 4), make(4, 1)), kind="empty")
    yield Sample((make(1, 1), make(1, 1)), kind="odd")
    yield Sample((make(7, 131), make(131, 13)), kind="odd", grad=False)
    yield Sample((make(17, 5), make(5, 33)), kind="odd", grad=False)
    yield Sample((make.strided(4, 5), make(5, 3)), kind="noncontiguous")
    if make.inexact:
        x = make(3, 4)
        x[1, 2] = np.nan
        yield Sample((x, make(4, 2)), kind="nan")


def product_of(x: Array, y: Array, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    a = np.swapaxes(wide(x), -1, -2) if transpose_a else wide(x)
    b = np.swapaxes(wide(y), -1, -2) if transpose_b else wide(y)
    return np.matmul(a, b).astype(x.dtype)


def vectors(make: Make) -> Iterator[Sample]:
    """Yield test samples of matrix products with at least one vector operand."""
    yield Sample((make(4), make(4)))
    yield Sample((make(3, 4), make(4)))
    yield Sample((make(4), make(2, 4, 5)))
    yield Sample((make(2, 3, 4), make(4)))
    yield Sample((make(0), make(0)), kind="empty")


def layers(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4), make(5, 4), make(5)))
    yield Sample((make(3, 4), make(5, 4), None))
    yield Sample((make(2, 3, 4), make(5, 4), make(5)))
    yield Sample((make(4), make(5, 4), make(5)))
    yield Sample((make(0, 4), make(5, 4), make(5)), kind="empty")
    yield Sample((make(7, 11), make(13, 11), make(13)), kind="odd")
    yield Sample((make.strided(4, 5), make(2, 5), make(2)), kind="noncontiguous")
    if make.inexact:
        x = make(3, 4)
        x[1, 2] = np.nan
        yield Sample((x, make(2, 4), make(2)), kind="nan")


def dense_of(x: Array, w: Array, bias: Array) -> Array:
    out = wide(x) @ wide(w).T
    return (out if bias is None else out + wide(bias)).astype(x.dtype)


def biases(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4), make(4)), kind="broadcast")
    yield Sample((make(2, 3, 4), make(3)))
    yield Sample((make(2, 3, 4, 5), make(3)))
    yield Sample((make(0, 3, 2), make(3)), kind="empty")
    yield Sample((make(7, 13, 3), make(13)), kind="odd")
    yield Sample((make.strided(4, 5), make(5)), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(3, 5), make(5)), kind="nan")


def bias_of(x: Array, bias: Array) -> Array:
    return x + bias.reshape(-1, *[1] * (x.ndim - 2))


def invertible(make: Make, *shape: int) -> Array:
    """Return random square matrices with a large diagonal, so that they are far from singular."""
    x = make(*shape, low=-0.5, high=0.5)
    n = shape[-1]
    return (wide(x) + np.diag(np.arange(1, n + 1) * 1.5)).astype(x.dtype)


def definite(make: Make, *shape: int) -> Array:
    x = wide(make(*shape, low=-0.5, high=0.5))
    return (x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1]) * 1.5).astype(make.dtype.np)


def squares(matrix: Callable[..., Array], *rest: object) -> Samples:
    def samples(make: Make) -> Iterator[Sample]:
        yield Sample((matrix(make, 3, 3), *rest))
        yield Sample((matrix(make, 2, 3, 3), *rest))
        yield Sample((matrix(make, 0, 3, 3), *rest), kind="empty")
        yield Sample((matrix(make, 1, 1), *rest), kind="odd")
        yield Sample((matrix(make, 7, 7), *rest), kind="odd", grad=False)
        wider = np.repeat(matrix(make, 3, 3), 2, 1)
        yield Sample((wider[:, ::2], *rest), kind="noncontiguous")

    return samples


def solved(make: Make) -> Iterator[Sample]:
    yield Sample((invertible(make, 3, 3), make(3, 2)))
    yield Sample((invertible(make, 2, 3, 3), make(2, 3, 2)))
    swapped = invertible(make, 3, 3)[[2, 0, 1]]  # needs pivots
    yield Sample((np.ascontiguousarray(swapped), make(3, 1)))
    yield Sample((invertible(make, 0, 3, 3), make(0, 3, 2)), kind="empty")
    yield Sample((invertible(make, 7, 7), make(7, 5)), kind="odd", grad=False)
    yield Sample(
        (np.repeat(invertible(make, 3, 3), 2, 1)[:, ::2], make(3, 2)), kind="noncontiguous"
    )


def logdet_of(x: Array) -> tuple[Array, ...]:
    sign, size = np.linalg.slogdet(wide(x))
    return np.asarray(sign).astype(x.dtype), np.asarray(size).astype(x.dtype)


SINGULAR = {
    **NO_POINT,
    "nan": "what singular and undefined matrices give differs by algorithm: not finite",
}
LINEAR = {float16: 5e-2, bfloat16: 3e-1, float32: 1e-4, float64: 1e-10}
LINEAR_GRAD = {float16: 5e-1, bfloat16: 3.0, float32: 2e-3, float64: 1e-8}
LINEAR_WHY = "elimination amplifies rounding by the condition of the matrix"
SQUARE = Bad((ROWS,), ValueError, "square")

CASES = [
    OpCase(
        matmul_of,
        matrices,
        oracle=product_of,
        tol=PRODUCTS,
        grad_tol={k: v * 4 for k, v in PRODUCTS.items()},
        why=PRODUCTS_WHY,
        without=NO_POINT,
        errors=[
            Bad(
                (ROWS, ROWS),
                ValueError,
                r"\(2, 3\).*wanted the last axis of the first \(3\) to equal",
            ),
            Bad((ROWS, FOUR), ValueError, "two axes"),
            Bad((np.ones((2, 3, 4)), np.ones((3, 4, 5))), ValueError, "do not broadcast"),
            Bad((TRUE, TRUE), TypeError, "bool"),
        ],
    ),
    OpCase(
        ops.matmul,
        vectors,
        dtypes=NUMERIC,
        name="matmul function",
        oracle=product_of,
        tol=PRODUCTS,
        why=PRODUCTS_WHY,
        grad_tol={k: v * 4 for k, v in PRODUCTS.items()},
        errors=[Bad((np.ones(()), FOUR), ValueError, "at least one axis")],
    ),
    OpCase(
        linalg.dense,
        layers,
        dtypes=FLOATING,
        oracle=dense_of,
        tol=PRODUCTS,
        grad_tol={k: v * 4 for k, v in PRODUCTS.items()},
        why=PRODUCTS_WHY,
        without=NO_POINT,
        errors=[Bad((ROWS, FOUR, None), ValueError, "axes")],
    ),
    OpCase(
        bias_add,
        biases,
        dtypes=NUMERIC,
        oracle=bias_of,
        without=NO_POINT,
        why="bool has no sum of channels",
        errors=[Bad((ROWS, FOUR), ValueError, "axis 1")],
    ),
    OpCase(
        solve_by,
        solved,
        oracle=lambda a, b: np.linalg.solve(wide(a), wide(b)).astype(b.dtype),
        tol=LINEAR,
        grad_tol=LINEAR_GRAD,
        why=LINEAR_WHY,
        without={**SINGULAR, "broadcast": "leading axes must be the same"},
        errors=[Bad((ROWS, ROWS), ValueError, "n, n")],
    ),
    OpCase(
        inverse,
        squares(invertible),
        oracle=lambda x: np.linalg.inv(wide(x)).astype(x.dtype),
        tol=LINEAR,
        grad_tol=LINEAR_GRAD,
        why=LINEAR_WHY,
        without=SINGULAR,
        errors=[Bad((ROWS,), ValueError, r"\(2, 3\)")],
    ),
    OpCase(
        det,
        squares(invertible),
        oracle=lambda x: np.asarray(np.linalg.det(wide(x))).astype(x.dtype),
        tol={float16: 2e-1, bfloat16: 2.0, float32: 1e-4, float64: 1e-10},
        grad_tol={float16: 2.0, bfloat16: 20.0, float32: 1e-2, float64: 1e-8},
        why=LINEAR_WHY,
        without=SINGULAR,
        errors=[SQUARE],
    ),
    OpCase(
        slogdet,
        squares(invertible),
        oracle=logdet_of,
        tol=LINEAR,
        grad_tol=LINEAR_GRAD,
        why=LINEAR_WHY,
        without=SINGULAR,
        errors=[SQUARE],
    ),
    OpCase(
        cholesky_by,
        squares(definite),
        tol=LINEAR,
        grad_tol=LINEAR_GRAD,
        why=LINEAR_WHY,
        without=SINGULAR,
        errors=[SQUARE],
    ),
]
