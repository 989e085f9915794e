"""Decompositions against the reference, over the whole range of each dtype.

The wide ring has the required kernels alone, so every other op runs its decomposition there. The
conformance suite tests all ops on it, with numbers of ordinary size; this table adds tiny and huge
ones, poles, roots and both sides of branch cuts.
"""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import dtype as dtypes
from duograph import ops
from duograph.conformance import oracle

pytest.importorskip("duograph_inner_ring")

REAL = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
COMPLEX = (dtypes.complex64, dtypes.complex128)
# Exponents of the smallest and of the largest number.
RANGE = {
    "float16": (-24, 16),
    "bfloat16": (-133, 128),
    "float32": (-149, 128),
    "float64": (-1074, 1024),
}
PRECISION = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
PART = {"complex64": dtypes.float32, "complex128": dtypes.float64}


def numbers(dtype):
    """Numbers of every exponent and both signs, ordinary ones, multiples of 1/4, special values."""
    rng = np.random.default_rng(5)
    low, high = RANGE[dtype.name]
    exponents = np.arange(low, high, max(1, (high - low) // 128))
    wide = np.ldexp(1 + rng.random((2, exponents.size)), exponents).reshape(-1)
    steps = np.arange(-14, 15) / 4
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.pi / 2, -np.pi / 2, 1e-3, -1e-3]
    parts = [wide, -wide, rng.uniform(-20, 20, 100), rng.uniform(-1, 1, 100), steps, special]
    with np.errstate(all="ignore"):
        return np.concatenate(parts).astype(dtype.np)


def complex_numbers(dtype):
    """Pairs of the numbers that neither overflow nor vanish when squared, zeros among them."""
    rng = np.random.default_rng(6)
    with np.errstate(all="ignore"):
        parts = numbers(PART[dtype.name])
        size = np.abs(parts)
        parts = parts[(size == 0) | ((size > 1e-12) & (size < 60))]
    return (rng.choice(parts, 400) + 1j * rng.choice(parts, 400)).astype(dtype.np)


def both(function, *arrays):
    """Results of a function on the wide ring and by the reference rules."""
    oracle.install()
    with np.errstate(all="ignore"):
        return [
            function(*[ms.Tensor(a, device=name) for a in arrays]).asnumpy()
            for name in ("WideRing", oracle.NAME)
        ]


def check(found, wanted, dtype, ulps, floor=0.0):
    """Compare, with errors relative to the result, in units of its last place.

    floor: relative to at least this size, for functions with cancellation around a root.
    """
    assert found.dtype == wanted.dtype
    if found.dtype.kind == "b":
        np.testing.assert_array_equal(found, wanted)
        return
    wide = np.complex128 if dtype.is_complex else np.float64
    part = PART[dtype.name].name if dtype.is_complex else dtype.name
    found, wanted = found.astype(wide), wanted.astype(wide)
    least = max(floor, 2.0 ** (RANGE[part][0] + PRECISION[part]))
    with np.errstate(all="ignore"):
        error = np.abs(found - wanted) / np.maximum(np.abs(wanted), least) * 2.0 ** PRECISION[part]
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    wrong = ~same & ~(error <= ulps)
    assert not wrong.any(), [(k, found[k], wanted[k]) for k in np.flatnonzero(wrong)[:5]]


# Bounds in units of the last place, and the size below which errors are relative to that size. An
# exponential or a power multiplies the error of its argument by the argument; beyond 4, tan has the
# error of a cosine near its roots.
UNARY = {
    "abs": (0, 0), "neg": (0, 0), "sign": (0, 0), "square": (1, 0), "reciprocal": (1, 0),
    "isfinite": (0, 0), "isinf": (0, 0), "isnan": (0, 0), "ceil": (0, 0), "trunc": (0, 0),
    "exp2": (150, 0), "expm1": (8, 0), "log1p": (8, 0), "log2": (8, 0), "log10": (8, 0),
    "cos": (8, 0.25), "tan": (6000, 0.25), "asin": (8, 0), "acos": (8, 0.25), "atan": (8, 0),
    "sinh": (8, 0), "cosh": (200, 0), "tanh": (8, 0), "asinh": (8, 0), "acosh": (8, 0),
    "atanh": (8, 0), "erf": (8, 0), "erfc": (200, 0), "lgamma": (32, 1), "rsqrt": (4, 0),
    "sigmoid": (200, 0), "gelu": (32, 0.125),
}  # fmt: skip
BINARY = {
    "fmod": (0, 0), "remainder": (1, 0), "floor_divide": (2, 0), "truncate_div": (2, 0),
    "atan2": (8, 0), "hypot": (4, 0), "minimum": (0, 0), "fmax": (0, 0), "fmin": (0, 0),
}  # fmt: skip
OF_COMPLEX = {
    "abs": (8, 0), "neg": (0, 0), "sign": (8, 0), "isfinite": (0, 0), "isinf": (0, 0),
    "real": (0, 0), "imag": (0, 0), "conj": (0, 0), "square": (8, 0), "reciprocal": (8, 0),
    "cos": (300, 0), "tan": (300, 0), "sinh": (300, 0), "cosh": (300, 0), "tanh": (300, 0),
    "asin": (300, 0.01), "asinh": (300, 0.01), "acos": (300, 0.01), "acosh": (300, 0.01),
    "atan": (300, 0.01), "atanh": (300, 0.01), "expm1": (300, 0.01), "log1p": (300, 0.01),
}  # fmt: skip


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_of_real_numbers(name, dtype):
    array = numbers(dtype)
    check(*both(getattr(ops, name), array), dtype, *UNARY[name])


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_of_two_real_numbers(name, dtype):
    """Quotients take all sizes: the remainder of 1e300 by 1e-300 is exact, too."""
    array = numbers(dtype)
    other = np.random.default_rng(7).permutation(array)
    check(*both(getattr(ops, name), array, other), dtype, *BINARY[name])


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_of_complex_numbers(name, dtype):
    array = complex_numbers(dtype)
    check(*both(getattr(ops, name), array), dtype, *OF_COMPLEX[name])


PARTS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5)
ANY_PARTS = [complex(a, b) for a in PARTS for b in PARTS]


@pytest.mark.parametrize("mode", ["eager", "O0", "O1", "O2"])
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize(
    "name", ["abs", "neg", "isnan", "isfinite", "isinf", "real", "imag", "conj"]
)
def test_infinities_and_nan_in_one_part_leave_the_other(name, dtype, mode):
    function = getattr(ops, name)
    call = function if mode == "eager" else ms.jit(lambda x: function(x), jit_level=mode)
    found, wanted = both(call, np.array(ANY_PARTS, dtype.np))
    np.testing.assert_array_equal(found, wanted)
    for part in ("real", "imag") if found.dtype.kind == "c" else ():
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))


def test_imag_without_a_kernel_is_exact_for_finite_numbers(monkeypatch):
    """A backend without the kernel gets NaN for other numbers, never a wrong one."""
    ring = pytest.importorskip("duograph_inner_ring.backend")
    monkeypatch.setattr(ring, "COMPLEX_RING", ring.INNER_RING)
    ops.imag.table.clear()
    try:
        array = np.array([1 + 2j, -3.5 - 4j, 0j, complex(np.inf, 0), complex(np.nan, 5)])
        found = ops.imag(ms.Tensor(array, device="WideRing")).asnumpy()
    finally:
        ops.imag.table.clear()
    np.testing.assert_array_equal(found, [2.0, -4.0, 0.0, 0.0, np.nan])


@pytest.mark.parametrize("mode", ["eager", "O0", "O1", "O2"])
def test_a_remainder_runs_its_loops_in_every_mode(mode):
    x = ms.Tensor(np.array([1e30, -1e30, 7.5, 5.0], np.float32), device="InnerRing")
    y = ms.Tensor(np.array([3.0, 1e-20, 2.0, np.inf], np.float32), device="InnerRing")
    call = ops.fmod if mode == "eager" else ms.jit(lambda a, b: ops.fmod(a, b), jit_level=mode)
    np.testing.assert_array_equal(call(x, y).asnumpy(), np.fmod(x.asnumpy(), y.asnumpy()))


@pytest.mark.parametrize("dtype", REAL[:2], ids=str)
def test_half_precision_rounds_once(dtype):
    """An element-wise op without a kernel computes in float32, as kernels do."""
    array = np.linspace(-4, 4, 200).astype(dtype.np)
    for name in ("tanh", "erf", "expm1", "sigmoid"):
        function = getattr(ops, name)
        wide = function(ms.Tensor(array.astype(np.float32), device="WideRing")).asnumpy()
        found = function(ms.Tensor(array, device="WideRing")).asnumpy()
        np.testing.assert_array_equal(
            found.astype(np.float32), wide.astype(dtype.np).astype(np.float32)
        )
