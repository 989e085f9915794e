"""Faults of operators of the user's own: sources, libraries and declarations that are wrong."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import warnings
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops
from duograph.backend import registry
from duograph.errors import ArgumentError, ArgumentValueError, BackendError
from ops.test_custom_kernels import (
    CUDA,
    LEVELS,
    OPENCL,
    SIGNATURE,
    SOURCES,
    C,
    arrays,
    at,
    device,  # noqa: F401 (a fixture)
    gradient,
    scaled,
)

pytestmark = pytest.mark.usefixtures("restored")


def operator(sources: dict[str, str], **options: Any) -> ops.Custom:
    options = {"in_dtype": ms.float32, **options}
    return ops.Custom(sources, func_type="source", name="scaled", **options)


# ---- sources -------------------------------------------------------------------------------------

# what is wrong -> from a source to a wrong one
BROKEN = {
    "syntax": lambda text: text.replace("{", "{ (", 1),
    "an unknown name": lambda text: text.replace("2 *", "two *"),
    "another name": lambda text: text.replace("scaled(", "scaled_too(").replace(
        ";", "; //scaled", 1
    ),
}


@pytest.mark.parametrize("level", [None, "O2"])
@pytest.mark.parametrize("what", BROKEN)
def test_a_source_that_cannot_be_built_is_named(device: str, what: str, level: str | None) -> None:
    f = operator({k: BROKEN[what](v) for k, v in SOURCES.items()})
    x, y = map(Tensor, arrays())
    with pytest.raises(
        ArgumentValueError, match=r"Custom: the .*'scaled' cannot be used"
    ) as caught:
        at(level, lambda x, y: f(x, y) + 1)(x, y)
    if what == "an unknown name":
        assert "'two'" in str(caught.value) or "‘two’" in str(caught.value)


@pytest.mark.parametrize("number", [1, 4])
def test_the_parameters_of_an_opencl_kernel_are_counted(number: int) -> None:
    entry = registry.entries().get("OpenCL")
    if entry is None or registry.problem_of(entry) is not None:
        pytest.skip("there is no OpenCL device")
    given = ", ".join(f"__global float *p{k}" for k in range(number))
    f = operator({"opencl": f"__kernel void scaled({given}) {{ p0[0] = 1; }}"})
    x, y = (Tensor(a, device="OpenCL") for a in arrays())
    with pytest.raises(ArgumentValueError, match=rf"kernel has {number} parameters; wanted 3"):
        f(x, y)


def test_a_rule_for_work_items_that_raises_is_named() -> None:
    kernel = operator(SOURCES, work_items=lambda x, y: x[9]).kernel
    assert kernel is not None
    types = [Tensor(a)._type for a in arrays()]
    with pytest.raises(
        ArgumentError, match=r"work_items \(.*\.py:\d+\) of 'scaled' raised IndexErr"
    ):
        kernel.items(types, types[:1])


# ---- dtypes --------------------------------------------------------------------------------------

WRONG_DTYPES: dict[str, tuple[str, Any]] = {
    "an unknown name": ("in_dtype", "floaty"),
    "a number": ("in_dtype", 3),
    "one of several": ("in_dtype", (ms.float32, "floaty")),
    "a function for inputs": ("in_dtype", lambda d: d),
    "an unknown name of a result": ("out_dtype", "floaty"),
    "any result": ("out_dtype", "any"),
    "one of several results": ("out_dtype", (ms.float32, 3)),
}


@pytest.mark.parametrize("what", WRONG_DTYPES)
def test_a_wrong_dtype_is_refused_where_the_operator_is_made(what: str) -> None:
    option, value = WRONG_DTYPES[what]
    with pytest.raises(ArgumentError, match=rf"Custom: {option}: got .*; wanted one of bool"):
        operator({"c": C}, **{option: value})


@pytest.mark.parametrize("value", ["any", np.float32, "float32", float, [ms.float32, ms.float32]])
def test_dtypes_in_all_forms(value: Any) -> None:
    options = {"in_dtype": ms.float32, "out_dtype": ms.float32}
    f = operator({"c": C}, **{**options, "in_dtype": value if value is not float else "any"})
    a, b = arrays()
    np.testing.assert_allclose(f(Tensor(a), Tensor(b)).asnumpy(), 2 * a + np.sin(b), rtol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "options",
    [
        {"out_dtype": (ms.float32,)},
        {"out_shape": lambda x, y: (x,)},
        {"out_shape": lambda x, y: (x,), "out_dtype": [ms.float32]},
    ],
)
def test_a_list_of_one_result_is_one_result(
    device: str, options: dict[str, Any], level: str | None
) -> None:
    f = scaled(**options)
    a, b = arrays()
    run = at(level, lambda x, y: f(x, y) + 1)
    want = 2 * a + np.sin(b) + 1
    np.testing.assert_allclose(run(Tensor(a), Tensor(b)).asnumpy(), want, rtol=1e-5, atol=1e-5)
    found = ms.grad(lambda x, y: f(x, y).sum())(Tensor(a), Tensor(b))
    np.testing.assert_allclose(found.asnumpy(), np.full_like(a, 2), rtol=1e-5)


# C's element type of each dtype that a kernel may copy byte by byte.
DTYPES = (
    *(ms.bool_, ms.int8, ms.int16, ms.int32, ms.int64, ms.uint8, ms.uint16, ms.uint32, ms.uint64),
    *(ms.float16, ms.bfloat16, ms.float32, ms.float64, ms.complex64, ms.complex128),
)
COPY = (
    "#include <string.h>\n"
    + SIGNATURE.format("copied")
    + """ {{
    int64_t n = {size};
    for (int k = 0; k < ndims[0]; k++) n *= shapes[0][k];
    memcpy(params[1], params[0], n);
    return strcmp(dtypes[0], "{name}") || strcmp(dtypes[1], "{name}");
}}
"""
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_every_dtype(dtype: Any, level: str | None) -> None:
    ms.set_context(device_target="CPU")
    text = COPY.format(size=dtype.itemsize, name=dtype.name)
    f = ops.Custom(
        {"c": text}, func_type="source", name="copied", in_dtype=dtype,
        bprop=lambda x, out, dout: (dout,),
    )  # fmt: skip
    run = at(level, f)
    for shape in ((3, 2), (), (0,), (2, 0, 3)):
        x = Tensor(np.arange(6)[: int(np.prod(shape))].reshape(shape)).astype(dtype)
        got = run(x)
        assert (got.shape, got.dtype) == (shape, dtype)
        np.testing.assert_array_equal(got.asnumpy(), x.asnumpy())
    x = Tensor(np.arange(6).reshape(3, 2)).astype(dtype)
    np.testing.assert_array_equal(ms.vmap(f)(x).asnumpy(), x.asnumpy())
    if dtype.kind in "f":
        found = ms.grad(lambda a: (f(a) * 3).sum())(x)
        np.testing.assert_array_equal(found.asnumpy(), np.full((3, 2), 3, found.asnumpy().dtype))


# ---- libraries -----------------------------------------------------------------------------------


def build(path: pathlib.Path, factor: int) -> pathlib.Path:
    """Build a library whose function `scaled` has another factor than 2."""
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    text = "#include <stdint.h>\n" + C.replace("2 *", f"{factor} *")
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), "-lm"]
    path.unlink(missing_ok=True)
    subprocess.run(command, input=text.encode(), check=True)
    return path


def from_library(path: pathlib.Path) -> ops.Custom:
    return ops.Custom(f"{path}:scaled", lambda x, y: x, lambda x, y: x, "aot", gradient)


def factor_of(f: Any) -> float:
    one, zero = Tensor(np.ones(3, np.float32)), Tensor(np.zeros(3, np.float32))
    return float(f(one, zero)[0])


@pytest.mark.parametrize("level", LEVELS)
def test_a_library_that_is_built_again_is_loaded_again(
    tmp_path: pathlib.Path, level: str | None
) -> None:
    ms.set_context(device_target="CPU")
    first = from_library(build(tmp_path / "k.so", 3))
    assert factor_of(at(level, first)) == 3
    second = from_library(build(tmp_path / "k.so", 5))
    assert factor_of(at(level, second)) == 5
    assert factor_of(at(level, first)) == 3  # an operator keeps the library that it has
    third = from_library(build(tmp_path / "k.so", 7))
    assert (factor_of(third), factor_of(second)) == (7, 5)


def test_a_library_that_is_gone(tmp_path: pathlib.Path) -> None:
    ms.set_context(device_target="CPU")
    used, unused = (
        from_library(build(tmp_path / "a.so", 3)),
        from_library(build(tmp_path / "b.so", 3)),
    )
    assert factor_of(used) == 3
    for path in tmp_path.iterdir():
        path.unlink()
    a, b = arrays((4, 4))  # other types than those that were prepared
    np.testing.assert_allclose(used(Tensor(a), Tensor(b)).asnumpy(), 3 * a + np.sin(b), rtol=1e-5)
    with pytest.raises(ArgumentValueError, match=r"b\.so has no usable function 'scaled'"):
        factor_of(unused)
    with pytest.raises(ArgumentValueError, match=r"there is no library .*a\.so"):
        from_library(tmp_path / "a.so")


@pytest.mark.parametrize("content", [b"", b"junk", b"\x7fELF" + bytes(100)])
def test_a_file_that_is_no_library(tmp_path: pathlib.Path, content: bytes) -> None:
    ms.set_context(device_target="CPU")
    (tmp_path / "k.so").write_bytes(content)
    with pytest.raises(ArgumentValueError, match=r"k\.so has no usable function 'scaled'"):
        factor_of(from_library(tmp_path / "k.so"))


# ---- the check -----------------------------------------------------------------------------------

# A kernel that reads one element beyond its first input.
BEYOND = {
    "c": C.replace("2 * x[i]", "2 * x[i + 1]"),
    "opencl": OPENCL.replace("2 * x[i]", "2 * x[i + 1]"),
    "cuda": CUDA.replace("2 * x[i]", "2 * x[i + 1]"),
}


def test_the_check_finds_reads_beyond_the_inputs() -> None:
    ms.set_context(device_target="CPU")
    x, y = map(Tensor, arrays((20,)))
    with pytest.raises(BackendError, match="none read beyond the inputs"):
        ms.check_custom(operator(BEYOND), x, y)


def test_the_check_compiles_what_it_says() -> None:
    """A Python function is called by compiled code and does not make it run line by line."""
    f = ops.Custom(lambda x: x * 2, lambda s: s, lambda d: d, "pyfunc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = ms.check_custom(f, Tensor([1.0, 2.0]))
    assert {f"compiled at {level}" for level in ("O0", "O1", "O2")} <= set(done)
