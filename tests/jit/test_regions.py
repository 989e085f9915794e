"""Level O1: compiled fused regions agree with O0; what cannot be compiled runs op by op."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops

COMPILES = ms.backend.registry.backend("CPU").compiles(0) is None
needs_compiler = pytest.mark.skipif(not COMPILES, reason="this machine has no C compiler")


def arrays(*shapes):
    rng = np.random.default_rng(3)
    return [Tensor(rng.standard_normal(s).astype(np.float32)) for s in shapes]


def softmax(x):
    e = ops.exp(x - ops.amax(x, -1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalise(x, g, b):
    centred = x - x.sum(-1, keepdims=True) / x.shape[-1]
    variance = (centred * centred).sum(-1, keepdims=True) / x.shape[-1]
    return centred / ops.sqrt(variance + 1e-5) * g + b


def chain(x, y):
    return ops.tanh(x) * ops.sigmoid(y) + ops.exp(-x * x)


def several_results(x, y):
    a = x * y + 1
    return a, ops.relu(a), (a * a).sum(-1), a.sum()


def in_a_loop(x, y):
    while (x * x).sum() < 1000:
        x = x * 1.5 + ops.sin(y) * y
    return x


def in_a_branch(x, y):
    if x.sum() > y.sum():
        return ops.exp(x) * y + x
    return ops.exp(y) * x - y


def spread(x, y):
    return (x + y[0]) * y[:, :1] + (x.reshape(-1) * 2).reshape(x.shape)


def reshaped(x, y):
    return (x.reshape(2, -1) * 2 + 1).reshape(x.shape) * y


PROGRAMS = {
    "softmax": (softmax, [(70, 9)]),
    "softmax of long rows": (softmax, [(3, 20000)]),
    "normalise": (normalise, [(64, 100), (100,), (100,)]),
    "chain": (chain, [(1000,), (1000,)]),
    "several results": (several_results, [(70, 17), (70, 17)]),
    "a loop": (in_a_loop, [(8, 16), (8, 16)]),
    "a branch": (in_a_branch, [(8, 16), (8, 16)]),
    "broadcast operands": (spread, [(80, 12), (80, 12)]),
    "reshapes between": (reshaped, [(80, 12), (80, 12)]),
}


def close(a, b):
    for x, y in zip(
        a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,), strict=True
    ):
        np.testing.assert_allclose(x.asnumpy(), y.asnumpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_regions_agree_with_o0(name):
    function, shapes = PROGRAMS[name]
    xs = arrays(*shapes)
    plain, compiled = ms.jit(function, jit_level="O0"), ms.jit(function, jit_level="O1")
    close(plain(*xs), compiled(*xs))
    found = compiled.explain(*xs)
    assert found.level == "O1"
    if COMPILES:
        assert "0 kernels" not in found.kernels[0], found.kernels
        assert not any("op by op" in line for line in found.kernels), found.kernels


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    function, shapes = PROGRAMS[name]
    xs = arrays(*shapes)

    def loss(*xs):
        out = function(*xs)
        return (out[0] if isinstance(out, tuple) else out).sum()

    want = ms.grad(loss, tuple(range(len(xs))))(*xs)
    close(want, ms.grad(ms.jit(loss, jit_level="O1"), tuple(range(len(xs))))(*xs))
    close(want, ms.jit(lambda *xs: ms.grad(loss, tuple(range(len(xs))))(*xs), jit_level="O1")(*xs))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int32", "int8", "uint8", "bool"]
)
def test_fused_chain_rounds_like_single_ops(dtype):
    """A fused chain rounds where the ops alone do."""
    values = np.random.default_rng(1).uniform(-9, 9, (33, 7)).astype(np.float32)
    x = Tensor(values).astype(getattr(ms, "bool_" if dtype == "bool" else dtype))

    def function(x):
        if dtype == "bool":
            return ops.logical_xor(x, ops.logical_not(x)) & x
        return (x * x + x) * 3 - x

    want = ms.jit(function, jit_level="O0")(x)
    got = ms.jit(function, jit_level="O1")(x)
    assert want.dtype == got.dtype
    np.testing.assert_array_equal(want.asnumpy(), got.asnumpy())


# Programs with numbers that float16 and bfloat16 hold only rounded.
WITH_NUMBERS = {
    "a factor": lambda x: (x + x) * 0.3,
    "a term and a quotient": lambda x: (x - 0.7) / 0.7,
    "a limit": lambda x: ops.clip(x * 2, -0.3, 0.7) + x,
    "a comparison": lambda x: ops.where(x * 1 > 0.3, x * 0.1, 0.7),
    "a power": lambda x: (ops.abs(x) + 1) ** 0.3,
    "a full tensor": lambda x: x + ops.full_like(x, 0.3) * x,
    "a size": lambda x: (x + 0.3) * (1 / x.shape[0]),
    "inside one op": lambda x: ops.leaky_relu(x + x, 0.3),
}


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_numbers_are_rounded_as_in_single_ops(name, dtype, level):
    """A number in a fused chain is rounded to the dtype of the tensor that it stands for."""
    function = WITH_NUMBERS[name]
    compiled = ms.jit(function, jit_level=level)
    for rows in (33, 7, 12):  # a size becomes symbolic
        values = np.random.default_rng(1).uniform(-2, 2, (rows, 7)).astype(np.float32)
        x = Tensor(values).astype(getattr(ms, dtype))
        np.testing.assert_array_equal(
            compiled(x).asnumpy().astype(np.float32), function(x).asnumpy().astype(np.float32)
        )


@pytest.mark.parametrize("level", ["O0", "O1", "O2", ""])
def test_a_training_step_at_every_level(level):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(12, 32, weight_init="ones", bias_init="zeros")
            self.b = nn.Dense(32, 4, weight_init="ones", bias_init="zeros")
            self.norm = nn.LayerNorm((32,))

        def construct(self, x):
            return self.b(ops.gelu(self.norm(self.a(x))))

    def train(jit):
        net = Net()
        optimizer = nn.Adam(net.trainable_params(), 1e-2)
        measure = nn.CrossEntropyLoss()
        gradient = ms.value_and_grad(lambda x, y: measure(net(x), y), None, net.trainable_params())

        def step(x, y):
            loss, grads = gradient(x, y)
            optimizer(grads)
            return loss

        step = jit(step)
        (x,) = arrays((16, 12))
        y = Tensor(np.arange(16) % 4, ms.int32)
        return [float(step(x, y).asnumpy()) for _ in range(5)]

    want = train(lambda f: f)
    got = train(lambda f: ms.jit(f, jit_level=level))
    np.testing.assert_allclose(want, got, rtol=1e-5)


def test_sources_of_the_jit_level():
    (x,) = arrays((70, 9))
    f = lambda x: ops.exp(x) * x  # noqa: E731
    ms.set_context(jit_level="O0")
    assert ms.jit(f)(x) is not None
    low, own = ms.jit(f), ms.jit(f, jit_level="O1")
    low(x), own(x)
    assert (low.explain(x).level, own.explain(x).level) == ("O0", "O1")
    ms.set_context(jit_level="O1")
    low(x)  # another setting, another program
    assert low.explain(x).level == "O1"
    assert low.cache_info().misses == 2


def test_parameters_are_written():
    weight = Parameter(Tensor(np.ones(40, np.float32)), name="w")

    @ms.jit(jit_level="O1")
    def step(x):
        ops.assign(weight, weight * 0.5 + x * 2)
        return (weight * weight).sum()

    (x,) = arrays((40,))
    want = np.ones(40, np.float32)
    for _ in range(3):
        total = step(x)
        want = want * np.float32(0.5) + x.asnumpy() * 2
        np.testing.assert_array_equal(weight.asnumpy(), want)
        np.testing.assert_allclose(total.asnumpy(), (want * want).sum(), rtol=1e-6)


def test_arguments_are_not_modified():
    xs = arrays((70, 9), (70, 9))
    before = [x.asnumpy().copy() for x in xs]
    compiled = ms.jit(several_results, jit_level="O1")
    first = [r.asnumpy().copy() for r in compiled(*xs)]
    again = [r.asnumpy() for r in compiled(*xs)]
    for a, b in zip([*before, *first], [*(x.asnumpy() for x in xs), *again], strict=True):
        np.testing.assert_array_equal(a, b)


def test_threads_compile_and_run_at_once():
    xs = arrays((64, 100), (100,), (100,))
    want = normalise(*xs).asnumpy()
    found = []

    def work(k):
        compiled = ms.jit(lambda x, g, b: normalise(x, g, b) + k, jit_level="O1")
        found.append(np.abs(compiled(*xs).asnumpy() - k - want).max())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 6
    assert max(found) < 1e-5


SCRIPT = """
import warnings
import numpy as np, duograph as ms
f = ms.jit(lambda x: ms.ops.exp(x) * x + 1)
g = ms.jit(lambda x: ms.ops.exp(x) * x - 1)
x = ms.Tensor(np.ones(5, np.float32))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print(f(x), g(x))
print(len(said), said[0].message)
"""


def test_without_a_compiler_everything_runs_at_o0(tmp_path):
    """Everything runs at O0, and one warning says why."""
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    found = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "CC": "/nonexistent/cc", "DUOGRAPH_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "3.7182817" in found
    assert "\n1 CPU: compiled functions run op by op (level O0): no C compiler" in found


@needs_compiler
def test_compiled_kernels_are_found_by_a_new_process(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT.split("with warnings")[0] + "print(f(x), g(x))\n")
    environment = {**os.environ, "DUOGRAPH_CACHE_DIR": str(tmp_path / "cache")}

    def run():
        return subprocess.run(
            [sys.executable, str(script)],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    first = run()
    libraries = sorted((tmp_path / "cache").rglob("*.so"))
    assert libraries
    assert run() == first
    assert sorted((tmp_path / "cache").rglob("*.so")) == libraries
