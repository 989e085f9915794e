"""Random numbers in place, and random functions of a tensor: distributions, errors, gradients."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import ops


@pytest.fixture(autouse=True)
def _seed():
    state = ms.get_rng_state()
    ms.manual_seed(5)
    yield
    ms.set_rng_state(state)


N = 20000
# call -> mean, standard deviation
FILLS = {
    "uniform_()": (0.5, 12**-0.5), "uniform_(-2, 4)": (1.0, 6 * 12**-0.5),
    "normal_()": (0.0, 1.0), "normal_(3.0, 2.0)": (3.0, 2.0),
    "exponential_()": (1.0, 1.0), "exponential_(4.0)": (0.25, 0.25),
    "bernoulli_()": (0.5, 0.5), "bernoulli_(0.1)": (0.1, 0.3),
    "random_(0, 10)": (4.5, (99 / 12) ** 0.5), "random_()": (2**23, 2**24 * 12**-0.5),
}  # fmt: skip


@pytest.mark.parametrize("call", FILLS)
def test_fills_have_the_moments(call):
    name, arguments = call[:-1].split("(")
    mean, sd = FILLS[call]
    x = ops.zeros((N,), ms.float32)
    same = eval(f"x.{call}")
    assert same is x and x.dtype == ms.float32
    found = x.asnumpy().astype(np.float64)
    assert abs(found.mean() - mean) < 5 * sd / N**0.5
    assert abs(found.std() / sd - 1) < 0.05
    again = eval(f"ops.{name}(x{', ' if arguments else ''}{arguments})")
    assert again is x and not np.array_equal(x.asnumpy(), found)


@pytest.mark.parametrize("call", [c for c in FILLS if c != "random_()"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_fills_keep_shape_and_dtype(call, shape, dtype):
    x = ops.zeros(shape, getattr(ms, dtype))
    eval(f"x.{call}")
    assert x.shape == shape and x.dtype == getattr(ms, dtype)


def test_generators_repeat_the_numbers():
    def drawn():
        return (
            ops.zeros((4,), ms.float32).normal_(generator=ms.Generator().manual_seed(3)).asnumpy()
        )

    np.testing.assert_array_equal(drawn(), drawn())


def test_fills_in_compiled_functions():
    """Every call of a compiled function draws new numbers."""

    @ms.jit
    def fill(x):
        y = x * 1
        y.uniform_(2, 3)
        return y

    x = ops.zeros((50,), ms.float32)
    one, two = fill(x).asnumpy(), fill(x).asnumpy()
    assert ((one >= 2) & (one < 3)).all() and not np.array_equal(one, two)


def test_whole_numbers():
    x = ops.zeros((200,), ms.int32).random_(-3, 2)
    assert set(x.asnumpy().tolist()) == {-3, -2, -1, 0, 1}
    assert ops.zeros((99,), ms.uint8).random_().asnumpy().max() > 100
    assert set(ops.zeros((99,), ms.bool_).bernoulli_(ms.Tensor([0.5])).asnumpy()) == {False, True}


@pytest.mark.parametrize(
    ("name", "median"), [("cauchy", 0.0), ("log_normal", np.e), ("uniform", 0.5)]
)
def test_methods_that_return_new_tensors(name, median):
    x = ops.zeros((N,), ms.float16)
    found = getattr(x, name)()
    assert found.dtype == ms.float16 and not x.asnumpy().any()
    assert abs(np.median(found.asnumpy().astype("f")) - median) < 0.1


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gumbel_softmax(dim):
    logits = ms.Tensor(np.log(np.array([[0.2, 0.8]] * 4000, np.float32)))
    soft = ops.gumbel_softmax(logits, 0.5, dim=dim)
    np.testing.assert_allclose(soft.asnumpy().sum(dim), 1.0, rtol=1e-4)
    hard = ops.gumbel_softmax(logits, 0.5, True, dim).asnumpy()
    assert set(hard.round(5).reshape(-1).tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(hard.sum(dim), 1.0, rtol=1e-5)
    if dim % 2:
        assert abs(hard[:, 1].mean() - 0.8) < 0.04


def test_gumbel_softmax_has_the_gradient_of_the_softmax():
    weights = ms.Tensor([1.0, -2.0, 0.5])

    def loss(x, hard):
        ms.manual_seed(3)
        return (ops.gumbel_softmax(x, 1.0, hard) * weights).sum()

    x = ms.Tensor([0.1, 0.2, 0.3])
    soft, hard = (ms.grad(loss)(x, h).asnumpy() for h in (False, True))
    assert np.abs(soft).max() > 1e-3
    np.testing.assert_allclose(soft, hard, rtol=1e-6)


def test_rrelu():
    x = ms.Tensor(np.linspace(-1, 1, 1001).astype("f"))
    found = ops.rrelu(x, 0.2, 0.4).asnumpy()
    slope = found[:500] / x.asnumpy()[:500]
    assert (slope >= 0.2 - 1e-6).all() and (slope <= 0.4 + 1e-6).all() and np.ptp(slope) > 0.1
    np.testing.assert_array_equal(found[500:], x.asnumpy()[500:])


def test_random_categorical():
    logits = ms.Tensor(np.log(np.array([[0.1, 0.9], [0.5, 0.5]], np.float32)))
    found = ops.random_categorical(logits, 4000, dtype=ms.int32)
    assert found.shape == (2, 4000) and found.dtype == ms.int32
    np.testing.assert_allclose(found.asnumpy().mean(1), [0.9, 0.5], atol=0.04)


@pytest.mark.parametrize("name", ["tanh_", "erfinv_", "zero_"])
def test_functions_in_place(name):
    x = ms.Tensor([0.1, -0.5])
    wanted = [0, 0] if name == "zero_" else getattr(ops, name[:-1])(x).asnumpy()
    assert getattr(ops, name)(x) is x
    np.testing.assert_array_equal(x.asnumpy(), wanted)
    assert ops.clamp_(x, 5, 6) is x and x.asnumpy().tolist() == [5, 5]


INTS = ops.zeros((2,), ms.int32)
FLOATS = ops.zeros((2,), ms.float32)
WRONG = [
    (lambda: INTS.uniform_(), TypeError, "int32"),
    (lambda: INTS.normal_(), TypeError, "int32"),
    (lambda: FLOATS.uniform_(2, 1), ValueError, "from_=2"),
    (lambda: FLOATS.normal_(0, -1), ValueError, "std=-1"),
    (lambda: FLOATS.exponential_(0), ValueError, "lambd=0"),
    (lambda: FLOATS.bernoulli_(1.5), ValueError, "1.5"),
    (lambda: FLOATS.random_(3, 3), ValueError, "from_=3"),
    (lambda: ops.gumbel_softmax(FLOATS, 0), ValueError, "tau"),
    (lambda: ops.rrelu(FLOATS, 0.5, 0.1), ValueError, "lower"),
    (lambda: ops.random_categorical(FLOATS, 3), ValueError, "shape"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
