"""Products by cuBLASLt, over a library made for these tests (`fake_cublaslt.c`), on the emulated
device.

The names and numbers are compared with the real library's headers, and the real library is loaded,
where the package nvidia-cublas is installed; DUOGRAPH_CUDA_CUBLAS_WHEEL names its folder
(`.../nvidia/cu13`) where it is not beside us.
"""

from __future__ import annotations

import functools
import itertools
import os
import pathlib
import re
import sys
import warnings

import duograph as ms
import numpy as np
import pytest
from cublaslt_fixtures import NAME, WithLibrary, backend, fake, path  # noqa: F401
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.op import OPS
from duograph.types import TensorType
from duograph_cuda import cublaslt, sources

NEAR = {"float64": 1e-13, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


def _tensors(dtype, *shapes):
    rng = np.random.default_rng(len(shapes))
    return [ms.Tensor(rng.normal(size=s), getattr(ms, dtype), device="CPU") for s in shapes]


def _wide(x):
    return x.asnumpy().astype(np.float64)


def _product(x, y, a=False, b=False):
    return OPS["matmul"](x.move_to(NAME), y.move_to(NAME), a, b)


SHAPES = [
    (5, 7, 3, (), ()),
    (64, 48, 33, (), ()),
    (1, 9, 4, (), ()),
    (6, 1, 5, (), ()),
    (4, 3, 1, (), ()),
    (5, 6, 7, (3,), (3,)),
    (5, 6, 7, (2, 3), (2, 3)),
    (5, 6, 7, (2, 3), ()),
    (5, 6, 7, (3,), (1,)),
    (5, 6, 7, (1,), (3,)),
]


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("m, n, k, x_batch, y_batch", SHAPES)
def test_matmul(backend, fake, m, n, k, x_batch, y_batch, dtype):
    """All four ways to lie in memory; batches, and batches of one operand only."""
    for a, b in itertools.product((False, True), repeat=2):
        x, y = _tensors(
            dtype, x_batch + ((k, m) if a else (m, k)), y_batch + ((n, k) if b else (k, n))
        )
        want = np.matmul(
            _wide(x).swapaxes(-1, -2) if a else _wide(x),
            _wide(y).swapaxes(-1, -2) if b else _wide(y),
        )
        before = fake.fake_calls()
        got = _wide(_product(x, y, a, b))
        assert fake.fake_calls() == before + 1, "another kernel computed this"
        assert fake.fake_compute() == (70 if dtype == "float64" else 68)
        np.testing.assert_allclose(got, want, atol=NEAR[dtype] * np.abs(want).max(), rtol=0)


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize(
    "m, n, k", [(5, 7, 3), (8, 50, 16), (19, 16, 24), (32, 40, 17), (1, 300, 9)]
)
def test_lines_that_are_not_aligned_are_copied(backend, fake, m, n, k, dtype, monkeypatch):
    """Tensor cores need lines that begin at multiples of 16 bytes: operands, result, or all."""
    monkeypatch.setattr(cublaslt, "LEAST_WORK", 0)
    monkeypatch.setattr(cublaslt, "WORK_PER_COPY", 0)
    copies = []
    real = cublaslt.copy_rows
    monkeypatch.setattr(cublaslt, "copy_rows", lambda *given: copies.append(given) or real(*given))
    for a, b in itertools.product((False, True), repeat=2):
        x, y = _tensors(dtype, (k, m) if a else (m, k), (n, k) if b else (k, n))
        want = (_wide(x).T if a else _wide(x)) @ (_wide(y).T if b else _wide(y))
        copies.clear()
        before = fake.fake_calls()
        got = _wide(_product(x, y, a, b))
        assert fake.fake_calls() == before + 1
        adjacent = ["mk"[not a], "nk"[b], "n"]  # the axes of lines of x, y and the result
        odd = {axis for axis in adjacent if {"m": m, "n": n, "k": k}[axis] % 8}
        wanted = sum(bool(odd & {*axes}) for axes in ("mk", "nk", "mn"))
        assert len(copies) == (wanted if "16" in dtype else 0)
        np.testing.assert_allclose(got, want, atol=NEAR[dtype] * np.abs(want).max(), rtol=0)


def test_small_products_are_not_worth_copies(backend, fake, monkeypatch):
    monkeypatch.setattr(cublaslt, "copy_rows", None)
    x, y = _tensors("float16", (70, 33), (33, 71))
    assert _product(x, y).shape == (70, 71)
    monkeypatch.setattr(cublaslt, "LEAST_WORK", 0)  # 33 multiplications for an element copied
    x, y = _tensors("float16", (700, 33), (33, 701))
    assert _product(x, y).shape == (700, 701)


def test_tf32_is_requested(backend, fake, monkeypatch):
    x, y = _tensors("float32", (6, 8), (8, 10))
    _product(x, y)
    assert fake.fake_compute() == 68
    monkeypatch.setenv("DUOGRAPH_CUDA_TF32", "1")
    OPS["matmul"].forget_calls()  # what is prepared stays as it was prepared
    _product(x, y)
    assert fake.fake_compute() == 77
    x, y = _tensors("bfloat16", (6, 8), (8, 10))
    _product(x, y)
    assert fake.fake_compute() == 68


def test_algorithm_is_chosen_once_per_shape(backend, fake):
    x, y = _tensors("float32", (6, 11), (11, 10))
    before = fake.fake_heuristics()
    for _ in range(3):
        _product(x, y)
        OPS["matmul"].forget_calls()
    assert fake.fake_heuristics() == before + 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("step, size", [(1, (12, 11)), (2, (26, 23))])
def test_1x1_convolution_is_a_matmul(backend, fake, step, size, groups, dtype):
    """A 1x1 convolution and its gradients call the matmul of cuBLASLt, not a convolution kernel.

    The weight gradient is a float32 matmul for each image, summed over the images. With strides,
    the elements that the convolution reads are first copied to a dense tensor.
    """
    window = {
        "stride": (step, step), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": groups
    }  # fmt: skip
    places = [(n - 1) // step + 1 for n in size]
    shapes = (3, 8, *size), (6, 8 // groups, 1, 1), (3, 6, *places)
    x, w, dout = _tensors(dtype, *shapes)
    calls = {
        "conv": (x, w, {}),
        "conv_input_grad": (dout, w, {"input_shape": x.shape}),
        "conv_weight_grad": (x, dout, {"weight_shape": w.shape}),
    }
    for name, (a, b, more) in calls.items():
        want = _wide(OPS[name](a, b, **more, **window))
        before = fake.fake_calls()
        got = _wide(OPS[name](a.move_to(NAME), b.move_to(NAME), **more, **window))
        # weights are the same for all images, so that the axes of the batch have two steps
        assert fake.fake_calls() == before + (groups == 1 or name == "conv_weight_grad")
        np.testing.assert_allclose(got, want, atol=NEAR[dtype] * 10 * np.abs(want).max())
        OPS[name].forget_calls()


def test_convolutions_by_cublaslt_are_known(backend):
    """The choice between cuBLASLt and cuDNN needs it."""
    window = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    for kernel, found in ((1, True), (3, False)):
        size = 13 - kernel
        shapes = (3, 8, 12, 12), (6, 8, kernel, kernel), (3, 6, size, size)
        types = [TensorType.of(shape, ms.float32) for shape in shapes]
        given = backend.device(0), OPS["conv"], types[:2], types[2:], window
        assert backend._multiplies(*given) is found
    images = min(64, 4 * backend.device(0).units)
    most = (1 << 30) // (images * 2048 * 4)  # one sum of filters * 2048 elements for each image
    for filters, found in ((most, True), (most + 1, False)):
        shapes = (images, 2048, 12, 12), (images, filters, 12, 12), (filters, 2048, 1, 1)
        types = [TensorType.of(shape, ms.float32) for shape in shapes]
        settings = {"weight_shape": shapes[2], **window}
        given = backend.device(0), OPS["conv_weight_grad"], types[:2], types[2:], settings
        assert backend._multiplies(*given) is found


def test_own_kernel_runs_without_an_algorithm(backend, fake):
    x, y = _tensors("float32", (13, 4), (4, 5))
    before = fake.fake_calls()
    np.testing.assert_allclose(_wide(_product(x, y)), _wide(x) @ _wide(y), atol=1e-5)
    assert fake.fake_calls() == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_failed_call_falls_back_to_own_kernel(backend, fake, dtype):
    x, y = _tensors(dtype, (3, 4), (4, 17))
    with pytest.warns(
        RuntimeWarning, match="matmul: cublasLtMatmul gave CUBLAS_STATUS_EXECUTION_FAILED"
    ):
        got = _product(x, y)
    np.testing.assert_allclose(_wide(got), _wide(x) @ _wide(y), atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        np.testing.assert_array_equal(_product(x, y).asnumpy(), got.asnumpy())


def test_matmul_in_a_captured_graph(backend, fake):
    """The workspace belongs to the program then; what is captured here calls the library at each
    launch.
    """
    x, y = (v.move_to(NAME) for v in _tensors("float32", (6, 8), (8, 8)))
    stepwise = ms.jit(lambda x, y: ms.ops.matmul(ms.ops.matmul(x, y), y), jit_level="O1")
    want = stepwise(x, y).asnumpy()
    np.testing.assert_allclose(want, _wide(x) @ _wide(y) @ _wide(y), atol=1e-4)


@pytest.mark.parametrize("how, words", [
    ("absent", "cannot load "
               "library"), ("empty", "cannot load library"), ("other", "cublasLtGetVersion"),
    ("old", "is version 100200"), ("broken", "cublasLtCreate gave CUBLAS_STATUS_NOT_INITIALIZED"),
    ("off", "DUOGRAPH_CUDA_CUBLASLT=0"),
])  # fmt: skip
def test_unusable_library(how, words, path, tmp_path, monkeypatch):
    """Products are computed all the same, and `duograph devices` says by what and why."""
    chosen = {"absent": str(tmp_path / "none.so"), "other": "libm.so.6", "off": "0"}.get(how, path)
    if how == "empty":
        chosen = str(tmp_path / "empty.so")
        pathlib.Path(chosen).write_bytes(b"")
    if how == "old":
        monkeypatch.setenv("FAKE_CUBLASLT_VERSION", "100200")
    if how == "broken":
        monkeypatch.setenv("FAKE_CUBLASLT_DOES_NOT_START", "1")
    monkeypatch.setenv("DUOGRAPH_CUDA_CUBLASLT", chosen)
    backend = WithLibrary()
    line = backend.compiler(0)
    assert "matmul by our own kernels (cuBLASLt: " in line and words in line, line
    registry.register(BackendSpec(NAME, lambda: backend, priority=None))
    try:
        x, y = _tensors("float32", (5, 6), (6, 7))
        np.testing.assert_allclose(_wide(_product(x, y)), _wide(x) @ _wide(y), atol=1e-5)
    finally:
        registry.unregister(NAME)
        OPS["matmul"].forget_calls()


def test_devices_command_names_the_library(backend):
    assert "; matmul by cuBLASLt 13.10.0; " in backend.compiler(0)


def test_not_installed(monkeypatch):
    monkeypatch.delenv("DUOGRAPH_CUDA_CUBLASLT", raising=False)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    assert "pip install nvidia-cublas" in cublaslt.find()


# ---- the real library
# ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel():
    named = os.environ.get("DUOGRAPH_CUDA_CUBLAS_WHEEL")
    places = [named] if named else [f"{p}/nvidia/cu13" for p in sys.path]
    for place in map(pathlib.Path, places):
        if (place / "include/cublasLt.h").exists():
            return place
    pytest.skip("the package nvidia-cublas is not installed")


def _numbers():
    return {
        m[1]: int(m[2]) for m in re.finditer(r"\b(CU\w+) = (\d+)\b", sources.text("cublaslt.h"))
    }


def test_constants_equal_the_headers(wheel):
    text = "".join((wheel / "include" / n).read_text() for n in ("cublasLt.h", "cublas_api.h"))
    found: dict[str, int] = {}  # a value may be built from those before it, as in A | 128
    for name, value in re.findall(r"\b(CUBLAS\w+) = \(?([^,()}]+)\)?,", text):
        terms = [found.get(t.strip(), t.strip()) for t in value.split("|")]
        if all(isinstance(t, int) or re.fullmatch(r"0x[0-9a-f]+|\d+", t) for t in terms):
            found[name] = functools.reduce(int.__or__, [int(str(t), 0) for t in terms])
    ours = {k: v for k, v in _numbers().items() if k.startswith("CUBLAS")}
    assert len(ours) > 10
    assert {k: found[k] for k in ours} == ours


def test_type_constants():
    runtime = pytest.importorskip("cuda.bindings.runtime")
    for name in cublaslt.TYPES.values():
        assert int(getattr(runtime.cudaDataType, name)) == _numbers()[name]


def test_declarations_equal_the_headers(wheel):
    """Functions with as many arguments, the sizes of the two structs that we lay out, and types of
    the same width.
    """
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (wheel / "include/cublasLt.h").read_text(), flags=re.S)
    ffi = cublaslt._ffi()
    functions = re.findall(r"\b(cublasLt\w+)\(([^)]*)\);", sources.text("cublaslt.h"))
    assert len(functions) == 11
    for name, arguments in functions:
        theirs = re.search(rf"\bCUBLASWINAPI\s+{name}\(([^)]*)\);", text)[1]
        wide = [_width(a) for a in theirs.split(",")]
        assert [_width(a) for a in arguments.split(",")] == wide, name
    assert "uint64_t data[8];\n} cublasLtMatmulAlgo_t;" in text
    members = re.search(r"typedef struct \{([^}]*)\} cublasLtMatmulHeuristicResult_t;", text)[1]
    assert " ".join(members.split()) == (
        "cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; float wavesCount; "
        "int reserved[4];"
    )
    assert ffi.sizeof("cublasLtMatmulHeuristicResult_t") == 64 + 8 + 4 + 4 + 16


def _width(argument):
    """Return how a C argument is passed: "pointer", "8" or "4" (bytes), or "" for void."""
    if argument.strip() in ("void", ""):
        return ""
    handles = r"cublasLt(Handle|MatmulDesc|MatrixLayout|MatmulPreference)_t|cudaStream_t"
    if "*" in argument or "[]" in argument or re.search(handles, argument):
        return "pointer"
    return "8" if re.search(r"\b(size_t|u?int64_t)\b", argument) else "4"


def test_the_real_library_loads(wheel, monkeypatch):
    """Without a driver it does not start; it says so, and what it says is passed on."""
    library = str(wheel / "lib/libcublasLt.so.13")
    monkeypatch.setenv("DUOGRAPH_CUDA_CUBLASLT", library)
    found = cublaslt.find()
    if isinstance(found, str):
        assert found == "cublasLtCreate gave CUBLAS_STATUS_NOT_INITIALIZED"
    else:
        assert found.version.startswith("13.")
