"""Convolution and attention by cuDNN, over a package made for these tests (`fake_cudnn`), on the
emulated device.
"""

from __future__ import annotations

import ctypes
import sys
import types
import warnings

import duograph as ms
import fake_cudnn
import numpy as np
import pytest
from cuda_cases import CONVOLUTIONS
from duograph import nn, ops
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.conformance.cases.attention import AXES, attention, attention_gradient
from duograph.op import OPS
from duograph.types import TensorType
from duograph_cuda import cudnn, tuning
from duograph_cuda.emulation.backend import CudaEmulated

NAME = "CUDA-with-cuDNN"
NEAR = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
FIRST = ("conv", "conv_input_grad", "conv_weight_grad")
LAST = tuple([f"{name}_channels_last" for name in FIRST])
CONVOLVING = (*FIRST, *LAST)
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
    driver = backend.driver().module

    def put(compute):
        if driver.capture is None:
            compute()
        else:  # it runs whenever the graph does
            driver.capture.append((lambda: (compute(), (0,))[1], (), ()))

    module.put = put
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


def _convolve_last(case, dtype, near):
    """Compare the three ops with the CPU's; dtype "TF32" is float32, under DUOGRAPH_CUDA_TF32."""
    dtype = {"TF32": "float32"}.get(dtype, dtype)
    images, channels, size, filters, kernel, stride, padding, dilation, groups = CONVOLUTIONS[case]
    window = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    w_shape = (filters, channels // groups, *kernel)
    x, w = _tensors(dtype, (images, *size, channels), w_shape)
    (dout,) = _tensors(dtype, OPS["conv_channels_last"](x, w, **window).shape)
    shapes = {"input_shape": (images, channels, *size)}, {"weight_shape": w_shape}
    _compare("conv_channels_last", (x, w), window, near)
    _compare("conv_input_grad_channels_last", (dout, w), {**shapes[0], **window}, near)
    _compare("conv_weight_grad_channels_last", (x, dout), {**shapes[1], **window}, near)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "TF32"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_with_channels_last(library, case, dtype, monkeypatch):
    """cuDNN reads and writes every tensor with channels last, weights too."""
    if dtype == "TF32":
        monkeypatch.setenv("DUOGRAPH_CUDA_TF32", "1")
    _convolve_last(case, dtype, NEAR.get(dtype, 1e-5))
    assert library.calls == ["conv_fprop", "conv_dgrad", "conv_wgrad"]
    assert _laid_out(library) == {True}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_channels_last_without_tensor_cores(library, dtype):
    """The ops decompose to transposes and the ops with channels as axis 1."""
    _convolve_last("3x3", dtype, NEAR.get(dtype, 1e-12))
    assert _laid_out(library) <= {False}


@pytest.mark.parametrize("how", ["refuses", "fails"])
@pytest.mark.parametrize("case", ["3x3", "grouped", "1x1", "line", "volume"])
def test_channels_last_without_cudnns_help(library, case, how):
    """Transposes and our own kernels take over, at once or with a warning."""
    setattr(library, how, True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _convolve_last(case, "float16", NEAR["float16"])
    said = [str(w.message) for w in caught if "cuDNN failed" in str(w.message)]
    assert len(said) == (3 if how == "fails" else 0) and not library.calls


def _network():
    """A network with every kind of op that meets convolutions in training."""

    def conv(inputs, outputs, size, **more):
        rng = np.random.default_rng(inputs + outputs)
        w = ms.Tensor(rng.normal(size=(outputs, inputs, size, size)) / inputs**0.5 / size)
        given = {"weight_init": w, "bias_init": "ones", **more}
        return nn.Conv2d(inputs, outputs, size, pad_mode="pad", padding=size // 2, **given)

    return nn.SequentialCell(
        conv(3, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.MaxPool2d(3, 2, pad_mode="pad", padding=1),
        conv(16, 24, 3, has_bias=True), nn.ReLU(), conv(24, 16, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AvgPool2d(2, 1), conv(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(),
    )  # fmt: skip


# dtype -> relative error of a network's result; float32 under DUOGRAPH_CUDA_TF32 is TF32, which the
# package computes exactly
LAID_OUT = {"float16": 2e-2, "bfloat16": 2e-1, "TF32": 1e-4}


@pytest.fixture
def network(library, restored, monkeypatch):
    """Function of a dtype that returns the network, on the device with the package."""
    ms.set_context(device_target=NAME)

    def made(dtype):
        if dtype == "TF32":
            monkeypatch.setenv("DUOGRAPH_CUDA_TF32", "1")
        return _network().to_float(getattr(ms, "float32" if dtype == "TF32" else dtype))

    return made


def _near(got, want, relative):
    got, want = (v.float().asnumpy() for v in (got, want))
    assert np.abs(got - want).max() <= relative * np.abs(want).max()


def _laid_out(library):
    """Return whether each tensor of cuDNN's graphs since the last call has channels last.

    Tensors that are the same in both layouts are left out.
    """
    found = {
        steps[1][1] == 1
        for steps in library.steps
        if steps[1][0] > 1 and any(n > 1 for n, _ in steps[2:])
    }
    library.steps.clear()
    return found


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("dtype", [*LAID_OUT, "float32"])
def test_inference_with_channels_last(library, network, dtype, level):
    """The image and the result are transposed, and nothing else; weights are packed once."""
    net = network(dtype).set_train(False)
    (x,) = (v.move_to(NAME) for v in _tensors("float32", (2, 3, 20, 20)))
    want = net(x)
    assert _laid_out(library) == {False}
    run = ms.jit(lambda x: net(x), jit_level=level)
    for _ in range(4):  # what is computed once is from the second call on
        _near(run(x), want, LAID_OUT.get(dtype, 1e-4))
    said = "; ".join(run.explain(x).kernels)
    if dtype == "float32":
        assert not library.steps and "4 convolutions with channels first" in said, said
        return
    assert _laid_out(library) == {True}
    assert "4 convolutions laid out channels last, 2 values transposed" in said, said
    assert "3 operands packed once" in said, said


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_packed_weights_follow_their_parameters(library, network, level):
    """A new value, an update by a compiled step, and memory that another library may write."""
    net = network("float16").set_train(False)
    (x,) = (v.move_to(NAME) for v in _tensors("float32", (2, 3, 20, 20)))
    weight = net[0].weight
    run = ms.jit(lambda x: net(x), jit_level=level)
    update = ms.jit(lambda: ops.assign_sub(weight, weight * 0.5), jit_level=level)

    def check():
        for _ in range(4):
            _near(run(x), net(x), LAID_OUT["float16"])

    check()
    weight.set_data(weight * -1.0)
    check()
    for _ in range(3):
        update()
        check()
    capsule = weight.__dlpack__()  # its consumer may write the memory
    check()
    for value in (0, 0x3C):
        ctypes.memset(weight._buf.pointer, value, weight.nbytes)
        check()
    del capsule


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("dtype", [*LAID_OUT, "float32"])
def test_training_with_channels_last(library, network, dtype, level):
    """Forward and backward pass, statistics and pooling included, meet one transposed image."""
    (x,) = (v.move_to(NAME) for v in _tensors("float32", (2, 3, 20, 20)))

    def trained(compiled):
        net = network(dtype).set_train(True)
        optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
        gradients = ms.value_and_grad(
            lambda x: (net(x).float() ** 2).mean((2, 3)).sum(), None, optimizer.parameters
        )

        def step(x):
            loss, found = gradients(x)
            optimizer(found)
            return loss

        run = ms.jit(step, jit_level=level) if compiled else step
        losses = [run(x) for _ in range(3)]
        said = "; ".join(run.explain(x).kernels) if compiled else ""
        return losses, [*net.get_parameters()], said

    losses, parameters, _ = trained(compiled=False)
    assert _laid_out(library) == {False}
    got_losses, got_parameters, said = trained(compiled=True)
    near = LAID_OUT.get(dtype, 1e-4)
    for got, want in zip(got_losses, losses, strict=True):
        _near(got, want, near)
    for got, want in zip(got_parameters, parameters, strict=True):
        _near(got, want, near)
    if dtype == "float32":
        assert not library.steps and "4 convolutions with channels first" in said, said
        return
    assert _laid_out(library) == {True}
    assert "4 convolutions laid out channels last, 1 value transposed" in said, said


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
