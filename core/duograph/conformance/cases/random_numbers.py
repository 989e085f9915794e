"""Conformance test cases of random ops; the same generator state must give the same results."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...dtype import FLOATING, INTEGER, float32, float64, int32, int64, uint32
from ...ops.distributions import random_gamma_by, random_laplace
from ...ops.dropouts import dropout, dropout_mask_by
from ...ops.random import (
    permutation,
    random_bits,
    random_integers,
    random_normal,
    random_uniform,
)
from ...ops.random_choices import multinomial_by
from ..case import Array, Bad, Make, OpCase, Sample

STATE = np.array([0x9E3779B9, 7, 3, 0], np.uint32)
SHORT = np.zeros(3, np.uint32)
OF_THE_RESULT = "the operand is the state, always uint32; the dtypes are those of the result"
WITHOUT_NAN = {"nan": "the state is made of integers"}
STATE_ERRORS = r"random_bits: got state uint32\[3\]; wanted uint32 of shape \(4,\)"


def state(make: Make) -> Array:
    """Return a random generator state (a uint32 array) for a test sample."""
    return make.rng.integers(0, 2**32, 4, np.uint32)


def drawn(make: Make, *rest: object) -> Iterator[Sample]:
    """Yield test samples of a random op: generator state, shape of the result, then `rest`."""
    kinds = {(3, 4): "normal", (): "zero_d", (0, 3): "empty", (7, 11, 3): "odd", (1031,): "odd"}
    for shape, kind in kinds.items():
        yield Sample((state(make), shape, *rest), kind=kind)
    wide = make.rng.integers(0, 2**32, 8, np.uint32)
    yield Sample((wide[::2], (5,), *rest), kind="noncontiguous")
    # the counter's carry from the low word of the offset, and a key with every bit set
    edge = np.array([2**32 - 1, 2**32 - 1, 2**32 - 1, 5], np.uint32)
    yield Sample((edge, (6,), *rest), kind="edge")


def floating(make: Make) -> Iterator[Sample]:
    """Yield test samples of a random op of floating numbers: state, result shape, result dtype."""
    return drawn(make, make.dtype)


def integers(make: Make) -> Iterator[Sample]:
    """Yield test samples of random integers: small ranges, and for 64 bits one above 2**32."""
    low = 0 if make.dtype.kind == "u" else -7
    yield from drawn(make, low, 100, make.dtype)
    if make.dtype.itemsize == 8:
        yield Sample((state(make), (9,), 0, 2**40, make.dtype), kind="edge")


def permutations(make: Make) -> Iterator[Sample]:
    """Yield test samples of random permutations of 0, 1, 6 and 37 elements."""
    for n, kind in ((6, "normal"), (1, "odd"), (37, "odd"), (0, "empty")):
        yield Sample((state(make), n, make.dtype), kind=kind)
    yield Sample((np.repeat(state(make), 2)[::2], 5, make.dtype), kind="noncontiguous")


def dropped(make: Make, shaped: bool) -> Iterator[Sample]:
    """Yield test samples of a dropout op: tensor, generator state and probability of dropping.

    `shaped` says whether the op takes one more argument, the shape of its mask.
    """

    def call(x: Array, p: float, kind: str = "normal") -> Sample:
        return Sample((x, state(make), p, *([x.shape] if shaped else [])), kind=kind)

    yield call(make(4, 6), 0.5)
    yield call(make(4, 6), 0.0, "edge")
    yield call(make(4, 6), 1.0, "edge")
    yield call(make(), 0.3, "zero_d")
    yield call(make(0, 3), 0.3, "empty")
    yield call(make(7, 13), 0.2, "odd")
    yield call(make.strided(4, 5), 0.4, "noncontiguous")
    yield call(make.special(9), 0.4, "nan")
    if shaped:  # whole channels at once
        yield Sample((make(2, 3, 4), state(make), 0.5, (2, 3, 1)), kind="broadcast")


def weighted(make: Make) -> Iterator[Sample]:
    """Yield test samples of sampling from rows of probabilities, with and without replacement."""
    for replacement in (True, False):
        yield Sample((make(3, 5, low=0.1, high=1), state(make), 4, replacement))
        yield Sample((make(7, 13, low=0.1, high=1), state(make), 11, replacement), kind="odd")
    rows = make.strided(4, 5, low=0.1, high=1)
    yield Sample((rows, state(make), 3, True), kind="noncontiguous")


def gammas(make: Make) -> Iterator[Sample]:
    """Yield test samples of gamma-distributed numbers: generator state, alpha, shape."""
    yield Sample((state(make), make(3, 4, low=0.3, high=3), (3, 4)))
    yield Sample((state(make), make(4, low=0.3, high=3), (3, 4)), kind="broadcast")
    yield Sample((state(make), make(low=0.3, high=3), ()), kind="zero_d")
    yield Sample((state(make), make(0, low=1, high=3), (0,)), kind="empty")
    yield Sample((state(make), make(7, 13, low=0.3, high=3), (7, 13)), kind="odd")
    strided = make.strided(4, 5, low=0.3, high=3)
    yield Sample((state(make), strided, (4, 5)), kind="noncontiguous")


CASES = [
    OpCase(
        random_bits,
        drawn,
        dtypes=[uint32],
        why="the state is uint32",
        without=WITHOUT_NAN,
        errors=[Bad((SHORT, (2,)), ValueError, STATE_ERRORS)],
    ),
    *[
        OpCase(
            op,
            floating,
            dtypes=FLOATING,
            without=WITHOUT_NAN,
            tol={float64: 2e-6},
            why=f"{OF_THE_RESULT}; numbers are made in float32",
            errors=[Bad((SHORT, (2,), float32), ValueError, STATE_ERRORS)],
        )
        for op in (random_uniform, random_normal, random_laplace)
    ],
    OpCase(
        random_integers,
        integers,
        dtypes=INTEGER,
        why=OF_THE_RESULT,
        without=WITHOUT_NAN,
        errors=[Bad((SHORT, (2,), 0, 9, int64), ValueError, STATE_ERRORS)],
    ),
    OpCase(
        permutation,
        permutations,
        dtypes=[int32, int64],
        why=OF_THE_RESULT,
        without={**WITHOUT_NAN, "zero_d": "a permutation is a row"},
        errors=[Bad((SHORT, 5, int64), ValueError, STATE_ERRORS)],
    ),
    OpCase(
        dropout,
        partial(dropped, shaped=True),
        dtypes=FLOATING,
        grad=(0,),
        why="only floating values are scaled",
        errors=[Bad((np.ones(3, np.float32), SHORT, 0.5, (3,)), ValueError, STATE_ERRORS)],
    ),
    OpCase(
        dropout_mask_by,
        partial(dropped, shaped=False),
        dtypes=FLOATING,
        grad=(0,),
        why="only floating values are scaled",
        errors=[Bad((np.ones(3, np.float32), SHORT, 0.5), ValueError, STATE_ERRORS)],
    ),
    OpCase(
        multinomial_by,
        weighted,
        dtypes=[float32],
        why="probabilities are taken as float32",
        without={
            "zero_d": "rows of probabilities have two axes",
            "empty": "nothing can be drawn of nothing",
            "nan": "no probability",
        },
        errors=[Bad((np.ones((2, 3), np.float32), SHORT, 2, True), ValueError, STATE_ERRORS)],
    ),
    OpCase(
        random_gamma_by,
        gammas,
        dtypes=[float32],
        grad=False,
        why="shape parameters are taken as float32; there is no gradient rule",
        tol={float32: 1e-3},
        without={"nan": "no parameter of the distribution"},
        errors=[Bad((SHORT, np.ones(2, np.float32), (2,)), ValueError, STATE_ERRORS)],
    ),
]
