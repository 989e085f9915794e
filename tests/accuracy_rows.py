"""Accuracy of the element-wise functions, measured against mpmath in units in the last place.

`ROWS` has a bound for each function and dtype. `tests/ops/test_accuracy.py` checks the bounds on a
sample; `python tests/accuracy_rows.py` measures a larger one and writes docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import pathlib
import zlib
from collections.abc import Callable
from typing import Any

import duograph as ms
import mpmath
import numpy as np
from duograph import ops

DOCUMENT = pathlib.Path(__file__).resolve().parents[1] / "docs" / "accuracy.md"
DTYPES = {
    "float32": (np.float32, np.uint32, ms.float32),
    "float64": (np.float64, np.uint64, ms.float64),
}
INF = math.inf
Array = np.ndarray[Any, Any]
MP = mpmath.MPContext()
MP.prec = 240


@dataclasses.dataclass(frozen=True)
class Row:
    """One function and the bounds of its error.

    Attributes:
        name: as in `duograph.ops`, or a gradient.
        function: on Tensors.
        exact: on mpmath numbers.
        bounds: the largest error in ulp, for float32 and float64.
        low, high: the arguments are sampled from this range, by exponent and uniformly.
        near: special points; their neighbours are sampled.
        arity: number of arguments.
        unit: the number of whose last place the error is a multiple, if that is greater than the
            exact value: where two terms cancel, the greater of them.
        note: for the document.
    """

    name: str
    function: Callable[..., ms.Tensor]
    exact: Callable[..., Any]
    bounds: tuple[float, float]
    low: float = -INF
    high: float = INF
    near: tuple[float, ...] = ()
    arity: int = 1
    unit: Callable[..., Any] | None = None
    note: str = ""


def samples(row: Row, dtype: str, count: int) -> list[Array]:
    """Return arguments: `count` random ones, by exponent and uniform, and the special points."""
    float_, bits_, _ = DTYPES[dtype]
    rng = np.random.default_rng(zlib.crc32(f"{row.name}/{dtype}".encode()))
    top = float(np.finfo(float_).max)
    low, high = max(row.low, -top), min(row.high, top)

    def draw() -> Array:
        patterns = rng.integers(0, np.iinfo(bits_).max, 4 * count, bits_, True).view(float_)
        middle = np.exp2(rng.uniform(-12, 9, count)) * rng.choice([-1, 1], count)
        dense = rng.uniform(max(low, -40), min(high, 40), count)
        with np.errstate(invalid="ignore"):  # signalling NaN
            found = np.concatenate([patterns, middle, dense]).astype(float_)
        found = found[np.isfinite(found) & (found >= low) & (found <= high)]
        return rng.permutation(found)[:count]

    drawn = [draw() for _ in range(row.arity)]
    if row.arity > 1:
        size = min(map(len, drawn))
        return [d[:size] for d in drawn]
    tiny = float(np.finfo(float_).tiny)
    ends = [0.0, tiny, tiny / 8, np.finfo(float_).smallest_subnormal, top, 0.5, 1.0, 2.0]
    special = [*row.near, *ends, *[-e for e in ends], row.low, row.high]
    around = np.array([p for p in special if math.isfinite(p)], float_)
    steps = np.array([0, 1, 2, 3, 10, 100, 10_000, 1_000_000], float_)
    with np.errstate(all="ignore"):
        gaps = np.spacing(around)[:, None] * np.concatenate([-steps, steps])
        spread = (around[:, None] + gaps).reshape(-1)
    spread = spread[np.isfinite(spread) & (spread >= row.low) & (spread <= row.high)]
    return [np.concatenate([drawn[0], spread])]


def ulps(got: Array, args: list[Array], row: Row) -> Array:
    """Return the error of each element in units in the last place of the exact value."""
    info = np.finfo(got.dtype)
    out = np.zeros(got.size)
    least = MP.mpf(float(info.smallest_subnormal))
    last = MP.ldexp(1, info.maxexp - info.nmant - 1)  # of the largest number
    top = MP.mpf(float(info.max)) + last / 2
    for k, values in enumerate(zip(*args)):
        exact = [MP.mpf(float(v)) for v in values]
        try:
            want = row.exact(*exact)
        except (ZeroDivisionError, ValueError):
            want = MP.nan
        have = float(got[k])
        if isinstance(want, MP.mpc) or MP.isnan(want):
            out[k] = 0 if math.isnan(have) else INF
        elif math.isnan(have):
            out[k] = INF
        elif abs(want) >= top:
            same = math.isinf(have) and (have > 0) == (want > 0)
            out[k] = 0 if same else float((top - abs(MP.mpf(have))) / last)
        elif math.isinf(have):
            out[k] = float((top - abs(want)) / last) + 1
        else:
            size = abs(want) if row.unit is None else max(abs(want), abs(row.unit(*exact)))
            unit = max(MP.ldexp(1, _exponent(size) - info.nmant - 1), least) if size else least
            out[k] = float(abs(MP.mpf(have) - want) / unit)
    return out


def _exponent(value: Any) -> int:
    """Return e with 2^(e-1) <= |value| < 2^e."""
    found = MP.frexp(value)[1]
    return int(found)


def measured(row: Row, dtype: str, count: int) -> tuple[float, tuple[float, ...]]:
    """Return the largest error of a sample in ulp, and the arguments where it occurs."""
    args = samples(row, dtype, count)
    kind = DTYPES[dtype][2]
    got = row.function(*(ms.Tensor(a, kind) for a in args)).asnumpy()
    error = ulps(got, args, row)
    worst = int(np.argmax(error))
    return float(error[worst]), tuple(float(a[worst]) for a in args)


def _grad(function: Callable[[ms.Tensor], ms.Tensor]) -> Callable[[ms.Tensor], ms.Tensor]:
    return ms.grad(lambda x: function(x).sum())


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + MP.exp(-x))


def _softplus(x: Any) -> Any:
    return MP.exp(x) if x < -300 else x + MP.log1p(MP.exp(-x)) if x > 0 else MP.log1p(MP.exp(x))


def _gelu(x: Any) -> Any:
    return x * MP.ncdf(x) if abs(x) < 60 else (x if x > 0 else _tail(x))


def _tail(x: Any) -> Any:
    return x * MP.erfc(-x / MP.sqrt(2)) / 2 if x > -300 else MP.mpf(0)


def _gelu_tanh(x: Any) -> Any:
    inner = MP.sqrt(2 / MP.pi) * (x + MP.mpf("0.044715") * x**3)
    return x * _sigmoid(2 * inner) if inner > -2000 else MP.mpf(0)


def _erfinv(x: Any) -> Any:
    return MP.sign(x) * MP.inf if abs(x) == 1 else MP.nan if abs(x) > 1 else _erfinv_inside(x)


def _erfinv_inside(x: Any) -> Any:
    """Newton's method on log(erfc) for the tail, on erf else; mpmath's own loses digits near 1."""
    a = abs(x)
    if a < 0.5:
        y = MP.erfinv(a) if a else MP.mpf(0)
        return MP.sign(x) * y
    rest = 1 - a
    y = MP.sqrt(-MP.log(rest))
    for _ in range(60):
        f = MP.erfc(y)
        step = f * MP.log(f / rest) * MP.sqrt(MP.pi) / 2 * MP.exp(y * y)
        y += step
        if abs(step) < abs(y) * MP.mpf(2) ** -150:
            break
    return MP.sign(x) * y


def _lgamma(x: Any) -> Any:
    if x <= 0 and x == MP.floor(x):
        return MP.inf
    return MP.re(MP.loggamma(x)) if x > 0 else MP.log(MP.pi / abs(MP.sinpi(x))) - MP.loggamma(1 - x)


def _digamma(x: Any) -> Any:
    if x <= 0 and x == MP.floor(x):
        return MP.nan
    return MP.digamma(x) if x > 0 else MP.digamma(1 - x) - MP.pi * MP.cospi(x) / MP.sinpi(x)


def _digamma_unit(x: Any) -> Any:
    return MP.digamma(1 - x) if x < -1 else MP.mpf(0)


def _lgamma_unit(x: Any) -> Any:
    return MP.mpf(1) if x < 0 else MP.mpf(0)


def _trigamma(x: Any) -> Any:
    return MP.inf if x <= 0 and x == MP.floor(x) else MP.psi(1, x)


def _log(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Extend a logarithm to 0 and below as C defines it."""
    return lambda x: -MP.inf if x == 0 else MP.nan if x < 0 else function(x)


def _pow(x: Any, y: Any) -> Any:
    if y == 0 or x == 1:
        return MP.mpf(1)
    if x == 0:
        return MP.mpf(0) if y > 0 else MP.inf
    if x < 0 and y != MP.floor(y):
        return MP.nan
    if abs(y * MP.log(abs(x))) > 3000:
        return MP.mpf(0) if y * MP.log(abs(x)) < 0 else MP.inf * (-1 if x < 0 and y % 2 else 1)
    return MP.power(x, int(y)) if x < 0 else MP.power(x, y)


def _logaddexp(x: Any, y: Any) -> Any:
    return max(x, y) + (MP.log1p(MP.exp(-abs(x - y))) if abs(x - y) < 2000 else 0)


def _logaddexp2(x: Any, y: Any) -> Any:
    return max(x, y) + (MP.log1p(MP.power(2, -abs(x - y))) / MP.log(2) if abs(x - y) < 3000 else 0)


def _bounded(
    function: Callable[[Any], Any], low: float, high: float, below: Any, above: Any
) -> Any:
    """Extend a function by its limits where mpmath would take very long."""
    return lambda x: below(x) if x < low else above(x) if x > high else function(x)


def _zero(x: Any) -> Any:
    return MP.mpf(0)


def _inf(x: Any) -> Any:
    return MP.inf


def _same(x: Any) -> Any:
    return x


def max_of(x: Any, y: Any) -> Any:
    return max(abs(x), abs(y), MP.mpf(1))


EXP = _bounded(MP.exp, -2000, 2000, _zero, _inf)
ROWS: tuple[Row, ...] = (
    Row(
        "exp", ops.exp, EXP, (2, 1), near=(88.72284, 709.782712893384, -103.97, -745.13, -87.33654)
    ),
    Row(
        "exp2",
        ops.exp2,
        _bounded(lambda x: MP.power(2, x), -3000, 3000, _zero, _inf),
        (2, 1),
        near=(128, 1024, -149, -1074, -126, -1022),
    ),
    Row(
        "expm1",
        ops.expm1,
        _bounded(MP.expm1, -2000, 2000, lambda x: MP.mpf(-1), _inf),
        (2, 1),
        near=(88.72284, 709.782712893384, -17.3, -37.4),
    ),
    Row("log", ops.log, _log(MP.log), (2, 1)),
    Row(
        "log1p",
        ops.log1p,
        lambda x: _log(MP.log)(1 + x) if x <= -1 else MP.log1p(x),
        (2, 1),
        near=(-1,),
    ),
    Row("log2", ops.log2, _log(lambda x: MP.log(x, 2)), (2, 1)),
    Row("log10", ops.log10, _log(MP.log10), (2, 1)),
    Row("sqrt", ops.sqrt, lambda x: MP.sqrt(x) if x >= 0 else MP.nan, (0.5, 0.5)),
    Row("rsqrt", ops.rsqrt, lambda x: 1 / MP.sqrt(x) if x > 0 else MP.nan, (2, 2), low=1e-45),
    Row("reciprocal", ops.reciprocal, lambda x: 1 / x, (0.5, 0.5), low=1e-45),
    Row("sin", ops.sin, MP.sin, (2, 1), near=tuple(k * math.pi / 2 for k in range(-9, 10))),
    Row("cos", ops.cos, MP.cos, (2, 1), near=tuple(k * math.pi / 2 for k in range(-9, 10))),
    Row("tan", ops.tan, MP.tan, (2, 1), near=tuple(k * math.pi / 2 for k in range(-9, 10))),
    Row("asin", ops.asin, MP.asin, (2, 1)),
    Row("acos", ops.acos, MP.acos, (2, 1)),
    Row("atan", ops.atan, MP.atan, (2, 1)),
    Row(
        "sinh",
        ops.sinh,
        _bounded(MP.sinh, -2000, 2000, lambda x: -MP.inf, _inf),
        (2, 3),
        near=(89.41599, 710.4758600739439),
    ),
    Row(
        "cosh",
        ops.cosh,
        _bounded(MP.cosh, -2000, 2000, _inf, _inf),
        (2, 3),
        near=(89.41599, 710.4758600739439),
    ),
    Row(
        "tanh",
        ops.tanh,
        _bounded(MP.tanh, -2000, 2000, lambda x: MP.mpf(-1), lambda x: MP.mpf(1)),
        (2, 3),
        near=(9.011, 0.27),
    ),
    Row("asinh", ops.asinh, MP.asinh, (2, 3)),
    Row("acosh", ops.acosh, MP.acosh, (2, 3)),
    Row("atanh", ops.atanh, lambda x: MP.sign(x) * MP.inf if abs(x) == 1 else MP.atanh(x), (2, 3)),
    Row("sinc", ops.sinc, lambda x: MP.sincpi(x), (8, 8), low=-1e6, high=1e6),
    Row("erf", ops.erf, MP.erf, (2, 1), near=(0.875, 4.0, 3.92, 5.92)),
    Row(
        "erfc",
        ops.erfc,
        _bounded(MP.erfc, -60, 60, lambda x: MP.mpf(2), _zero),
        (2, 4),
        near=(10.05, 9.19, 26.54, 27.2, 10.5),
    ),
    Row("erfinv", ops.erfinv, _erfinv, (8, 8), low=-1, high=1, near=(0.9, 0.99, 0.999, 0.999999)),
    Row(
        "lgamma",
        ops.lgamma,
        _lgamma,
        (8, 8),
        low=-200,
        near=(1, 2, -0.5, -1.5, 3, 12, -10, -2.457024738),
        unit=_lgamma_unit,
        note="of 1 near the roots below 0",
    ),
    Row(
        "digamma",
        ops.digamma,
        _digamma,
        (16, 16),
        low=-200,
        unit=_digamma_unit,
        note="below -1 of the greater term of the reflection",
        near=(1.4616321449683623, -0.5040830082644554, -1.5734984731623904, -1, -10, 6),
    ),
    Row(
        "sigmoid",
        ops.sigmoid,
        _bounded(_sigmoid, -2000, 2000, _zero, lambda x: MP.mpf(1)),
        (4, 4),
        near=(-103.97, -87.34, -745.13, -708.4),
    ),
    Row("logsigmoid", ops.logsigmoid, lambda x: -_softplus(-x), (4, 4)),
    Row(
        "softplus",
        ops.softplus,
        lambda x: x if x > 20 else _softplus(x),
        (4, 4),
        near=(20, -20),
        note="`threshold=20`: the argument itself beyond",
    ),
    Row(
        "silu",
        ops.silu,
        _bounded(lambda x: x * _sigmoid(x), -2000, 2000, _zero, _same),
        (64, 1024),
        near=(-87, -98, -740),
        note="where sigmoid(x) is subnormal, else 4",
    ),
    Row(
        "mish",
        ops.mish,
        _bounded(lambda x: x * MP.tanh(_softplus(x)), -2000, 2000, _zero, _same),
        (64, 1024),
        near=(-87, -745),
        note="where exp(x) is subnormal, else 4",
    ),
    Row(
        "gelu",
        lambda x: ops.gelu(x, "none"),
        _gelu,
        (3, 3),
        near=(-14, -38),
        unit=_same,
        note="of the argument",
    ),
    Row(
        "gelu tanh",
        lambda x: ops.gelu(x, "tanh"),
        _bounded(_gelu_tanh, -2000, 2000, _zero, _same),
        (3, 3),
        unit=_same,
        note="of the argument",
    ),
    Row("elu", ops.elu, _bounded(MP.expm1, -2000, 0, lambda x: MP.mpf(-1), _same), (2, 2)),
    Row("softsign", ops.softsign, lambda x: x / (1 + abs(x)), (2, 2)),
    Row(
        "tanhshrink",
        ops.tanhshrink,
        lambda x: x - MP.tanh(x) if abs(x) < 2000 else x - MP.sign(x),
        (3, 3),
        unit=_same,
        note="of the argument",
    ),
    Row(
        "logit",
        ops.logit,
        lambda x: MP.log(x / (1 - x)) if 0 < x < 1 else MP.nan,
        (8, 8),
        low=1e-30,
        high=0.9999999,
    ),
    Row("pow", ops.pow, _pow, (2, 1), low=0, arity=2),
    Row("atan2", ops.atan2, MP.atan2, (2, 1), arity=2),
    Row("hypot", ops.hypot, MP.hypot, (2, 1), arity=2),
    Row(
        "logaddexp",
        ops.logaddexp,
        _logaddexp,
        (4, 4),
        arity=2,
        unit=max_of,
        note="of the greater of the arguments and 1",
    ),
    Row(
        "logaddexp2",
        ops.logaddexp2,
        _logaddexp2,
        (4, 4),
        arity=2,
        unit=max_of,
        note="of the greater of the arguments and 1",
    ),
    Row(
        "xlogy",
        ops.xlogy,
        lambda x, y: x * MP.log(y) if y > 0 else MP.nan,
        (4, 2),
        low=1e-30,
        high=1e30,
        arity=2,
    ),
    Row(
        "gradient of lgamma",
        _grad(ops.lgamma),
        _digamma,
        (16, 16),
        low=-200,
        unit=_digamma_unit,
        note="as digamma",
    ),
    Row("gradient of digamma", _grad(ops.digamma), _trigamma, (8, 8), low=-100, high=1e30),
    Row(
        "gradient of erf",
        _grad(ops.erf),
        lambda x: 2 / MP.sqrt(MP.pi) * EXP(-x * x),
        (128, 1024),
        note="x * x is rounded before exp: 1 + x * x",
    ),
    Row(
        "gradient of tanh",
        _grad(ops.tanh),
        lambda x: 1 / MP.cosh(x) ** 2 if abs(x) < 2000 else MP.mpf(0),
        (4, 4),
        unit=lambda x: MP.mpf(1),
        note="of 1",
    ),
)


HEAD = """# Accuracy

The largest error of the element-wise functions on the CPU backend, in units in the last place (ulp)
of the exact value, which mpmath computes with 240 bits. Arguments are sampled over the whole range
by exponent, uniformly near zero, and next to poles, roots, subnormal numbers and the edges of
overflow. NaN, infinities and overflow must be exact. "Measured" is the largest error of {count}
arguments; "bound" is what a test checks (`tests/ops/test_accuracy.py`).

float16 and bfloat16 are computed in float32 and rounded once. Compiled code has the same errors.
The float64 functions that C has are those of the C library; the figures are of glibc. On other
devices float32 functions run the same code; CUDA computes exp, tanh and quotients by approximate
instructions where the result is rounded to 16 bits, which errs by at most 0.51 ulp of bfloat16 and
0.52 ulp of float16 (0.5 if exact). A backend without a function has its decomposition,
which is of float32 accuracy for `erf`, `erfc` and `lgamma`.

Rare functions that NumPy computes on the host in float64 stand in no row. Bessel functions I and K,
and J and Y as a part of their amplitude sqrt(2 / (pi x)), err by at most 8 ulp; `polygamma` errs by
a relative 1e-12 at most, also at negative numbers beside its poles.

Where two terms cancel, no fixed number of ulp of the result holds. There the unit is that of the
larger term, which the last column names.

| function | float32 measured | bound | float64 measured | bound | unit and remarks |
|---|---|---|---|---|---|
"""


def line(row: Row, count: int) -> str:
    """Return the row of the document for a function."""
    cells = [row.name]
    for dtype, bound in zip(DTYPES, row.bounds):
        error, at = measured(row, dtype, count)
        if not error <= bound:
            print(f"{row.name} of {dtype} is {error:g} ulp off at {at}; bound {bound}")
        cells += [f"{error:.3g}", f"{bound:g}"]
    return f"| {' | '.join([*cells, row.note])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="arguments of each function")
    parser.add_argument("--only", default="", help="print the functions with this in their name")
    args = parser.parse_args()
    if args.only:
        for row in ROWS:
            if args.only in row.name:
                print(line(row, args.count))
        return
    rows = [line(row, args.count) for row in ROWS]
    DOCUMENT.write_text(HEAD.format(count=args.count) + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
