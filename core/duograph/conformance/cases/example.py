"""Example conformance test cases: one of each standard form, to be copied."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...dtype import int32
from ...ops.elementwise import add
from ...ops.exponential import exp
from ...ops.gather_scatter import gather
from ...ops.shape_primitives import reduce_sum
from ..case import FOUR, ROWS, Bad, Make, OpCase, Sample, binary, reduction, unary


def gather_samples(make: Make) -> Iterator[Sample]:
    """Yield test samples of the op gather: values, then indices, then an axis."""
    yield Sample((make(5, 4), make.index(3, below=5), 0))
    yield Sample((make(5, 4), make.index(2, 3, low=-4, below=4, dtype=int32), 1))
    yield Sample((make(5), make.index(below=5), 0), kind="zero_d")
    yield Sample((make(5, 0), make.index(2, below=5), 0), kind="empty")
    yield Sample((make(5, 2), make.index(0, below=5), 0), kind="empty")
    yield Sample((make(7, 13), make.index(11, below=13), 1), kind="odd")
    yield Sample((make.strided(5, 4), make.index(3, below=5), 0), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.special(9, 2), make.index(9, below=9), 0), kind="nan")


CASES = [
    OpCase(exp, unary(-4, 4), errors=[Bad(("text",), TypeError, "exp: got str")]),
    OpCase(add, binary(), errors=[Bad((ROWS, FOUR), ValueError, r"add: .*\(2, 3\).*\(4,\)")]),
    OpCase(
        reduce_sum,
        reduction(-1, 1, primitive=True, keepdims="keepdims"),
        errors=[Bad((None, (0,), False), TypeError, "reduce_sum: got None")],
    ),
    OpCase(
        gather,
        gather_samples,
        grad=(0,),
        without={"broadcast": "indices select, they do not broadcast"},
        errors=[
            Bad((ROWS, np.array([0.5], np.float32), 0), TypeError, "gather: indices have dtype"),
            Bad((ROWS, np.array([2]), 0), IndexError, "gather: .*index 2 .*size 2; wanted -2 to 1"),
        ],
    ),
]
