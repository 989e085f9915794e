"""Conformance test cases of functions that NumPy computes on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...dtype import FLOATING, complex64, complex128, float32, float64
from ...ops.bessel import bessel
from ...ops.decompositions import (
    eig_by,
    geqrf,
    matrix_function,
    orgqr,
    permutation_of_pivots,
    qr_by,
)
from ...ops.factorizations import eigh_by, lu_by
from ...ops.fourier import dft
from ...ops.histograms import histogram_by
from ...ops.incomplete_gamma import betainc_by, betainc_derivative, gamma_derivative, gamma_of_two
from ...ops.number_theory import gcd, lcm, nextafter, population_count
from ..case import FOUR, NUMBER, ROWS, Array, Bad, Make, OpCase, Sample, Samples, by_shape

NO_POINT = {"zero_d": "the op works along axes"}
TRUE = np.ones(3, bool)


def transforms(make: Make) -> Iterator[Sample]:
    yield Sample((make(5), (0,), False, 1.0))
    yield Sample((make(2, 3, 4), (2, 0), True, 0.5))
    yield Sample((make(0, 3), (1,), False, 1.0), kind="empty")
    yield Sample((make(7, 13), (0, 1), True, 1.0), kind="odd")
    yield Sample((make.strided(4, 5), (0,), False, 2.0), kind="noncontiguous")
    yield Sample((np.full((3,), np.nan, make.dtype.np), (0,), False, 1.0), kind="nan")


def transformed(x: Array, axes: Sequence[int], inverse: bool, scale: float) -> Array:
    for axis in axes:
        n = x.shape[axis]
        phase = np.outer(np.arange(n), np.arange(n)) * (2j if inverse else -2j) * np.pi / n
        x = np.moveaxis(np.tensordot(np.exp(phase), x.astype(np.complex128), (1, axis)), 0, axis)
    return x * scale


def ratios(*kinds: str, low: float = 1.5, operands: int = 2) -> Samples:
    """Return a function that yields test samples of positive operands.

    The last argument of each sample is one of the strings `kinds`, if there are any. `low` is the
    least value, `operands` the number of operands; a third operand is between 0.2 and 0.8.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def call(kind: str, *shapes: tuple[int, ...], ends: tuple[str, ...] = kinds) -> Sample:
            arrays = [make(*shape, low=low, high=low + 2) for shape in shapes]
            if operands == 3:
                arrays[2] = make(*shapes[2], low=0.2, high=0.8)
            return Sample((*arrays, *ends[:1]), kind=kind)

        for kind in kinds:
            yield call("normal", *[(2, 3)] * operands, ends=(kind,))
        if not kinds:
            yield call("normal", *[(2, 3)] * operands)
        yield call("broadcast", (3, 1), *[(4,)] * (operands - 1))
        yield call("zero_d", *[()] * operands)
        yield call("empty", *[(0, 3)] * operands)
        yield call("odd", *[(7, 13)] * operands)
        strided = [make.strided(4, 5, low=low, high=low + 1) for _ in range(operands)]
        if operands == 3:
            strided[2] = make.strided(4, 5, low=0.2, high=0.8)
        yield Sample((*strided, *kinds[:1]), kind="noncontiguous")
        nan = [np.full(3, np.nan, make.dtype.np)] + [
            np.full(3, 0.5, make.dtype.np) for _ in range(operands - 1)
        ]
        yield Sample((*nan, *kinds[:1]), kind="nan")

    return samples


def bessels(make: Make) -> Iterator[Sample]:
    for kind in ("i0", "y1"):
        yield Sample((make(3, 4, low=0.5, high=4), kind))
    yield Sample((make(low=0.5, high=4), "i0"), kind="zero_d")
    yield Sample((make(0, 3), "j0"), kind="empty")
    yield Sample((make(7, 13, low=0.5, high=9), "k0e"), kind="odd")
    yield Sample((make.strided(4, 5, low=0.5, high=4), "i1e"), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(9), "j1"), kind="nan")


def pairs(low: float, high: float) -> Callable[[Make], Iterator[Sample]]:
    def samples(make: Make) -> Iterator[Sample]:
        yield Sample((make(3, 4, low=low, high=high), make(3, 4, low=low, high=high)), grad=False)
        yield Sample((make(3, 1, low=low, high=high), make(4, low=low, high=high)),
                     kind="broadcast", grad=False)  # fmt: skip
        yield Sample((make(low=low, high=high), make(low=low, high=high)), kind="zero_d",
                     grad=False)  # fmt: skip
        yield Sample((make(0, 2), make(0, 2)), kind="empty")
        yield Sample((make(7, 13, low=low, high=high), make(7, 13)), kind="odd", grad=False)
        yield Sample((make.strided(4, 5), make.strided(4, 5)), kind="noncontiguous", grad=False)
        if make.inexact:
            yield Sample((make.special(9), make(9)), kind="nan")

    return samples


COUNTED = by_shape(
    ("normal", (3, 4), 5, -2.0, 2.0),
    ("normal", (9,), 3, 0.0, 0.0),
    ("zero_d", (), 4, -9.0, 9.0),
    ("empty", (0,), 4, 0.0, 0.0),
    ("odd", (7, 13), 11, -1.0, 1.5),
    ("noncontiguous", (4, 5), 3, -1.0, 1.0),
)


def tall(*rest: object) -> Samples:
    def samples(make: Make) -> Iterator[Sample]:
        yield Sample((make(4, 3), *rest))
        yield Sample((make(2, 3, 3), *rest))
        yield Sample((make(0, 3, 2), *rest), kind="empty")
        yield Sample((make(7, 5), *rest), kind="odd", grad=False)
        yield Sample((make.strided(4, 3), *rest), kind="noncontiguous")

    return samples


def reflections(make: Make) -> Iterator[Sample]:
    yield Sample((make(4, 3), make(3)), grad=False)
    yield Sample((make(2, 3, 3), make(2, 2)), grad=False)
    yield Sample((make(0, 3, 2), make(0, 2)), kind="empty")
    yield Sample((make(7, 5), make(5)), kind="odd", grad=False)
    yield Sample((make.strided(4, 3), make(3)), kind="noncontiguous", grad=False)


def squares(*rest: object) -> Samples:
    """Return a function that yields test samples of square matrices with distinct eigenvalues.

    `rest` are the arguments after the matrix.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def x(*shape: int) -> Array:
            small = make(*shape, low=-0.2, high=0.2)
            return (small + np.diag(np.arange(1, shape[-1] + 1) * 0.7)).astype(make.dtype.np)

        yield Sample((x(3, 3), *rest))
        yield Sample((x(2, 2, 2), *rest))
        yield Sample((x(0, 2, 2), *rest), kind="empty")
        yield Sample((x(5, 5), *rest), kind="odd", grad=False)
        yield Sample((np.repeat(x(3, 3), 2, 1)[:, ::2], *rest), kind="noncontiguous")

    return samples


def pivots(make: Make) -> Iterator[Sample]:
    def x(*shape: int) -> Array:
        return make.index(*shape, low=1, below=5, dtype=make.dtype)

    yield Sample((x(4), 4))
    yield Sample((x(2, 3), 4))
    yield Sample((x(0, 3), 4), kind="empty")
    yield Sample((x(7, 3), 11), kind="odd")
    yield Sample((x(3, 8)[:, ::2], 4), kind="noncontiguous")


MATRICES = {**NO_POINT, "nan": "elements that are not finite are refused"}
ROUNDED = {float32: 1e-3, float64: 1e-8, complex64: 1e-3, complex128: 1e-8}
ROUNDED_WHY = "decompositions amplify rounding by the condition of the matrix"
KIND = Bad((FOUR, "other"), ValueError, "kind")
TWO = Bad((FOUR, FOUR, "other"), ValueError, "kind")

CASES = [
    OpCase(
        dft,
        transforms,
        oracle=lambda x, *rest: transformed(x, *rest).astype(x.dtype),
        without=NO_POINT,
        errors=[Bad((np.ones((2, 0), np.complex64), (1,), False, 1.0), ValueError, "empty axis")],
    ),
    OpCase(bessel, bessels, dtypes=FLOATING, errors=[KIND], why="integers are taken as float32"),
    OpCase(
        gamma_of_two,
        ratios("igamma", "zeta"),
        dtypes=FLOATING,
        second=False,
        errors=[TWO],
        why="integers are taken as float32",
    ),
    OpCase(
        gamma_derivative, ratios("igamma_by_a", "zeta_by_s"), grad=False, errors=[TWO],
    ),
    OpCase(
        betainc_by,
        ratios(operands=3),
        dtypes=FLOATING,
        second=False,
        errors=[Bad((ROWS, FOUR, FOUR), ValueError, "broadcast")],
        why="integers are taken as float32",
    ),
    OpCase(
        betainc_derivative,
        ratios("betainc_by_a", "betainc_by_b", operands=3),
        grad=False,
        errors=[Bad((FOUR, FOUR, FOUR, "other"), ValueError, "kind")],
    ),
    OpCase(gcd, pairs(-9, 9), errors=[Bad((FOUR, FOUR), TypeError, "float32")]),
    OpCase(lcm, pairs(-9, 9), errors=[Bad((FOUR, FOUR), TypeError, "float32")]),
    OpCase(
        nextafter, pairs(-2, 2), grad=False, errors=[Bad((TRUE, TRUE), TypeError, "bool")],
    ),
    OpCase(
        population_count,
        by_shape(("normal", (3, 4)), ("zero_d", ()), ("empty", (0, 2)), ("odd", (7, 13)),
                 ("noncontiguous", (4, 5))),
        errors=[Bad((NUMBER,), TypeError, "float32")],
    ),
    OpCase(
        qr_by, tall(False), tol=ROUNDED, grad_tol=ROUNDED, why=ROUNDED_WHY, without=MATRICES,
        errors=[Bad((FOUR, False), ValueError, "matrices")],
    ),
    OpCase(
        geqrf, tall(), grad=False, tol=ROUNDED, why=ROUNDED_WHY, without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "matrices")],
    ),
    OpCase(
        orgqr, reflections, grad=False, tol=ROUNDED, why=ROUNDED_WHY,
        without={**MATRICES, "broadcast": "leading axes must be the same"},
        errors=[Bad((ROWS, FOUR), ValueError, "k <= n <= m")],
    ),
    OpCase(
        eig_by, squares(), grad=False, tol=ROUNDED, why=ROUNDED_WHY, without=MATRICES,
        errors=[Bad((ROWS,), ValueError, "square")],
    ),
    OpCase(
        eigh_by, squares(), tol=ROUNDED, grad_tol=ROUNDED, why=ROUNDED_WHY, without=MATRICES,
        errors=[Bad((ROWS,), ValueError, "square")],
    ),
    OpCase(
        lu_by, squares(), tol=ROUNDED, grad_tol=ROUNDED, why=ROUNDED_WHY, without=MATRICES,
        errors=[Bad((FOUR,), ValueError, "matrices")],
    ),
    OpCase(
        matrix_function, squares("exp"), tol=ROUNDED, grad_tol=ROUNDED, why=ROUNDED_WHY,
        without={**NO_POINT, "nan": "any element that is not finite makes the whole matrix NaN"},
        errors=[Bad((ROWS, "exp"), ValueError, "square")],
    ),
    OpCase(
        permutation_of_pivots, pivots, without=NO_POINT,
        errors=[Bad((np.array([1, 2, 3]), 2), ValueError, "2 rows")],
    ),
    OpCase(
        histogram_by,
        COUNTED,
        errors=[
            Bad((FOUR, 0, 0.0, 1.0), ValueError, "bins"),
            Bad((FOUR, 2, 2.0, 1.0), ValueError, "min"),
        ],
        without={"nan": "elements that are not finite are refused without a range"},
    ),
]  # fmt: skip
