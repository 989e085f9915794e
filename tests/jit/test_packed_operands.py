"""Operands of products that are packed once, while Parameters are unchanged: the bits stay."""

import subprocess
import sys

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from duograph.backend.program import Step
from duograph.execution import lower
from jit.cached import Net, X, by_set_data, check, compiled, kept, numpy_of

pytest.importorskip("duograph_cpu")
pytestmark = pytest.importorskip("own_products").only_with_own_products()
RNG = np.random.default_rng(0)


# ---- packed products: the bits of the products that pack at every call
# ----------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "m, k, n",
    [
        (5, 96, 96), (16, 70, 64), (33, 256, 50), (64, 257, 100), (128, 768, 768), (100, 1000, 49),
        (97, 130, 33),
        (500, 200, 300), (13, 1537, 47), (7, 4608, 49), (1024, 64, 80), (40, 64, 1000),
        (300, 64, 17), (300, 64, 18),
    ],
)  # fmt: skip
def test_packed_matmuls_have_the_same_bits(m, k, n, transposed, side, dtype):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if transposed else (k, n)).astype(dtype)
    weights = Parameter(Tensor(a if side == "left" else b), name="weights")

    def plain(x):
        p, q = (weights, x) if side == "left" else (x, weights)
        return ops.matmul(p, q.swapaxes(0, 1) if transposed else q)

    def fused(x):
        return ops.relu(plain(x)) + 1

    given = Tensor(b if side == "left" else a)
    exact = a @ (b.T if transposed else b)
    for function, wanted in ((plain, exact), (fused, np.maximum(exact, 0) + 1)):
        f = ms.jit(function, jit_level="O1")
        found = [f(given).asnumpy() for _ in range(4)]
        np.testing.assert_allclose(found[0], wanted, rtol=1e-3, atol=1e-3)
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)


def test_steps_with_one_weight_share_its_packing():
    w = Parameter(Tensor(RNG.standard_normal((128, 128)).astype(np.float32) / 16), name="w")

    def steps(x):
        for _ in range(8):
            x = ops.tanh(ops.matmul(x, w))
        return x

    f = ms.jit(steps, jit_level="O1")
    x = Tensor(RNG.standard_normal((16, 128)).astype(np.float32))
    found = [f(x).asnumpy() for _ in range(3)]
    assert kept(f) == 1
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "channels, size, out, kernel, stride, padded, batch, packed",
    [
        (160, 7, 960, 1, 1, 0, 1, True), (256, 14, 128, 1, 1, 0, 1, True),
        (512, 7, 96, 1, 2, 0, 1, True), (128, 14, 160, 3, 2, 1, 1, True),
        (128, 9, 100, 3, 2, 1, 3, True), (64, 14, 64, 1, 1, 0, 2, False),
        (16, 56, 32, 1, 1, 0, 1, False), (3, 30, 32, 3, 2, 1, 1, False),
    ],
)  # fmt: skip
def test_packed_convolutions_have_the_same_bits(
    channels, size, out, kernel, stride, padded, batch, packed, dtype
):
    rng = np.random.default_rng(3)
    w = Parameter(
        Tensor(rng.standard_normal((out, channels, kernel, kernel)).astype(dtype)), name="w"
    )
    bias = Parameter(Tensor(rng.standard_normal((1, out, 1, 1)).astype(dtype)), name="bias")
    x = Tensor(rng.standard_normal((batch, channels, size, size)).astype(dtype))

    def plain(x):
        return ops.conv2d(x, w, stride=stride, padding=padded, pad_mode="pad")

    def fused(x):
        return ops.relu(plain(x) + bias)

    for function in (plain, fused):
        f = ms.jit(function, jit_level="O1")
        found = [f(x).asnumpy() for _ in range(4)]
        assert kept(f) == packed
        np.testing.assert_allclose(found[0], function(x).asnumpy(), rtol=1e-3, atol=1e-3)
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)
        w.set_data(w + 1)
        np.testing.assert_allclose(f(x).asnumpy(), function(x).asnumpy(), rtol=1e-3, atol=1e-3)


def test_parameters_from_a_checkpoint_are_cached(tmp_path):
    net = Net()
    f = compiled(net)
    path = str(tmp_path / "net.ckpt")
    for _ in range(2):
        ms.save_checkpoint(net, path)
        by_set_data(net)
        wanted = numpy_of(net)
        ms.load_param_into_net(net, ms.load_checkpoint(path))
        assert np.abs(numpy_of(net) - wanted).max() > 1e-3
        for _ in range(3):
            check(f, net)
        f(Tensor(X))
        assert kept(f) > 0


BLAS_LATER = """
from duograph_cpu._native import lib
lib.dg_isa_limit(1)
import numpy as np, duograph as ms
from duograph_cpu import linear
if %r:
    linear.open_blas.cache_clear()
    linear.open_blas, opened = lambda: None, linear.open_blas
net = ms.nn.Conv2d(512, 256, 1, has_bias=True)
f = ms.jit(lambda x: net(x))
x = ms.Tensor(np.random.default_rng(0).random((1, 512, 7, 7), np.float32))
first = f(x).asnumpy()
opened() if %r else ms.ops.matmul(x[0, 0], x[0, 0])
for _ in range(3):
    np.testing.assert_allclose(f(x).asnumpy(), first, rtol=1e-5, atol=1e-6)
notes = [n for program in f.programs() for n in program.notes]
print(lib.dg_isa(), any("packed once" in n for n in notes))
"""


@pytest.mark.parametrize("late", [False, True])
def test_packed_weights_survive_a_later_blas(late, tmp_path):
    """On processors with AVX2 alone products are BLAS's, if there is one, and then nothing is
    packed for ours.
    """
    program = tmp_path / "program.py"
    program.write_text(BLAS_LATER % (late, late))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    if late and done.stdout.startswith("1"):
        assert done.stdout.split() == ["1", "True"]


class Recurrent(nn.Cell):
    """A layer whose weights meet the state at every step of time, forward and backward."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(3)
        self.w = Parameter(Tensor(rng.standard_normal((96, 96)).astype(np.float32) / 10), name="w")

    def construct(self, x):
        h = x
        for _ in range(5):
            h = ops.tanh(ops.matmul(h, self.w) + x)
        return h


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("written", [True, False], ids=["training", "inference"])
def test_matmuls_of_one_call_share_packed_operands(monkeypatch, level, written):
    """One packing for five products forward, one for five backward, and the bits of products that
    pack alone.
    """

    def run():
        net = Recurrent()
        optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
        forward = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

        def step(x):
            if not written:
                return net(x)
            loss, grads = forward(x)
            optimizer(grads)
            return loss

        step = ms.jit(step, jit_level=level)
        found = [step(Tensor(X)).asnumpy() for _ in range(3)]
        return [*found, net.w.asnumpy().copy()]

    seen = []
    real = lower.share_packed_operands

    def counted(instructions, sizes):
        made = real(instructions, sizes)
        seen.append(sum(isinstance(s, Step) and s.name == "pack" for s in made))
        return made

    monkeypatch.setattr(lower, "share_packed_operands", counted)
    shared = run()
    assert max(seen) == (2 if written else 1)
    monkeypatch.setattr(lower, "share_packed_operands", lambda instructions, sizes: instructions)
    for a, b in zip(shared, run(), strict=True):
        np.testing.assert_array_equal(a, b)
