"""Conformance test cases of arithmetic, rounding and complex numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ... import ops
from ...dtype import (
    ALL,
    COMPLEX,
    FLOATING,
    INTEGER,
    NUMERIC,
    REAL,
    bool_,
    complex128,
    float32,
    float64,
)
from ...ops import complex_numbers, elementwise
from ...ops.combinations import (
    addcdiv,
    addcmul,
    clamp,
    clip_grad,
    div_no_nan,
    lerp,
    mul_no_nan,
    squared_difference,
)
from ...ops.complex_numbers import imag, real
from ...ops.creation import cast_to
from ...ops.division import floor_divide, fmod, remainder, truncate_div
from ...ops.elementwise import (
    fmax,
    fmin,
    maximum,
    minimum,
    mul,
    neg,
    reciprocal,
    sign,
    square,
    sub,
    true_divide,
)
from ...ops.pointwise import conj
from ...ops.rounding import ceil, copysign, floor, heaviside, nan_to_num, round_half_even, trunc
from ..case import FOUR, ROWS, Array, Bad, Make, OpCase, Oracle, Sample, binary, ternary, unary

IMAGINARY = np.ones(3, np.complex64)
SHAPES = Bad((ROWS, FOUR), ValueError, r"\(2, 3\).*\(4,\)")
TEXT = Bad(("text",), TypeError, "got str")
KINKS = (0.25, 2.0)  # a range in which functions with steps and kinks are smooth


def no_complex(count: int, name: str) -> Bad:
    """Return a test call that must fail: complex operands for an op of real numbers.

    `count` is the number of operands, `name` the name of the op.
    """
    return Bad((IMAGINARY,) * count, TypeError, rf"{name}: .*complex64")


def distinct_pairs(make: Make) -> Iterator[Sample]:
    """Yield test samples of two tensors without equal elements, at which max and min have kinks."""
    for sample in binary(scalar=1)(make):
        if sample.kind not in ("normal", "broadcast", "odd", "zero_d") or make.dtype is bool_:
            yield sample
            continue
        x, y = sample.args
        size = x.size + y.size
        values = make.distinct(size, step=0.125)
        first, rest = values[: x.size].reshape(x.shape), values[x.size :].reshape(y.shape)
        yield Sample((first, rest), sample.kwargs, sample.kind, sample.grad)


def division(make: Make) -> Iterator[Sample]:
    """Yield test samples of a division, with both signs and with zero as a divisor."""
    yield from binary(0.3, 2.0, scalar=2)(make)
    if make.dtype is bool_:
        return
    signs = np.array([1, -1, 1, -1]) if make.dtype.kind != "u" else np.array([1, 1, 1, 1])
    x = (np.array([7, 7, 6, 6]) * signs).astype(make.dtype.np)
    y = (np.array([2, 2, 3, 3]) * signs[::-1]).astype(make.dtype.np)
    yield Sample((x, y), kind="edge", grad=False, name="signs")
    yield Sample((x, np.zeros(4, make.dtype.np)), kind="edge", grad=False, name="by zero")
    if make.dtype.kind == "i":
        least = np.full(2, np.iinfo(make.dtype.np).min, make.dtype.np)
        by = np.array([-1, 1], make.dtype.np)
        yield Sample((least, by), kind="edge", grad=False, name="least number")


def sums(make: Make) -> Iterator[Sample]:
    """Yield test samples of a sum or product; for integer dtypes, one sample overflows."""
    yield from binary()(make)
    if make.dtype.is_integer:
        most = np.full(2, np.iinfo(make.dtype.np).max, make.dtype.np)
        yield Sample((most, most), kind="edge", name="wraps")


def limits(make: Make) -> Iterator[Sample]:
    """Yield test samples of a clipping op whose limits are numbers, tensors or None."""
    for low, high in ((-1, 1), (None, 1), (0, None)):
        if make.dtype.kind == "u" and low == -1:
            low = 0
        yield from unary(-3.0, 3.0, min=low, max=high)(make)
    yield Sample((make(4, 3), make(3), make(4, 1)), kind="edge", grad=False, name="tensors")


def clip(x: Array, min: Array | float | None = None, max: Array | float | None = None) -> Array:
    out = x if min is None else np.maximum(x, np.asarray(min).astype(x.dtype))
    return out if max is None else np.minimum(out, np.asarray(max).astype(x.dtype))


def replaced(
    x: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    wide = np.asarray(x, np.float64)
    info = {2: 65504.0, 4: 3.4028234663852886e38, 8: 1.7976931348623157e308}[x.dtype.itemsize]
    if x.dtype.name == "bfloat16":
        info = 3.3895313892515355e38
    out = np.where(np.isnan(wide), 0.0 if nan is None else nan, wide)
    out = np.where(wide == np.inf, info if posinf is None else posinf, out)
    return np.where(wide == -np.inf, -info if neginf is None else neginf, out).astype(x.dtype)


def angle(x: Array) -> Array:
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    return np.angle(x.astype(wide)).astype(x.real.dtype)


def fused(function: Oracle) -> Oracle:
    """Return a test oracle that runs a NumPy function in float64 and rounds its result once.

    A kernel that computes several ops together rounds in the same way.
    """

    def oracle(*args: Array, **kwargs: object) -> Array:
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        dtype = next((a.dtype for a in arrays), np.dtype(np.float32))
        for a in arrays[1:]:
            dtype = np.result_type(dtype, a.dtype) if dtype != a.dtype else dtype
        if dtype.kind in "biu":
            dtype = np.dtype(np.float32)
        wide = np.complex128 if dtype.kind == "c" else np.float64
        out = function(
            *[a.astype(wide) if isinstance(a, np.ndarray) else a for a in args], **kwargs
        )
        return np.asarray(out).astype(dtype)

    return oracle


def casts(make: Make) -> Iterator[Sample]:
    """Yield test samples of a cast to every dtype, with values that the dtype can hold."""
    for target in ALL:
        low = 0 if target.kind in "ub" else None
        for sample in unary(low)(make):
            if sample.kind == "nan" and not (
                target.is_floating or target.is_complex or target is bool_
            ):
                continue
            yield Sample(
                (*sample.args, target), kind=sample.kind, grad=target in (float64, complex128)
            )


CASES = [
    OpCase(cast_to, casts, errors=[Bad((ROWS,), TypeError, "cast: got no value for 'dtype'")]),
    OpCase(sub, sums, errors=[SHAPES]),
    OpCase(mul, sums, errors=[SHAPES, Bad((None, ROWS), TypeError, "mul: got None")]),
    OpCase(
        true_divide, binary(0.3, 2.0), errors=[SHAPES, Bad((ROWS, "text"), TypeError, "got str")]
    ),
    OpCase(
        ops.div,
        binary(0.3, 2.0, rounding_mode="floor"),
        dtypes=REAL,
        oracle=lambda x, y, rounding_mode: np.floor_divide(x, y),
        grad=False,
        errors=[Bad((ROWS, ROWS), ValueError, "rounding_mode='up'", {"rounding_mode": "up"})],
        name="div rounded",
    ),
    OpCase(floor_divide, division, errors=[SHAPES, no_complex(2, "floor_divide")]),
    OpCase(
        remainder,
        division,
        errors=[SHAPES, no_complex(2, "remainder")],
        grad=False,
    ),
    OpCase(fmod, division, errors=[SHAPES, no_complex(2, "fmod")], grad=False),
    OpCase(truncate_div, division, errors=[SHAPES, no_complex(2, "truncate_div")]),
    OpCase(neg, unary(), errors=[TEXT, Bad((np.array([True]),), TypeError, "neg: .*bool")]),
    OpCase(elementwise.abs, unary(*KINKS), errors=[TEXT]),
    OpCase(square, unary(), errors=[TEXT]),
    OpCase(reciprocal, unary(*KINKS), errors=[TEXT]),
    OpCase(maximum, distinct_pairs, errors=[SHAPES, no_complex(2, "maximum")]),
    OpCase(minimum, distinct_pairs, errors=[SHAPES, no_complex(2, "minimum")]),
    OpCase(fmax, distinct_pairs, errors=[SHAPES, no_complex(2, "fmax")]),
    OpCase(fmin, distinct_pairs, errors=[SHAPES, no_complex(2, "fmin")]),
    OpCase(
        squared_difference,
        binary(),
        errors=[SHAPES],
        oracle=lambda x, y: np.square(np.subtract(x, y)),
    ),
    OpCase(
        div_no_nan,
        binary(0.3, 2.0),
        errors=[SHAPES],
        oracle=fused(lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y))),
    ),
    OpCase(
        mul_no_nan,
        binary(0.3, 2.0),
        errors=[SHAPES],
        oracle=fused(lambda x, y: np.where(y == 0, 0, x * y)),
    ),
    OpCase(
        ops.addcmul,
        ternary(value=0.5),
        dtypes=FLOATING,
        oracle=fused(lambda x, a, b, value: x + value * a * b),
        covers=[addcmul],
        errors=[Bad((ROWS, FOUR, FOUR), ValueError, SHAPES.pattern)],
    ),
    OpCase(
        ops.addcmul,
        ternary(value=2),
        dtypes=INTEGER,
        oracle=lambda x, a, b, value: x + value * a * b,
        grad=False,
        name="addcmul of integers",
        errors=[Bad((ROWS, FOUR, FOUR), ValueError, SHAPES.pattern)],
    ),
    OpCase(
        ops.addcdiv,
        ternary(*KINKS, value=0.5),
        dtypes=FLOATING,
        oracle=fused(lambda x, a, b, value: x + value * a / b),
        covers=[addcdiv],
        errors=[Bad((ROWS, FOUR, FOUR), ValueError, SHAPES.pattern)],
    ),
    OpCase(
        lerp,
        ternary(),
        errors=[Bad((ROWS, FOUR, FOUR), ValueError, SHAPES.pattern)],
        oracle=fused(lambda x, end, weight: x + weight * (end - x)),
    ),
    OpCase(
        ops.addn,
        lambda make: (
            Sample(([*s.args, s.args[0]],), kind=s.kind, grad=s.grad)
            for s in binary(scalar=None)(make)
        ),
        dtypes=NUMERIC,
        oracle=lambda x: x[0] + x[1] + x[2],
        errors=[Bad(((),), TypeError, "addn: got tuple"), Bad((3,), TypeError, "addn: got int")],
    ),
    OpCase(
        ops.clamp,
        limits,
        dtypes=REAL,
        oracle=clip,
        grad=False,
        covers=[clamp, clip_grad],
        errors=[
            Bad((ROWS,), ValueError, "clamp: got neither"),
            Bad((IMAGINARY, 0, 1), TypeError, "complex64"),
        ],
        without={"broadcast": "limits that are tensors have a sample of kind edge"},
    ),
    OpCase(
        ops.clamp,
        unary(0.2, 0.8, min=0, max=1),
        dtypes=FLOATING,
        oracle=clip,
        name="clamp gradient",
        errors=[Bad((ROWS,), ValueError, "clamp: got neither")],
    ),
    OpCase(
        ops.clip_by_value,
        unary(-3.0, 3.0, clip_value_min=0, clip_value_max=1),
        dtypes=REAL,
        grad=False,
        oracle=lambda x, clip_value_min, clip_value_max: clip(x, clip_value_min, clip_value_max),
        errors=[Bad((ROWS,), ValueError, "clip_by_value: got neither")],
    ),
    OpCase(floor, unary(), errors=[TEXT, no_complex(1, "floor")]),
    OpCase(ceil, unary(), errors=[TEXT, no_complex(1, "ceil")]),
    OpCase(trunc, unary(), errors=[TEXT, no_complex(1, "trunc")]),
    OpCase(round_half_even, unary(), errors=[TEXT, no_complex(1, "round")]),
    OpCase(sign, unary(), errors=[TEXT, Bad((np.array([True]),), TypeError, "sign: .*bool")]),
    OpCase(
        ops.frac,
        unary(0.1, 0.9),
        dtypes=FLOATING,
        oracle=lambda x: x - np.trunc(x),
        errors=[no_complex(1, "frac")],
    ),
    OpCase(copysign, binary(*KINKS), errors=[SHAPES, no_complex(2, "copysign")]),
    OpCase(
        heaviside,
        binary(),
        oracle=np.heaviside,
        dtypes=(float32, float64),
        why="NumPy's function is for floating elements",
        errors=[SHAPES, no_complex(2, "heaviside")],
    ),
    OpCase(
        ops.nan_to_num,
        unary(),
        dtypes=FLOATING,
        oracle=replaced,
        covers=[nan_to_num],
        errors=[Bad(("text",), TypeError, "nan_to_num: got str"), no_complex(1, "nan_to_num")],
    ),
    OpCase(real, unary(), errors=[TEXT]),
    OpCase(imag, unary(), errors=[TEXT]),
    OpCase(conj, unary(), errors=[TEXT]),
    OpCase(
        complex_numbers.complex,
        binary(scalar=None),
        errors=[SHAPES, Bad((np.ones(2, np.int32),) * 2, TypeError, "complex: .*int32")],
    ),
    OpCase(
        ops.angle,
        unary(*KINKS),
        dtypes=(*FLOATING, *COMPLEX),
        oracle=angle,
        grad=False,
        errors=[Bad((np.ones(2, np.int32),), TypeError, "angle: .*int32")],
    ),
]
