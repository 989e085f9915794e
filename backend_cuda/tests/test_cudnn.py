"""Convolution and attention by cuDNN, over a package made for these tests (`fake_cudnn`), on the
emulated device.
"""

from __future__ import annotations

import sys
import types
import warnings

import duograph as ms
import fake_cudnn
import numpy as np
import pytest
from cuda_cases import CONVOLUTIONS
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.conformance.cases.attention import AXES, attention, attention_gradient
from duograph.op import OPS
from duograph.types import TensorType
from duograph_cuda import cudnn, tuning
from duograph_cuda.emulation.backend import CudaEmulated

NAME = "CUDA-with-cuDNN"
NEAR = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
CONVOLVING = ("conv", "conv_input_grad", "conv_weight_grad")
WINDOW = {"stride": (1, 1), "padding": ((1, 1),) * 2, "dilation": (1, 1), "groups": 1}
ATTENDING = ("attention", "attention_grad", "self_attention", "self_attention_grad")


class WithLibrary(CudaEmulated):
    """The emulated CUDA backend with the package `cudnn` that can be imported."""

    name = NAME
    find_cudnn = staticmethod(cudnn.find)


@pytest.fixture
def library(monkeypatch):
    """The package, with a backend that uses it registered as `NAME`."""
    problem = CudaEmulated().available()
    if problem is not None:
        pytest.skip(problem)
    module = fake_cudnn.make()
    monkeypatch.setitem(sys.modules, "cudnn", module)
    monkeypatch.setattr(cudnn, "_load_runtime", lambda: None)
    backend = WithLibrary()
    registry.register(BackendSpec(NAME, lambda: backend, priority=None))
    module.backend = backend
    yield module
    registry.unregister(NAME)
    for name in (*CONVOLVING, *ATTENDING):
        OPS[name].forget_calls()


def _tensors(dtype, *shapes):
    rng = np.random.default_rng(len(shapes))
    return [ms.Tensor(rng.normal(size=s), getattr(ms, dtype), device="CPU") for s in shapes]


def _compare(name, operands, attributes, near):
    here = OPS[name](*operands, **attributes)
    there = OPS[name](*[x.move_to(NAME) for x in operands], **attributes)
    want, got = (v.asnumpy().astype(np.float64) for v in (here, there))
    assert np.abs(got - want).max() <= near * max(1.0, np.abs(want).max()), name


def _convolve(case, dtype, near):
    images, channels, size, filters, kernel, stride, padding, dilation, groups = CONVOLUTIONS[case]
    window = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    x_shape, w_shape = (images, channels, *size), (filters, channels // groups, *kernel)
    x, w = _tensors(dtype, x_shape, w_shape)
    (dout,) = _tensors(dtype, OPS["conv"](x, w, **window).shape)
    _compare("conv", (x, w), window, near)
    _compare("conv_input_grad", (dout, w), {"input_shape": x_shape, **window}, near)
    _compare("conv_weight_grad", (x, dout), {"weight_shape": w_shape, **window}, near)


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(library, case, dtype):
    _convolve(case, dtype, NEAR[dtype])
    assert library.calls == ["conv_fprop", "conv_dgrad", "conv_wgrad"]


def test_float64_convolution_runs_on_own_kernels(library):
    _convolve("3x3", "float64", 1e-12)
    assert not library.built


@pytest.mark.parametrize("tf32", ["0", "1"])
def test_float32_keeps_its_bits_unless_tf32_is_asked_for(library, tf32, monkeypatch):
    monkeypatch.setenv("DUOGRAPH_CUDA_TF32", tf32)
    for dtype in ("float32", "bfloat16"):
        _convolve("3x3", dtype, NEAR[dtype])
    rounding = [bool(notes & {"TENSOR_CORE", "DOWN_CONVERT_INPUTS"}) for _, notes in library.built]
    assert rounding == [tf32 == "0"] * 3 + [False] * 3
    assert all("NONDETERMINISTIC" in notes for _, notes in library.built)


def test_plan_is_built_once_per_shape(library):
    for _ in range(3):
        _convolve("3x3", "float32", NEAR["float32"])
        OPS["conv"].forget_calls()
    assert len(library.built) == 3


# batch, heads, heads of keys, queries, keys, features, features of values; band; layout
ATTENTION = {
    "plain": ((2, 3, 3, 9, 11, 8, 8), (-9, 11), "BNSD"),
    "causal": ((2, 2, 2, 10, 10, 16, 16), (-10, 0), "BSND"),
    "shared heads": ((1, 4, 2, 7, 8, 8, 16), (-7, 0), "SBND"),
    "a band": ((2, 2, 1, 12, 12, 8, 8), (-4, 2), "BNSD"),
    "sliding": ((1, 2, 2, 12, 12, 8, 8), (-3, 0), "BSND"),
    "sees back": ((1, 2, 2, 12, 12, 8, 8), (0, 12), "BNSD"),
}


def _attend(case, dtype, mask=None):
    (batch, heads, own, queries, keys, width, value_width), (low, high), layout = case
    rng = np.random.default_rng(5)
    np_dtype = ms.Tensor([1.0], getattr(ms, dtype)).asnumpy().dtype

    def x(*shape):
        made = rng.normal(size=shape).astype(np_dtype)
        return np.ascontiguousarray(np.moveaxis(made, range(4), AXES[layout]))

    q, k = x(batch, heads, queries, width), x(batch, own, keys, width)
    arrays = [q, k, x(batch, own, keys, value_width), mask]
    settings = (width**-0.5, low, high, layout)

    def check(name, arrays, wanted):
        given = [None if a is None else ms.Tensor(a, device=NAME) for a in arrays]
        for found, want in zip(OPS[name](*given, *settings), wanted, strict=True):
            found, want = found.asnumpy().astype(np.float64), want.astype(np.float64)
            assert np.abs(found - want).max() <= 4e-2 * max(1.0, np.abs(want).max()), name

    wanted = attention(*arrays, *settings)
    check("attention", arrays, wanted)
    arrays += [*wanted, rng.normal(size=wanted[0].shape).astype(np_dtype)]
    check("attention_grad", arrays, attention_gradient(*arrays, *settings))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", ATTENTION)
def test_attention(library, case, dtype):
    _attend(ATTENTION[case], dtype)
    assert library.calls == ["sdpa", "sdpa_backward"]


@pytest.mark.parametrize("layout", ["BSND", "SBND"])
@pytest.mark.parametrize("heads, own", [(3, 3), (4, 2)])
def test_self_attention_reads_its_operand_in_place(library, layout, heads, own):
    """Query, key and value, and their gradients, are parts of one tensor."""
    rng = np.random.default_rng(5)
    batch, length, width = 2, 9, 8
    lead = (batch, length) if layout == "BSND" else (length, batch)
    x = ms.Tensor(rng.normal(size=(*lead, (heads + 2 * own) * width)), ms.float16, device="CPU")
    settings = (heads, own, width**-0.5, -length, 0, layout)
    out, log_sum = OPS["self_attention"](x, None, *settings)
    dout = ms.Tensor(rng.normal(size=out.shape), ms.float16, device="CPU")
    want = OPS["self_attention_grad"](x, None, out, log_sum, dout, *settings)
    there = x.move_to(NAME)
    made = OPS["self_attention"](there, None, *settings)
    got = OPS["self_attention_grad"](there, None, *made, dout.move_to(NAME), *settings)
    assert library.calls == ["sdpa", "sdpa_backward"]
    for a, b in zip((*made, got), (out, log_sum, want), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=2e-2)


@pytest.mark.parametrize(
    "why, dtype, shape, band, mask",
    [
        ("float32", "float32", (1, 2, 2, 9, 9, 8, 8), (-9, 0), None),
        ("a mask", "float16", (1, 2, 2, 9, 9, 8, 8), (-9, 9), np.eye(9, dtype=bool)[None, None]),
        ("future only", "float16", (1, 2, 2, 9, 12, 8, 8), (1, 12), None),
        ("past only", "float16", (1, 2, 2, 9, 9, 8, 8), (-9, -1), None),
        ("a query that sees no key", "float16", (1, 2, 2, 12, 6, 8, 8), (-2, 0), None),
    ],
)
def test_attention_by_own_kernels(library, why, dtype, shape, band, mask):
    _attend((shape, band, "BNSD"), dtype, mask)
    assert not library.built, why


def test_no_algorithm(library):
    library.refuses = True
    _convolve("3x3", "float32", NEAR["float32"])
    _attend(ATTENTION["causal"], "float16")
    assert len(library.built) == 5 and not library.calls


def test_failed_call_falls_back_to_own_kernels(library):
    library.fails = True
    x, w = _tensors("float32", (2, 3, 8, 8), (4, 3, 3, 3))
    with pytest.warns(RuntimeWarning, match=r"conv: cuDNN failed \(CUDNN_STATUS_EXECUTION_FAILED"):
        _compare("conv", (x, w), WINDOW, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        _compare("conv", (x, w), WINDOW, 1e-5)


def test_calls_in_a_captured_graph(library):
    """The plan is built before the capture; the workspace belongs to the program."""
    x, w = (v.move_to(NAME) for v in _tensors("float32", (2, 3, 8, 8), (3, 3, 3, 3)))

    def twice(x, w):
        return ms.ops.conv2d(ms.ops.conv2d(x, w), w)

    want = ms.jit(twice, jit_level="O1")(x, w).asnumpy()
    step = ms.jit(twice, jit_level="O2")
    for _ in range(2):
        np.testing.assert_array_equal(step(x, w).asnumpy(), want)
    assert len(library.built) == 2


# ---- choices by time ----------------------------------------------------------------------------


@pytest.fixture
def tuned(library, monkeypatch, tmp_path):
    """The package, where DUOGRAPH_CUDA_TUNE is on and eng_2 is the fastest."""
    monkeypatch.setenv("DUOGRAPH_CUDA_TUNE", "1")
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", str(tmp_path))
    library.slow = []

    def seconds(device, run, best):
        library.slow.append(best)
        library.ran.clear()
        run()
        return {"eng_2": 1.0}.get(library.ran[0] if library.ran else "own", 2.0)

    monkeypatch.setattr(tuning, "_seconds", seconds)
    return library


def _chosen(package, kernel=1):
    """Prepare and run a convolution anew; return the plans that ran, and how many were measured."""
    backend = package.backend
    backend.device(0).cudnn()._plans.clear()  # as in another process
    operands = [TensorType.of(s, ms.float32) for s in ((2, 3, 8, 8), (4, 3, kernel, kernel))]
    pad = kernel // 2
    package.slow.clear()
    call = backend.prepare(OPS["conv"], operands, {**WINDOW, "padding": ((pad, pad),) * 2}, 0)
    package.ran.clear()
    call(*[backend.device(0).allocate(t.nbytes, "operand") for t in operands])
    return package.ran, len(package.slow)


def test_fastest_plan_is_chosen_and_kept(tuned, monkeypatch):
    assert _chosen(tuned, 3) == (["eng_2"], 2), "our own kernels have no chance"
    monkeypatch.setattr(WithLibrary, "_multiplies", lambda *_: True)  # by cuBLASLt
    assert _chosen(tuned) == (["eng_2"], 3), "two plans and our own"
    assert _chosen(tuned) == (["eng_2"], 0), "it was measured again"
    tuned.plans = ["eng_7"]  # the kept choice does not exist any more
    assert _chosen(tuned) == (["eng_7"], 2), "it takes as long as our own plan, which is last"
    tuned.plans = []
    assert _chosen(tuned) == ([], 1)


def test_cublaslt_is_preferred_without_tensor_cores(library, monkeypatch):
    monkeypatch.setattr(WithLibrary, "_multiplies", lambda *_: True)
    _convolve("1x1", "float32", NEAR["float32"])
    assert not library.calls
    _convolve("1x1", "float16", NEAR["float16"])
    assert len(library.calls) == 3
    monkeypatch.setenv("DUOGRAPH_CUDA_TF32", "1")
    for name in CONVOLVING:
        OPS[name].forget_calls()
    _convolve("1x1", "float32", NEAR["float32"])
    assert len(library.calls) == 6


# seconds of a run, the best of earlier ones -> how many runs are measured
MEASURED = {
    "fast": (tuning.ROUND / 1000, 1.0, 2 + tuning.ROUNDS * tuning.MOST_CALLS),
    "some in a round": (tuning.ROUND / 4, 1.0, 2 + tuning.ROUNDS * 4),
    "slow": (tuning.ROUND * 9, 1.0, 2 + tuning.ROUNDS),
    "near the best": (1e-3, 4e-4, 2 + tuning.ROUNDS),
    "far from the best": (1e-3, 3e-4, 2),
}


@pytest.mark.parametrize("case", MEASURED)
def test_measuring(case, library, monkeypatch):
    """On a clock of its own, which only runs move."""
    seconds, best, expected = MEASURED[case]
    runs = []
    clock = types.SimpleNamespace(perf_counter=lambda: len(runs) * seconds)
    monkeypatch.setattr(tuning, "time", clock)
    taken = tuning._seconds(library.backend.device(0), lambda: runs.append(1), best)
    assert taken == pytest.approx(seconds)
    assert len(runs) == expected


def test_nothing_is_measured_unless_asked_for(library, monkeypatch):
    monkeypatch.setattr(tuning, "fastest", None)
    x, w = _tensors("float32", (2, 3, 8, 8), (4, 3, 3, 3))
    _compare("conv", (x, w), WINDOW, 1e-5)
    assert library.ran == ["eng_1"]


# ---- installations ------------------------------------------------------------------------------


@pytest.mark.parametrize("how, words", [
    ("absent", "pip install nvidia-cudnn-frontend"), ("off", "DUOGRAPH_CUDA_CUDNN=0"),
    ("old", "version 8907"), ("broken", "cudnnHandle Create failed"),
    ("another package", "has no attribute 'backend_version'"),
])  # fmt: skip
def test_unusable_library(how, words, monkeypatch):
    """`duograph devices` says by what convolutions are computed, and why."""
    made = {
        "absent": lambda: None,
        "old": lambda: fake_cudnn.make(version=8907),
        "broken": lambda: fake_cudnn.make(starts=False),
        "another package": lambda: type(sys)("cudnn"),
    }.get(how, fake_cudnn.make)
    monkeypatch.setitem(sys.modules, "cudnn", made())
    monkeypatch.setattr(cudnn, "_load_runtime", lambda: None)
    if how == "off":
        monkeypatch.setenv("DUOGRAPH_CUDA_CUDNN", "0")
    line = WithLibrary().compiler(0)
    assert "convolution and attention by our own kernels (cuDNN: " in line and words in line, line


def test_devices_command_names_the_library(library):
    assert library.backend.compiler(0).endswith("; convolution and attention by cuDNN 9.19.0")
    assert library.streams == [(fake_cudnn.HANDLE, int(library.backend.device(0).stream))]


def test_closing_frees_every_graph(library):
    """The package prints a warning for each object that is left at exit."""
    x = ms.Tensor(np.ones((1, 2, 8, 8), np.float32), device=NAME)
    w = ms.Tensor(np.ones((3, 2, 3, 3), np.float32), device=NAME)
    ms.ops.conv2d(x, w)
    loaded = library.backend.device(0).cudnn()
    plans = [plan for plan in loaded._plans.values() if plan is not None]
    assert plans and all(plan.graph is not None for plan in plans)
    loaded.close()
    assert all(plan.graph is None for plan in plans) and not loaded._plans
