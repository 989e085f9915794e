"""Conformance test cases of comparisons, logical and bitwise ops, and selection."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import ops
from ...dtype import ALL, FLOATING, INTEGER, bool_, float32, float64
from ...ops.comparison import (
    approximate_equal,
    equal,
    greater,
    greater_equal,
    isclose,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    less,
    less_equal,
    not_equal,
    signbit,
)
from ...ops.logic import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    select_by,
    shift_left,
    shift_right,
)
from ..case import Array, Bad, Make, OpCase, Sample, binary, unary
from .arithmetic import ROWS, SHAPES, TEXT, no_complex

MASK = np.array([True, False, True])
WHOLE = Bad((np.ones((2, 3), np.int32), np.ones(4, np.int32)), ValueError, r"\(2, 3\).*\(4,\)")


def shifts(make: Make) -> Iterator[Sample]:
    """Yield test samples of bit shifts by less than, and by at least, the integer's width."""
    width = 8 * make.dtype.itemsize
    yield from binary(second=(0, 3), scalar=None)(make)
    by = np.array([0, width - 1, width, 100]).astype(make.dtype.np)
    yield Sample((np.full(4, 5, make.dtype.np), by), kind="edge", name="beyond the width")
    if make.dtype.kind == "i":
        minus = np.full(4, -5, make.dtype.np)
        yield Sample((minus, by), kind="edge", name="of a negative number")


def bits(make: Make) -> Iterator[Sample]:
    yield from binary(scalar=None if make.dtype is bool_ else 3)(make)


def selections(make: Make) -> Iterator[Sample]:
    def mask(*shape: int) -> Array:
        return make(*shape, dtype=bool_)

    yield Sample((mask(3, 4), make(3, 4), make(3, 4)))
    yield Sample((mask(3, 1), make(4), make(2, 1, 1)), kind="broadcast")
    yield Sample((mask(37), make(37), make()), kind="broadcast")
    yield Sample((mask(37), make(), make(37)), kind="broadcast")
    yield Sample((mask(), make(), make()), kind="zero_d")
    yield Sample((mask(0, 3), make(3), make(0, 3)), kind="empty")
    yield Sample((mask(7, 13), make(7, 13), make(7, 13)), kind="odd")
    yield Sample((mask(4, 5), make.strided(4, 5), make(4, 5)), kind="noncontiguous")
    if make.inexact:
        yield Sample((mask(9), make.special(9), make(9)), kind="nan")


def fills(make: Make) -> Iterator[Sample]:
    for sample in selections(make):
        mask, x, _ = sample.args
        if np.broadcast_shapes(mask.shape, x.shape) == sample.args[0].shape or sample.kind == "nan":
            yield Sample((x, mask, 1), kind=sample.kind)
    yield Sample((make(2, 3), MASK, 1), kind="broadcast")


def close(
    x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    first, second = (a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in (x, y))
    return np.isclose(first, second, rtol=rtol, atol=atol, equal_nan=equal_nan)


CASES = [
    OpCase(equal, binary(), errors=[SHAPES]),
    OpCase(not_equal, binary(), errors=[SHAPES]),
    OpCase(less, binary(), errors=[SHAPES, no_complex(2, "less")]),
    OpCase(less_equal, binary(), errors=[SHAPES, no_complex(2, "less_equal")]),
    OpCase(greater, binary(), errors=[SHAPES, no_complex(2, "greater")]),
    OpCase(greater_equal, binary(), errors=[SHAPES, no_complex(2, "greater_equal")]),
    OpCase(isnan, unary(), errors=[TEXT]),
    OpCase(isinf, unary(), errors=[TEXT]),
    OpCase(isfinite, unary(), errors=[TEXT]),
    OpCase(isposinf, unary(), errors=[TEXT, no_complex(1, "isposinf")]),
    OpCase(isneginf, unary(), errors=[TEXT, no_complex(1, "isneginf")]),
    OpCase(signbit, unary(), errors=[TEXT, no_complex(1, "signbit")]),
    OpCase(
        isclose,
        binary(scalar=None, equal_nan=True),
        oracle=close,
        dtypes=(float32, float64),
        why="closeness of coarser elements depends on how they are rounded",
        errors=[SHAPES, Bad((ROWS, ROWS, -1.0), ValueError, "isclose: got rtol=-1")],
    ),
    OpCase(
        approximate_equal,
        binary(scalar=None, tolerance=1.0),
        oracle=lambda x, y, tolerance: np.abs(x - y) < tolerance,
        dtypes=(float32, float64),
        why="closeness of coarser elements depends on how they are rounded",
        errors=[SHAPES, no_complex(2, "approximate_equal")],
    ),
    OpCase(
        ops.isreal,
        unary(),
        dtypes=FLOATING,
        oracle=np.isreal,
        grad=False,
        errors=[Bad((3,), (AttributeError, TypeError), "")],
    ),
    OpCase(logical_not, unary(), errors=[TEXT]),
    OpCase(logical_and, binary(), errors=[SHAPES]),
    OpCase(logical_or, binary(), errors=[SHAPES]),
    OpCase(logical_xor, binary(), errors=[SHAPES]),
    OpCase(
        bitwise_and, bits, errors=[WHOLE, Bad((ROWS, ROWS), TypeError, "bitwise_and: .*float32")]
    ),
    OpCase(bitwise_or, bits, errors=[WHOLE, Bad((ROWS, ROWS), TypeError, "bitwise_or: .*float32")]),
    OpCase(
        bitwise_xor, bits, errors=[WHOLE, Bad((ROWS, ROWS), TypeError, "bitwise_xor: .*float32")]
    ),
    OpCase(bitwise_not, unary(), errors=[TEXT, Bad((ROWS,), TypeError, "bitwise_not: .*float32")]),
    OpCase(
        shift_left,
        shifts,
        dtypes=INTEGER,
        errors=[Bad((ROWS, ROWS), TypeError, "shift_left: .*float32")],
    ),
    OpCase(
        shift_right,
        shifts,
        dtypes=INTEGER,
        errors=[Bad((ROWS, ROWS), TypeError, "shift_right: .*float32")],
    ),
    OpCase(
        select_by,
        selections,
        grad=(1, 2),
        errors=[Bad((ROWS, ROWS, ROWS), TypeError, "select: condition has dtype float32")],
    ),
    OpCase(
        ops.where,
        selections,
        dtypes=ALL,
        grad=(1, 2),
        oracle=np.where,
        errors=[Bad((MASK, ROWS[:, :2], ROWS), ValueError, "where: got operands of shapes")],
    ),
    OpCase(
        ops.masked_fill,
        fills,
        dtypes=ALL,
        grad=(0,),
        oracle=lambda x, mask, value: np.where(mask, np.asarray(value).astype(x.dtype), x),
        errors=[Bad((ROWS, ROWS, 1), TypeError, "masked_fill: mask has dtype float32")],
    ),
]
