"""Distributions and bijectors against MindSpore's values, integrals, moments and compiled code.

`probability_values.json` holds what MindSpore 2.10 printed: for each class and constructor, the
functions of `VALUES` and their results.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import duograph as ms
import duograph.nn.probability.bijector as msb
import duograph.nn.probability.distribution as msd
import numpy as np
import pytest
from duograph import ops

EXPECTED = json.loads((pathlib.Path(__file__).parent / "probability_values.json").read_text())
OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival")
PLAIN = ("mean", "mode", "sd", "var", "entropy")
OF_PAIRS = ("kl_loss", "cross_entropy")


def made(case):
    """Return the distribution of a case."""
    return getattr(msd, case["class"])(*case["args"])


def tensors(values):
    return [ms.Tensor(v, ms.float32) for v in values]


def call(case, distribution, function):
    """Call one function of a case as MindSpore was called for the table."""
    if function in OF_VALUES:
        return getattr(distribution, function)(ms.Tensor(case["value"], ms.float32))
    if function == "prob_b":
        return distribution.prob(ms.Tensor(case["value"], ms.float32), *tensors(case["other"]))
    if function in OF_PAIRS:
        return getattr(distribution, function)(case["class"], *tensors(case["other"]))
    return getattr(distribution, function)()


ROWS = [
    pytest.param(case, function, found, id=f"{case['class']}{case['args']}-{function}")
    for case in EXPECTED
    for function, found in case["found"].items()
]


@pytest.mark.parametrize(("case", "function", "expected"), ROWS)
def test_values_are_mindspores(case, function, expected):
    dtype, values = expected
    found = call(case, made(case), function)
    assert str(found.dtype).lower() == dtype
    # MindSpore's own float32 results are this far from the exact ones
    np.testing.assert_allclose(found.asnumpy(), np.array(values), rtol=6e-6, atol=6e-6)


@pytest.mark.parametrize("case", EXPECTED[::2], ids=lambda c: f"{c['class']}{c['args']}")
def test_compiled_and_by_name(case):
    """A Cell that calls the functions by name gives the same compiled and eager."""
    distribution = made(case)
    given = [f for f in case["found"] if f in OF_VALUES or f in PLAIN]

    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.distribution = distribution

        def construct(self, value):
            outs = []
            for f in given:
                outs.append(self.distribution(f, value) if f in OF_VALUES else self.distribution(f))
            return outs

    value = ms.Tensor(case["value"], ms.float32)
    net = Net()
    eager = net(value)
    compiled = ms.jit(net.construct)(value)
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


SAMPLED = [
    ("Normal", (1.0, 2.0)), ("Uniform", (0.5, 2.0)), ("Exponential", (0.5,)),
    ("Gamma", ([2.0], [0.5])), ("Beta", ([2.0], [3.0])), ("Poisson", ([2.5],)),
    ("Gumbel", (1.0, 2.0)), ("Logistic", (1.0, 2.0)), ("LogNormal", (0.3, 0.4)),
    ("Bernoulli", (0.3,)), ("Geometric", (0.3,)), ("Categorical", ([0.2, 0.5, 0.3],)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _seed():
    state = ms.get_rng_state()
    ms.manual_seed(11)
    yield
    ms.set_rng_state(state)


@pytest.mark.parametrize(("name", "args"), SAMPLED)
def test_samples_have_the_moments(name, args):
    distribution = getattr(msd, name)(*args)
    n = 20000
    drawn = distribution.sample((n,))
    assert drawn.dtype == distribution.dtype
    x = drawn.asnumpy().astype(np.float64).reshape(-1)
    mean, sd = (float(np.ravel(v.asnumpy())[0]) for v in (distribution.mean(), distribution.sd()))
    assert abs(x.mean() - mean) < 5 * sd / n**0.5
    assert abs(x.std() / sd - 1) < 0.06


@pytest.mark.parametrize(("name", "args"), [*SAMPLED, ("Cauchy", (1.0, 2.0))])
def test_samples_follow_the_distribution_function(name, args):
    """The share of samples up to some quantiles is what `cdf` says."""
    distribution = getattr(msd, name)(*args)
    x = distribution.sample((20000,)).asnumpy().astype(np.float32).reshape(-1)
    at = np.quantile(x, [0.1, 0.5, 0.9]).astype(np.float32)
    found = distribution.cdf(ms.Tensor(at)).asnumpy()
    np.testing.assert_allclose(found, (x[:, None] <= at).mean(0), atol=0.02)


@pytest.mark.parametrize(
    ("name", "args", "shape", "wanted"),
    [
        ("Normal", (0.0, [1.0, 2.0]), (), (2,)),
        ("Normal", ([[0.0], [1.0]], [1.0, 2.0]), (3,), (3, 2, 2)),
        ("Normal", (0.0, 1.0), (0, 2), (0, 2)),
        ("Gamma", (2.0, 1.0), (3,), (3,)),
        ("Beta", (2.0, 3.0), (), ()),
        ("Poisson", (2.0,), (4, 1), (4, 1)),
        ("Categorical", ([0.5, 0.5],), (), ()),
        ("Categorical", ([[0.5, 0.5]] * 3,), (2, 4), (2, 4, 3)),
        ("Gumbel", (0.0, [1.0, 2.0]), (3,), (3, 2)),
        ("LogNormal", ([0.0], [[1.0], [2.0]]), (3,), (3, 2, 1)),
    ],
)
def test_shape_of_samples(name, args, shape, wanted):
    assert getattr(msd, name)(*args).sample(shape).shape == wanted


DENSITIES = [("HalfNormal", (1.0, 2.0), 1.0, 25.0), ("Laplace", (1.0, 2.0), -40.0, 40.0),
             ("StudentT", (5.0, 1.0, 2.0), -90.0, 90.0), ("Gamma", (2.0, 0.5), 0.0, 60.0),
             ("Beta", (2.0, 3.0), 0.0, 1.0), ("LogNormal", (0.0, 0.5), 0.0, 30.0),
             ("Uniform", (0.5, 2.0), 0.5, 2.0)]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "low", "high"), DENSITIES)
def test_densities_integrate_to_one(name, args, low, high):
    x = np.linspace(low, high, 40001)
    found = getattr(msd, name)(*args).prob(ms.Tensor(x, ms.float32)).asnumpy()
    assert abs(np.sum((found[1:] + found[:-1]) / 2) * (x[1] - x[0]) - 1) < 1e-3


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [("HalfNormal", (1.0, 2.0), 0.5), ("Gamma", (0.5, 2.0), -1.0), ("Beta", (0.5, 0.5), 1.5),
     ("Exponential", (2.0,), -0.1), ("Uniform", (0.0, 1.0), 1.5), ("LogNormal", (0.0, 1.0), -1.0),
     ("LogNormal", (0.0, 1.0), 0.0), ("Poisson", (2.0,), -1.0), ("Geometric", (0.5,), -1.0),
     ("Categorical", ([0.5, 0.5],), 2.0), ("Categorical", ([0.5, 0.5],), -1.0)],
)  # fmt: skip
def test_probability_outside_the_support_is_zero(name, args, value):
    distribution = getattr(msd, name)(*args)
    assert distribution.prob(ms.Tensor([value])).asnumpy() == [0.0]
    assert distribution.log_prob(ms.Tensor([value])).asnumpy() == [-np.inf]


@pytest.mark.parametrize("name", ["Normal", "Gamma", "Beta", "Exponential", "Cauchy", "LogNormal"])
def test_gradients_match_differences(name):
    distribution = getattr(msd, name)(dtype=ms.float64)
    inputs = [ms.Tensor([v], ms.float64) for v in (0.3, 1.5, 2.0)]
    found = ms.check_gradient(
        distribution.log_prob, inputs[: 2 if name == "Exponential" else 3], order=1
    )
    assert found, found


def test_parameters_are_trained_by_samples():
    """The gradient of a sample by mean and sd is 1 and the standard normal number."""
    mean, sd = ms.Parameter(ms.Tensor([1.0]), name="mean"), ms.Parameter(ms.Tensor([2.0]), name="s")
    normal = msd.Normal(mean, sd)
    assert {p.name for p in normal.trainable_params()} == {"mean", "s"}

    def loss():
        x = normal.sample((4,))
        return x.sum(), x

    (_, x), grads = ms.value_and_grad(loss, None, [mean, sd], has_aux=True)()
    np.testing.assert_allclose(grads[0].asnumpy(), [4.0])
    np.testing.assert_allclose(grads[1].asnumpy(), [((x.asnumpy() - 1) / 2).sum()], rtol=1e-5)
    log_prob = normal.log_prob(ms.Tensor([1.0]))
    mean.set_data(ms.Tensor([3.0]))
    assert normal.log_prob(ms.Tensor([1.0])).asnumpy() < log_prob.asnumpy()


BIJECTORS = {
    "Exp": (msb.Exp, ()),
    "PowerTransform": (msb.PowerTransform, (0.5,)),
    "PowerTransform0": (msb.PowerTransform, (0.0,)),
    "PowerTransforms": (msb.PowerTransform, ([0.0, 0.5, 2.0],)),
    "ScalarAffine": (msb.ScalarAffine, (-2.0, 1.0)),
    "Softplus": (msb.Softplus, (2.0,)),
    "GumbelCDF": (msb.GumbelCDF, (0.5, 2.0)),
    "Invert": (lambda: msb.Invert(msb.Softplus(0.5)), ()),
}


@pytest.mark.parametrize("name", BIJECTORS)
def test_bijectors_invert_and_give_their_derivative(name):
    kind, args = BIJECTORS[name]
    bijector = kind(*args)
    x = ms.Tensor([0.3, 0.7, 1.4])
    y = bijector.forward(x)
    np.testing.assert_allclose(bijector.inverse(y).asnumpy(), x.asnumpy(), rtol=2e-5)
    slope = ops.abs(ms.grad(lambda t: bijector.forward(t).sum())(x)).asnumpy()
    jacobian = np.broadcast_to(np.exp(bijector.forward_log_jacobian(x).asnumpy()), slope.shape)
    np.testing.assert_allclose(jacobian, slope, rtol=2e-5)
    back = np.broadcast_to(np.exp(bijector.inverse_log_jacobian(y).asnumpy()), slope.shape)
    np.testing.assert_allclose(back, 1 / slope, rtol=5e-5)
    compiled = ms.jit(lambda t: bijector("forward", t))(x)
    np.testing.assert_array_equal(compiled.asnumpy(), y.asnumpy())


@pytest.mark.parametrize("power", [0.0, 0.5, [0.0, 2.0]])
def test_gradients_of_power_transforms_are_finite(power):
    """The branch that is not taken divides by zero; it must not reach the gradient."""
    bijector = msb.PowerTransform(power)
    for function in ("forward", "inverse", "forward_log_jacobian"):
        slope = ms.grad(lambda t, f=function: getattr(bijector, f)(t).sum())(ms.Tensor([0.5, 1.5]))
        assert np.isfinite(slope.asnumpy()).all()


def test_transformed_distribution_is_the_lognormal():
    a = msd.TransformedDistribution(msb.Exp(), msd.Normal(0.3, 0.8))
    b = msd.LogNormal(0.3, 0.8)
    x = ms.Tensor([0.5, 1.0, 3.0])
    for function in OF_VALUES:
        found = getattr(a, function)(x).asnumpy()
        np.testing.assert_allclose(found, getattr(b, function)(x).asnumpy(), rtol=1e-5)
    assert isinstance(msb.Exp()(msd.Normal(0.3, 0.8)), msd.TransformedDistribution)
    with pytest.raises(ValueError, match="not linear"):
        a.mean()
    assert float(msb.ScalarAffine(2.0, 1.0)(msd.Normal(3.0, 1.0)).mean()) == 7.0


def test_a_subclass_of_the_user():
    """A subclass with formulas in MindSpore's form, with parameters that calls may replace."""

    class Triangle(msd.Distribution):
        def __init__(self, width=None):
            param = {"width": width, "param_dict": {"width": width}}
            super().__init__(0, ms.float32, "Triangle", param)
            self._width = self._add_parameter(width, "width")

        def _prob(self, value, width=None):
            width = self._check_param_type(width)
            return ops.relu(1 - ops.abs(value) / width) / width

        def _cdf(self, value, width=None):
            width = self._check_param_type(width)
            return 0.5 + ops.clamp(value / width, -1, 1) * (1 - ops.abs(value) / width / 2)

    x = ms.Tensor([0.5])
    triangle = Triangle(1.0)
    assert float(triangle.log_prob(x)) == pytest.approx(np.log(0.5))
    assert float(triangle.survival_function(x)) == pytest.approx(0.125)
    assert float(Triangle().prob(x, ms.Tensor([2.0]))) == pytest.approx(0.375)
    assert triangle.get_dist_type() == "Triangle"
    with pytest.raises(NotImplementedError, match="mean is not implemented for Triangle"):
        triangle.mean()


ONE = ms.Tensor([1.0])
WRONG = [
    (lambda: msd.Normal(0.0, 0.0), ValueError, "sd"),
    (lambda: msd.Normal(0.0, 1.0, dtype=ms.int32), TypeError, "floating"),
    (lambda: msd.Normal(True, 1.0), TypeError, "mean"),
    (lambda: msd.Normal([0.0, 1.0], [1.0, 1.0, 1.0]), ValueError, "broadcast"),
    (lambda: msd.Normal(0.0, 1.0, seed=-1), ValueError, "seed"),
    (lambda: msd.Normal(ms.Tensor(0, ms.float16), ms.Tensor(1, ms.float32)), TypeError, "dtype"),
    (lambda: msd.Normal().prob(ONE), TypeError, "mean"),
    (lambda: msd.Normal(0.0, 1.0).prob(1.0), TypeError, "Tensor"),
    (lambda: msd.Normal(0.0, 1.0).prob(ONE, 1.0), TypeError, "Tensor"),
    (lambda: msd.Normal(0.0, 1.0).prob(ONE, ONE, ONE, ONE), TypeError, "parameters"),
    (lambda: msd.Normal(0.0, 1.0).prob(ONE, scale=ONE), TypeError, "scale"),
    (lambda: msd.Normal(0.0, 1.0).kl_loss("Uniform", ONE, ONE), ValueError, "Uniform"),
    (lambda: msd.Normal(0.0, 1.0).kl_loss("Normal", ONE), TypeError, "sd_b"),
    (lambda: msd.Normal(0.0, 1.0).sample([2]), TypeError, "tuple"),
    (lambda: msd.Normal(0.0, 1.0)("median"), NotImplementedError, "median"),
    (lambda: msd.Cauchy(0.0, 1.0).mean(), ValueError, "undefined"),
    (lambda: msd.Cauchy(0.0, 1.0).var(), ValueError, "undefined"),
    (lambda: msd.Logistic(0.0, 1.0).kl_loss("Logistic", ONE, ONE), NotImplementedError, "kl_loss"),
    (lambda: msd.Uniform(1.0, 1.0), ValueError, "low"),
    (lambda: msd.Uniform(0.0, 1.0).mode(), NotImplementedError, "mode"),
    (lambda: msd.Bernoulli(1.0), ValueError, "probs"),
    (lambda: msd.Categorical(0.5), ValueError, "axis"),
    (lambda: msd.Categorical([0.5, 0.4]), ValueError, "sum"),
    (lambda: msd.Gumbel(0, 1), TypeError, "floating"),
    (lambda: msb.ScalarAffine(1, 2.0), TypeError, "floating"),
    (lambda: msb.PowerTransform(-1.0), ValueError, "power"),
    (lambda: msb.Exp().forward(ms.Tensor([1])), TypeError, "floating"),
    (lambda: msb.Exp()("backward", ONE), ValueError, "backward"),
    (lambda: msb.Invert(3), TypeError, "Bijector"),
    (lambda: msd.TransformedDistribution(msb.Exp(), msd.Bernoulli(0.5)), TypeError, "floating"),
]


@pytest.mark.parametrize(("call", "error", "text"), WRONG)
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_texts_and_properties():
    normal = msd.Normal(3.0, 4.0)
    assert repr(normal) == "Normal(mean = 3.0, standard deviation = 4.0)"
    assert repr(msd.Normal([3.0, 1.0], 4.0)) == "Normal(batch_shape = (2,))"
    assert (normal.name, normal.seed, normal.dtype) == ("Normal", 0, ms.float32)
    assert normal.batch_shape == normal.broadcast_shape == () and normal.is_scalar_batch
    assert msd.Normal().batch_shape is None
    assert [float(v) for v in normal.get_dist_args()] == [3.0, 4.0]
    assert msd.Bernoulli(0.5).get_dist_args(probs1=ONE)[0] is ONE
    assert msd.Categorical([[0.5, 0.5]]).broadcast_shape == (1,)
    assert msd.Uniform(0.0, 1.0, dtype=ms.float16).sample((2,)).dtype == ms.float16
    invert = msb.Invert(msb.Exp())
    assert invert.name == "InvertExp" and repr(msb.Exp()) == "Exp(exp)"
    assert msb.ScalarAffine([1.0, 2.0], 0.0).shape_mapping((3, 1)) == (3, 2)


def test_import_does_not_load_it():
    code = "import duograph as ms, sys; ms.nn; print(any('probability' in m for m in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
