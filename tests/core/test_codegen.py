"""The kernel printer: what it prints, and that its own mathematics is as accurate as it says."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import platform
import shutil
import subprocess

import numpy as np
import pytest
from duograph.backend.codegen import C, Expr, print_function, s, trace_scalar
from duograph.backend.codegen.expression import keeps
from duograph.backend.codegen.scalar_kernels import scalar_kernels
from duograph.dtype import bfloat16, complex64, float16, float32, float64, int8, int32
from duograph.errors import DTypeError


def printed(rule, *dtypes, result=None, **attributes):
    inputs = list(zip("xyz", dtypes))
    e = trace_scalar(rule, inputs, attributes, result or dtypes[-1])
    return print_function(C, "f", inputs, e)


# ---- what is printed ----------------------------------------------------------------------------


def test_a_rule_prints_as_one_readable_function():
    text = printed(lambda s, x: s.where(x > 0, x, 0.1 * s.expm1(x)), float32)
    assert text == (
        "DG_FN f32 f(f32 x) {\n"
        "    const f32 t0 = 0.1f * dg_expm1_f32(x);\n"
        "    return (x > 0.0f) ? x : t0;\n"
        "}\n"
    )  # fmt: skip


def test_a_value_used_twice_is_computed_once():
    def rule(s, x):
        return s.exp(x) / (1 + s.exp(x))

    assert printed(rule, float32) == (
        "DG_FN f32 f(f32 x) {\n"
        "    const f32 t0 = dg_exp_f32(x);\n"
        "    return t0 / (1.0f + t0);\n"
        "}\n"
    )  # fmt: skip


def test_integers_wrap_through_unsigned_arithmetic():
    assert "(i32)((u32)x + (u32)y)" in printed(lambda s, x, y: x + y, int32, int32)
    assert "dg_floor_divide_i8(x, y)" in printed(lambda s, x, y: s.floor_divide(x, y), int8, int8)


def test_half_precision_is_computed_in_float32():
    text = printed(lambda s, x: x * x, float16)
    assert text.startswith("DG_FN f32 f(f32 x)")


# rule -> what is printed by a dialect with narrow forms of exp and of the quotient
NARROWED = {
    "function": (lambda s, x, y: s.exp(x), "dg_exp_narrow_f32(x)"),
    "quotient": (lambda s, x, y: x / (1 + y), "dg_divide_narrow_f32(x, 1.0f + y)"),
    "nested": (lambda s, x, y: s.log(s.exp(x)) * y, "dg_log_f32(dg_exp_narrow_f32(x)) * y"),
    "branches": (
        lambda s, x, y: s.where(s.exp(x) > y, s.exp(y), 1),
        "(dg_exp_f32(x) > y) ? t0 : 1.0f",
    ),
    "rounded": (lambda s, x, y: s.floor(x / y) * y, "dg_floor_f32(x / y) * y"),
    "wrapped": (lambda s, x, y: s.sin(s.exp(x)), "dg_sin_f32(dg_exp_f32(x))"),
    "in float64": (
        lambda s, x, y: s.cast(s.exp(s.cast(x, float64)), float32),
        "(f32)dg_exp_f64((f64)x)",
    ),
}


@pytest.mark.parametrize("name", NARROWED)
def test_functions_of_16_bit_results(name):
    """A dialect's narrow forms are used where a small error stays small."""
    rule, expected = NARROWED[name]
    dialect = dataclasses.replace(C, narrow=frozenset({"exp", "/"}))
    for dtype in (float16, bfloat16):
        e = trace_scalar(rule, [("x", dtype), ("y", dtype)], {}, dtype)
        assert f"return {expected};" in print_function(
            dialect, "f", [("x", dtype), ("y", dtype)], e
        )
        assert "narrow" not in print_function(C, "f", [("x", dtype), ("y", dtype)], e)
    e = trace_scalar(rule, [("x", float32), ("y", float32)], {}, float32)
    assert "narrow" not in print_function(dialect, "f", [("x", float32), ("y", float32)], e)


def test_values_that_need_no_rounding():
    x, y = (Expr("input", float32, (), name) for name in "xy")
    kept = [x, -x, s.abs(-x), s.where(x > y + 1, x, -y), s.maximum(x, 0), s.minimum(x, 0.5)]
    changed = [x + y, s.exp(x), -(x * y), s.where(x > 0, x, y * y), s.maximum(x, 0.1)]
    for dtype in (float16, bfloat16):
        assert [keeps(e, dtype) for e in kept] == [True] * len(kept)
        assert [keeps(e, dtype) for e in changed] == [False] * len(changed)


def test_constants():
    assert "DG_INF_F32" in printed(lambda s, x: s.maximum(x, s.inf), float32)
    assert "dg_make_c64(1.0f, -2.0f)" in printed(lambda s, x: x * (1 - 2j), complex64)


def test_mistakes_in_a_rule_are_refused():
    x, y = Expr("input", float32, (), "x"), Expr("input", float64, (), "y")
    with pytest.raises(DTypeError, match="cast one to the other's dtype"):
        x + y
    with pytest.raises(DTypeError, match=r"use s\.where"):
        bool(x > 0)
    with pytest.raises(DTypeError, match="wanted bool or an integer"):
        ~x
    with pytest.raises(DTypeError, match="use floor_divide"):
        printed(lambda s, x: x / x, int32)


def test_every_kernel_of_the_op_table_prints():
    kernels = list(scalar_kernels())
    assert len(kernels) == len({k.name for k in kernels}) > 1000
    for k in kernels:
        parameters = [*k.operands, *((p, k.operands[-1][1]) for p in k.parameters)]
        text = print_function(C, k.name, parameters, k.expression)
        assert text.count("return") == 1


# ---- accuracy -----------------------------------------------------------------------------------

# Errors in units in the last place over all of float32, measured; the promise is 2.
LIMITS = {
    "exp": 2.0, "exp2": 2.0, "expm1": 1.4, "log": 0.8, "log1p": 1.5, "log2": 1.7, "log10": 1.9,
    "sqrt": 0.501, "rsqrt": 1.5, "cbrt": 0.51, "sin": 1.5, "cos": 1.5, "tan": 0.51, "asin": 0.51,
    "acos": 0.51, "atan": 0.51, "sinh": 0.51, "cosh": 0.51, "tanh": 1.8, "asinh": 0.51,
    "acosh": 0.51, "atanh": 0.51, "erf": 1.3, "erfc": 0.51,
}  # fmt: skip
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
         "acosh": "arccosh", "atanh": "arctanh"}  # fmt: skip
LEVELS = {"baseline": [], "fma": ["-mavx2", "-mfma", "-DDG_HAS_FMA"]}


@pytest.fixture(scope="module", params=LEVELS)
def library(request, tmp_path_factory):
    """Fixture: the library of float32 functions, compiled as the CPU backend compiles kernels."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    flags = LEVELS[request.param]
    if flags and ("avx2" not in _cpu_flags() or platform.machine() != "x86_64"):
        pytest.skip("no AVX2 here")
    folder = tmp_path_factory.mktemp("codegen")
    lines = [C.prelude()]
    for name in LIMITS:
        lines.append(
            f"void m_{name}(const f32 *x, f32 *out, i64 n)"
            f" {{ for (i64 i = 0; i < n; i++) out[i] = dg_{name}_f32(x[i]); }}"
        )
    for name in ("pow", "atan2", "hypot"):
        lines.append(
            f"void m_{name}(const f32 *x, const f32 *y, f32 *out, i64 n)"
            f" {{ for (i64 i = 0; i < n; i++) out[i] = dg_{name}_f32(x[i], y[i]); }}"
        )
    source, target = folder / "m.c", folder / "m.so"
    source.write_text("\n".join(lines))
    options = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv"]
    subprocess.run(
        [compiler, *options, *flags, "-shared", "-fPIC", "-o", target, source, "-lm"], check=True
    )
    return ctypes.CDLL(str(target))


def _cpu_flags():
    try:
        with open("/proc/cpuinfo") as file:
            return file.read()
    except OSError:
        return ""


def samples():
    """Return bit patterns spread over float32, and all those near zero, one and infinity."""
    step = np.arange(0, 2**32, 20011, dtype=np.uint64).astype(np.uint32)
    near = [np.arange(a, a + 1500) for a in (0, 0x007FFE00, 0x3F7FFD00, 0x7F7FFD00)]
    close = np.concatenate(near).astype(np.uint32)
    bits = np.concatenate([step, close, close | np.uint32(0x80000000)])
    return bits.view(np.float32)


def call(function, *arrays):
    out = np.empty_like(arrays[0])
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*arrays, out)]
    function(*pointers, ctypes.c_int64(out.size))
    return out


def ulps(got, want):
    """Return the distances in units in the last place of float32; special values must be equal."""
    rounded = want.astype(np.float32)
    finite = np.isfinite(rounded) & np.isfinite(got)
    size = np.minimum(np.abs(want), float(np.finfo(np.float32).max))
    unit = 2.0 ** (np.floor(np.log2(np.maximum(size, 2.0**-126))) - 23)
    error = np.where(finite, np.abs(got.astype(np.float64) - want) / unit, 0)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    edge = np.abs(np.abs(want) - 3.40282357e38) < 1e31  # rounds to the greatest number or to inf
    error = np.where(finite | same | edge, error, np.inf)
    signs = (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    return np.where(signs, np.inf, error)


def reference(name, x):
    wide = x.astype(np.float64)
    if name in ("erf", "erfc"):
        return np.vectorize(getattr(math, name), otypes=[np.float64])(wide)
    if name == "rsqrt":
        return 1 / np.sqrt(wide)
    return getattr(np, NUMPY.get(name, name))(wide)


@pytest.mark.parametrize("name", LIMITS)
def test_float32_functions_are_within_their_limit(library, name):
    with np.errstate(all="ignore"):
        x = samples()
        error = ulps(call(library[f"m_{name}"], x), reference(name, x))
    worst = int(np.argmax(error))
    assert error[worst] <= LIMITS[name] <= 2, f"{name}({x[worst]!r}): {error[worst]:.3f} ulp"


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_float32_functions_of_two(library, name):
    rng = np.random.default_rng(0)
    special = np.array(
        [
            0,
            -0.0,
            1,
            -1,
            2,
            -2,
            0.5,
            -0.5,
            3,
            -3,
            np.inf,
            -np.inf,
            np.nan,
            1e-40,
            3e38,
            2**24 + 2,
            8388609,
        ],
        np.float32,
    )
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    wild = rng.integers(0, 2**32, (2, 100000), dtype=np.uint64).astype(np.uint32).view(np.float32)
    base = np.exp(rng.uniform(-20, 20, 100000)).astype(np.float32)
    power = (rng.uniform(-100, 100, 100000) / np.log(base)).astype(np.float32)
    x = np.concatenate([a, wild[0], base, -base[:1000]])
    y = np.concatenate([b, wild[1], power, np.round(power[:1000])])
    function = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}[name]
    with np.errstate(all="ignore"):
        error = ulps(
            call(library[f"m_{name}"], x, y), function(x.astype(np.float64), y.astype(np.float64))
        )
    worst = int(np.argmax(error))
    assert error[worst] <= 0.51, f"{name}({x[worst]!r}, {y[worst]!r}): {error[worst]:.3f} ulp"


def test_half_precision_conversions_are_exact(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, target = tmp_path / "h.c", tmp_path / "h.so"
    source.write_text(
        C.prelude()
        + "void widen(const u16 *x, f32 *y, i64 n) { for (i64 i = 0; i < n; i++) y[i] = "
        "dg_from_f16(x[i]); }\n"
        + "void narrow(const f32 *x, u16 *y, i64 n) { for (i64 i = 0; i < n; i++) y[i] = "
        "dg_to_f16(x[i]); }\n"
        + "void brain(const f32 *x, u16 *y, i64 n) { for (i64 i = 0; i < n; i++) y[i] = "
        "dg_to_bf16(x[i]); }\n"
    )
    subprocess.run(
        [compiler, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", target, source, "-lm"],
        check=True,
    )
    lib = ctypes.CDLL(str(target))
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def run(function, x, dtype):
        out = np.empty(x.shape, dtype)
        pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, out)]
        function(*pointers, ctypes.c_int64(x.size))
        return out

    every = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    wide = run(lib.widen, every, np.float32)
    np.testing.assert_array_equal(wide, every.view(np.float16).astype(np.float32))
    x = samples()
    with np.errstate(all="ignore"):
        half = x.astype(np.float16)
        bf16 = x.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run(lib.narrow, x, np.uint16).view(np.float16), half)
    got = run(lib.brain, x, np.uint16).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got.astype(np.float32), bf16.astype(np.float32))


def test_the_scalar_namespace_is_the_one_instance():
    assert type(s).__name__ == "Scalars"
