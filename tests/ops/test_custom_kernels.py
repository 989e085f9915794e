"""Operators of the user's own (`ops.Custom`): source, libraries, expressions; eager and jit."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from duograph.backend import registry
from duograph.errors import (
    ArgumentError,
    ArgumentValueError,
    BackendError,
    DTypeError,
    GradientError,
    UnsupportedOpError,
    UnsupportedSyntaxError,
)

pytestmark = pytest.mark.usefixtures("restored")

SIGNATURE = (
    "int {}(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, "
    "void *stream, void *extra)"
)
# out = 2 * x + sin(y), element by element.
C = (
    "#include <math.h>\n"
    + SIGNATURE.format("scaled")
    + """ {
    const float *x = params[0], *y = params[1];
    float *out = params[2];
    int64_t n = 1;
    for (int k = 0; k < ndims[2]; k++) n *= shapes[2][k];
    for (int64_t i = 0; i < n; i++) out[i] = 2 * x[i] + sinf(y[i]);
    return nparam == 3 ? 0 : 9;
}
"""
)
OPENCL = """
__kernel void scaled(__global const IN0_TYPE *x, __global const float *y, __global float *out) {
    size_t i = get_global_id(0);
    if (i < OUT0_SIZE) out[i] = 2 * x[i] + sin(y[i]);
}
"""
CUDA = """
extern "C" __global__ void scaled(const IN0_TYPE *x, const float *y, float *out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < OUT0_SIZE) out[i] = 2 * x[i] + sinf(y[i]);
}
"""
SOURCES = {"c": C, "opencl": OPENCL, "cuda": CUDA}
# Row sums and the numbers of columns: two results of other shapes and dtypes.
C_ROWS = (
    SIGNATURE.format("rows")
    + """ {
    const float *x = params[0];
    float *sums = params[1];
    int32_t *counts = params[2];
    for (int64_t r = 0; r < shapes[0][0]; r++) {
        sums[r] = 0;
        for (int64_t c = 0; c < shapes[0][1]; c++) sums[r] += x[r * shapes[0][1] + c];
        counts[r] = (int32_t)shapes[0][1];
    }
    return 0;
}
"""
)
OPENCL_ROWS = """
__kernel void rows(__global const float *x, __global float *sums, __global int *counts) {
    size_t r = get_global_id(0);
    if (r >= IN0_DIM0) return;
    float sum = 0;
    for (int c = 0; c < IN0_DIM1; c++) sum += x[r * IN0_DIM1 + c];
    sums[r] = sum;
    counts[r] = IN0_DIM1;
}
"""
CUDA_ROWS = """
extern "C" __global__ void rows(const float *x, float *sums, int *counts) {
    size_t r = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= IN0_DIM0) return;
    float sum = 0;
    for (int c = 0; c < IN0_DIM1; c++) sum += x[r * IN0_DIM1 + c];
    sums[r] = sum;
    counts[r] = IN0_DIM1;
}
"""


def gradient(x: Tensor, y: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of `scaled`."""
    return 2 * dout, dout * ops.cos(y)


def scaled(**options: Any) -> ops.Custom:
    """Return the operator `scaled` with source in all languages."""
    options = {"in_dtype": ms.float32, "bprop": gradient, **options}
    return ops.Custom(SOURCES, func_type="source", name="scaled", **options)


def rows() -> ops.Custom:
    """Return the operator `rows`, with two results."""
    return ops.Custom(
        {"c": C_ROWS, "opencl": OPENCL_ROWS, "cuda": CUDA_ROWS},
        lambda shape: (shape[:1], shape[:1]),
        (ms.float32, ms.int32),
        "source",
        lambda x, out, dout: (ops.broadcast_to(dout[0].expand_dims(1), x.shape),),
        name="rows",
        in_dtype=ms.float32,
        work_items=lambda shape: shape[0],
    )


DEVICES = ("CPU", "OpenCL", "CUDA-emulated")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Fixture: each device whose language the sources are in, if it is there."""
    entry = registry.entries().get(request.param)
    problem = "it is not installed" if entry is None else registry.problem_of(entry)
    if problem is not None:
        pytest.skip(f"{request.param}: {problem}")
    if request.param == "CPU" and not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    ms.set_context(device_target=request.param)
    return str(request.param)


def arrays(shape: tuple[int, ...] = (3, 5)) -> list[np.ndarray]:
    """Return two float32 arrays."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]


LEVELS = (None, "O0", "O1", "O2")


def at(level: str | None, function: Any) -> Any:
    """Return a function itself, or compiled at a level; falling back is an error."""
    return function if level is None else ms.jit(function, jit_level=level, fullgraph=True)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(3, 5), (), (1,), (0,), (2, 0, 3), (1000, 7)], ids=str)
def test_source(device: str, shape: tuple[int, ...], level: str | None) -> None:
    a, b = arrays(shape)
    f = scaled()
    run = at(level, lambda x, y: f(x, y) * 3 + 1)
    for _ in range(2):
        got = run(Tensor(a), Tensor(b))
        np.testing.assert_allclose(got.asnumpy(), (2 * a + np.sin(b)) * 3 + 1, rtol=1e-5, atol=1e-5)
        assert got.shape == shape


@pytest.mark.parametrize("level", LEVELS)
def test_gradient(device: str, level: str | None) -> None:
    a, b = arrays()
    f = scaled()
    loss = ms.grad(lambda x, y: (f(x, y) ** 2).sum(), (0, 1))
    dx, dy = at(level, loss)(Tensor(a), Tensor(b))
    out = 2 * a + np.sin(b)
    np.testing.assert_allclose(dx.asnumpy(), 4 * out, rtol=1e-4)
    np.testing.assert_allclose(dy.asnumpy(), 2 * out * np.cos(b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_several_results(device: str, level: str | None) -> None:
    (a, _), f = arrays(), rows()
    sums, counts = at(level, lambda x: f(x))(Tensor(a))
    np.testing.assert_allclose(sums.asnumpy(), a.sum(1), rtol=1e-5)
    assert counts.dtype is ms.int32 and counts.asnumpy().tolist() == [5, 5, 5]
    dx = at(level, ms.grad(lambda x: (f(x)[0] * Tensor([1.0, 2.0, 3.0])).sum()))(Tensor(a))
    assert dx.asnumpy()[:, 0].tolist() == [1, 2, 3]


def test_vmap_and_other_shapes(device: str) -> None:
    a, b = arrays((4, 2, 3))
    f = scaled()
    got = ms.vmap(f)(Tensor(a), Tensor(b)).asnumpy()
    np.testing.assert_allclose(got, 2 * a + np.sin(b), rtol=1e-5, atol=1e-5)
    for n in (1, 7, 129):
        a, b = arrays((n,))
        np.testing.assert_allclose(
            f(Tensor(a), Tensor(b)).asnumpy(), 2 * a + np.sin(b), rtol=1e-5, atol=1e-5
        )


def test_in_a_network_that_trains(device: str) -> None:
    f = scaled()

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(Tensor(np.ones((3, 5), np.float32)), name="w")

        def construct(self, x: Tensor) -> Tensor:
            return f(self.w, x).sum() ** 2

    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 1e-4)
    step = ms.value_and_grad(net, None, optimizer.parameters)
    losses = []
    for _ in range(3):
        value, grads = step(Tensor(arrays()[0]))
        optimizer(grads)
        losses.append(float(value))
    assert losses[2] < losses[1] < losses[0]


class Scaled(nn.Cell):
    """A network with one operator."""

    def __init__(self, operator: ops.Custom) -> None:
        super().__init__()
        self.operator = operator

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return self.operator(x, y) * 2


@pytest.mark.parametrize("file_format", ["MINDIR", "ONNX"])
def test_export(tmp_path: pathlib.Path, file_format: str) -> None:
    if file_format == "ONNX":
        pytest.importorskip("onnx", reason="the package onnx is not installed")
    ms.set_context(device_target="CPU")
    x, y = map(Tensor, arrays())
    with pytest.raises(UnsupportedSyntaxError, match="a kernel of its own"):
        ms.export(Scaled(scaled()), x, y, file_name=str(tmp_path / "a"), file_format=file_format)
    assert not [*tmp_path.iterdir()]
    net = Scaled(ops.Custom("x * exp(-y)", func_type="expression"))
    ms.export(net, x, y, file_name=str(tmp_path / "b"), file_format=file_format)
    if file_format == "MINDIR":
        loaded = nn.GraphCell(ms.load(str(tmp_path / "b.mindir")))
        np.testing.assert_array_equal(loaded(x, y).asnumpy(), net(x, y).asnumpy())


def test_the_linked_program_holds_it() -> None:
    ms.set_context(device_target="CPU")
    f = scaled()
    run = ms.jit(lambda x, y: ops.tanh(f(x, y)), jit_level="O2")
    x, y = map(Tensor, arrays())
    run(x, y)
    assert "one native program" in str(run.explain(x, y))


def test_effects_keep_every_call() -> None:
    count = C.replace("#include <math.h>", "#include <math.h>\nint calls_made;").replace(
        "return nparam", "calls_made++; out[0] = calls_made; return nparam"
    )
    ms.set_context(device_target="CPU")
    x, y = map(Tensor, arrays())
    for effects, calls in ((True, 3), (False, 1)):
        f = ops.Custom(
            {"c": count.replace("calls_made", f"calls_made_{effects}")},
            func_type="source", name="scaled", effects=effects, in_dtype=ms.float32,
        )  # fmt: skip

        def thrice(x: Tensor, y: Tensor, f: Any = f) -> Tensor:
            f(x, y)
            return f(x, y)[0, 0] * 0 + f(x, y)[0, 0]

        assert float(ms.jit(thrice, jit_level="O1", fullgraph=True)(x, y)) == calls


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Fixture: a shared library that was built ahead of time."""
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    path = tmp_path_factory.mktemp("library") / "kernels.so"
    source = "#include <stdint.h>\n" + C
    command = [compiler, "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", str(path), "-lm"]
    subprocess.run(command, input=source.encode(), check=True)
    return path


@pytest.mark.parametrize("level", LEVELS)
def test_library(library: pathlib.Path, level: str | None) -> None:
    ms.set_context(device_target="CPU")
    f = ops.Custom(f"{library}:scaled", lambda x, y: x, lambda x, y: x, "aot", gradient)
    a, b = arrays()
    run = at(level, lambda x, y: f(x, y) + 1)
    want = 2 * a + np.sin(b) + 1
    np.testing.assert_allclose(run(Tensor(a), Tensor(b)).asnumpy(), want, rtol=1e-5)
    assert "the gradient" in ms.check_custom(f, Tensor(a), Tensor(b))


EXPRESSIONS: dict[str, Any] = {
    "x * y + 1": lambda x, y: x * y + 1,
    "x * exp(-y)": lambda x, y: x * np.exp(-y),
    "y - x": lambda y, x: y - x,  # the inputs are in the order of the text
    "x if x > y else 0.5 * y": lambda x, y: np.where(x > y, x, 0.5 * y),
    "maximum(x, 0) + minimum(y, 0)": lambda x, y: np.maximum(x, 0) + np.minimum(y, 0),
    "where(x < 0, -x, x) ** 2 + y": lambda x, y: x**2 + y,
    "tanh(sigmoid(x)) - log1p(abs(y))": lambda x, y: (
        np.tanh(1 / (1 + np.exp(-x))) - np.log1p(abs(y))
    ),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("name", [*DEVICES, "Reference", "InnerRing"])
def test_expressions(name: str, text: str, level: str | None) -> None:
    entry = registry.entries().get(name)
    problem = "it is not installed" if entry is None else registry.problem_of(entry)
    if problem is not None:
        pytest.skip(f"{name}: {problem}")
    ms.set_context(device_target=name)
    f = ops.Custom(text, func_type="expression")
    a, b = arrays()
    run = at(level, lambda x, y: f(x, y))
    np.testing.assert_allclose(
        run(Tensor(a), Tensor(b)).asnumpy(), EXPRESSIONS[text](a, b), rtol=1e-5, atol=1e-6
    )
    got = run(Tensor(a), Tensor(b[:1, :1])).asnumpy()  # it broadcasts
    np.testing.assert_allclose(got, EXPRESSIONS[text](a, b[:1, :1]), rtol=1e-5, atol=1e-6)


def test_an_expression_is_checked_and_fused() -> None:
    ms.set_context(device_target="CPU")
    f = ops.Custom("x * exp(-y) + sin(x)", func_type="expression")
    x, y = map(Tensor, arrays())
    assert "the gradient" in ms.check_custom(f, x, y)
    run = ms.jit(f, jit_level="O1")
    large = [Tensor(a) for a in arrays((200, 200))]
    run(*large)
    assert "1 fused region," in str(run.explain(*large))
    assert f(Tensor([1, 2]), Tensor(0.5)).dtype is ms.float32
    assert ops.Custom("x > y", func_type="expression")(x, y).dtype is ms.bool_


WRONG_EXPRESSIONS = [
    "", "x +", "3", "x.shape", "__import__('os')", "x if y else 'a'", "[x]", "x < y < 1",
    "exp(x=1)", "lambda x: x", "exp", "exp * x", "x and y", "True * x", "f(x)", "x; y", "(x := 1)",
    "open(x)",     "x" * 3 + "+1" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", WRONG_EXPRESSIONS, ids=lambda t: t[:20] or "empty")
def test_wrong_expressions(text: str) -> None:
    with pytest.raises(ArgumentValueError, match="Custom: got the expression"):
        ops.Custom(text, func_type="expression")


def source(text: str = C, **options: Any) -> Any:
    """Return an operator in C with the function `scaled`."""
    options = {"in_dtype": "any", **options}
    return ops.Custom({"c": text}, func_type="source", name="scaled", **options)


def called(f: Any, *more: Tensor) -> Any:
    """Call an operator on two Tensors."""
    return f(*map(Tensor, arrays()), *more)


ANY: dict[str, Any] = {"in_dtype": "any"}
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "no in_dtype": (
        lambda: ops.Custom({"c": C}, func_type="source", name="scaled"),
        ArgumentError,
        "wanted the dtype of the inputs",
    ),
    "too few inputs": (
        lambda: ops.Custom("x * y", func_type="expression")(Tensor(1.0)),
        ArgumentError,
        "got 1 inputs for the expression 'x \\* y'; wanted 2: x, y",
    ),
    "work items": (
        lambda: source(work_items=-1).kernel.items([Tensor(1.0)._type], [Tensor(1.0)._type]),
        ArgumentError,
        "work_items=-1",
    ),
    "no dict": (
        lambda: ops.Custom(C, func_type="source", name="f", **ANY), ArgumentError, "a dict",
    ),
    "empty": (
        lambda: ops.Custom({}, func_type="source", name="f", **ANY), ArgumentError, "a dict",
    ),
    "no name": (
        lambda: ops.Custom({"c": C}, func_type="source", **ANY), ArgumentError, "name=None",
    ),
    "another name": (
        lambda: ops.Custom({"c": C}, func_type="source", name="other", **ANY),
        ArgumentValueError,
        "does not define the function 'other'",
    ),
    "a language": (
        lambda: ops.Custom({"rust": C}, func_type="source", name="scaled", **ANY),
        ArgumentValueError,
        "'rust'; wanted one of c, opencl, cuda",
    ),
    "no library": (
        lambda: ops.Custom("/nowhere/k.so:f", func_type="aot"), ArgumentValueError, "no library",
    ),
    "no function named": (
        lambda: ops.Custom("/nowhere/k.so", func_type="aot"), ArgumentError, "library.so:name",
    ),
    "no text": (lambda: ops.Custom(3, func_type="expression"), ArgumentError, "an expression"),
    "bprop": (lambda: ops.Custom(abs, bprop=3), ArgumentError, "bprop"),
    "it does not compile": (
        lambda: called(source(C.replace("return", "return %"))),
        ArgumentValueError,
        "cannot be used",
    ),
    "it fails": (
        lambda: called(source(C.replace("? 0", "? 4"))),
        BackendError,
        "'scaled' returned 4; wanted 0",
    ),
    "no bprop": (
        lambda: ms.grad(lambda x, y: source()(x, y).sum())(*map(Tensor, arrays())),
        GradientError,
        "no bprop",
    ),
    "too few gradients": (
        lambda: ms.grad(lambda x, y: source(bprop=lambda *a: (a[0],))(x, y).sum())(
            *map(Tensor, arrays())
        ),
        GradientError,
        "returned 1 gradients; wanted 2",
    ),
    "dtype": (
        lambda: source(in_dtype=ms.float64)(*map(Tensor, arrays())),
        DTypeError,
        "input 0 of 'scaled' has dtype float32; wanted float64",
    ),
    "count": (
        lambda: source(in_dtype=(ms.float32,))(*map(Tensor, arrays())),
        ArgumentError,
        "got 2 inputs; wanted 1",
    ),
    "shape": (lambda: called(source(out_shape="ab")), ArgumentError, "out_shape='ab'"),
    "no shape": (lambda: called(source(out_shape=lambda x, y: -1)), ArgumentError, "out_shape=-1"),
    "shapes and dtypes": (
        lambda: called(source(out_shape=((2,), (2,)), out_dtype=[ms.int32])),
        ArgumentError,
        "2 shapes and 1 dtypes",
    ),
    "no tensor": (lambda: source()(), ArgumentError, "at least one"),
    "another language": (
        lambda: called(ops.Custom({"cuda": CUDA}, func_type="source", name="scaled", **ANY)),
        UnsupportedOpError,
        "it has source in cuda",
    ),
    "check: no operator": (lambda: ms.check_custom(abs, Tensor(1.0)), ArgumentError, "ops.Custom"),
    "check: no inputs": (lambda: ms.check_custom(source()), ArgumentError, "at least one"),
    "check: an unwritten element": (
        lambda: called(
            lambda *xs: ms.check_custom(source(C.replace("out[i]", "if (i) out[i]")), *xs)
        ),
        BackendError,
        "are all elements written",
    ),
    "check: a changed input": (
        lambda: called(
            lambda *xs: ms.check_custom(
                source(C.replace("x[i] +", "(((float *)x)[i] += 1) +")), *xs
            )
        ),
        BackendError,
        "its inputs after the call",
    ),
    "check: a wrong gradient": (
        lambda: called(
            lambda *xs: ms.check_custom(source(bprop=lambda x, y, out, dout: (dout, dout)), *xs)
        ),
        GradientError,
        "wrong gradient",
    ),
    "check: another language disagrees": (
        lambda: called(
            lambda *xs: ms.check_custom(
                ops.Custom(
                    {"c": C, "opencl": OPENCL.replace("2 *", "3 *")}, func_type="source",
                    name="scaled", in_dtype=ms.float32,
                ), *xs,
            )
        ),
        BackendError,
        "OpenCL",
    ),
}  # fmt: skip


def function_of(func_type: str) -> Any:
    """Return what `func` may be for a `func_type`, and the options that it needs."""
    if func_type == "source":
        return {"c": C}, {"name": "scaled", "in_dtype": ms.float32}
    return {"expression": "x + y", "aot": "k.so:f"}.get(func_type, lambda x: x), {}


@pytest.mark.parametrize(
    "option", ["out_shape", "out_dtype", "bprop", "name", "work_items", "in_dtype", "effects"]
)
@pytest.mark.parametrize("func_type", ["pyfunc", "hybrid", "source", "aot", "expression"])
def test_no_option_is_ignored(func_type: str, option: str) -> None:
    kernel = func_type in ("source", "aot")
    meant = option in ("out_shape", "out_dtype", "bprop") and func_type != "expression"
    meant = meant or (option in ("in_dtype", "effects") and kernel) or func_type == "source"
    value = {"out_shape": (2,), "out_dtype": ms.float32, "bprop": gradient, "effects": True,
             "in_dtype": ms.float32, "work_items": 4, "name": "scaled"}[option]  # fmt: skip
    func, needed = function_of(func_type)
    if meant and func_type != "aot":  # there is no such library
        ops.Custom(func, func_type=func_type, **{**needed, option: value})
        return
    with pytest.raises(ArgumentValueError, match="no library" if meant else f"{option}=.*leave it"):
        ops.Custom(func, func_type=func_type, **{**needed, option: value})


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    function, error, text = WRONG[name]
    entry = registry.entries().get("OpenCL")
    if "another language disagrees" in name and (entry is None or registry.problem_of(entry)):
        pytest.skip("there is no OpenCL device")
    ms.set_context(device_target="CPU")
    with pytest.raises(error, match=text):
        function()


def test_check_names_what_it_did(device: str) -> None:
    done = ms.check_custom(scaled(), *map(Tensor, arrays((2, 3))))
    wanted = {"repeated calls", "unchanged inputs", "compiled at O2", "vmap", "the gradient"}
    assert wanted <= set(done)
    done = ms.check_custom(rows(), Tensor(arrays((2, 3))[0]))
    assert "the gradient" in done


BPROPS = {
    "right": (lambda x, y, out, dout: (2 * dout, ops.cos(y) * dout), None),
    "first wrong": (lambda x, y, out, dout: (3 * dout, ops.cos(y) * dout), "by input 0"),
    "second wrong": (lambda x, y, out, dout: (2 * dout, dout), "by input 1"),
    "sign": (lambda x, y, out, dout: (2 * dout, -ops.cos(y) * dout), "by input 1"),
    "none given": (lambda x, y, out, dout: (2 * dout, None), "by input 1"),
}


@pytest.mark.parametrize("level", [None, "O0", "O1", "O2"])
@pytest.mark.parametrize("what", BPROPS)
def test_debug_mode_compares_the_bprop_of_a_kernel(what, level):
    bprop, said = BPROPS[what]
    ms.set_context(debug=True)
    function = ms.grad(lambda x, y: f(x, y).sum(), (0, 1))
    f = source(bprop=bprop, in_dtype=ms.float32)
    function = function if level is None else ms.jit(function, jit_level=level)
    x, y = map(Tensor, arrays())
    if said is None:
        function(x, y)
    else:
        with pytest.warns(RuntimeWarning, match=f"Custom 'scaled': its bprop differs.*{said}"):
            function(x, y)


@pytest.mark.parametrize("level", [None, "O0"])
def test_debug_mode_calls_no_kernel_with_effects_more_often(level):
    counting = C.replace("return nparam", "static int calls; out[0] = ++calls; return nparam")
    wrong = source(counting, bprop=lambda x, y, out, dout: (dout, dout), effects=True)
    ms.set_context(debug=True)
    function = ms.value_and_grad(lambda x, y: wrong(x, y)[0, 0], 0)
    function = function if level is None else ms.jit(function, jit_level=level)
    values = [float(function(*map(Tensor, arrays()))[0]) for _ in range(3)]
    assert [v - values[0] for v in values] == [0, 1, 2]
