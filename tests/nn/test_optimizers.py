"""Tests of optimisers against three steps printed by MindSpore 2.10 (float32, CPU), and of their
argument checks.
"""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import nn

# a.weight starts as [1, -2, 3], a.bias as [.5, .25]; step i gets i * [.1, -.2, .3] and [1, -1]
STEPS = {
    "sgd": (lambda p: nn.SGD(p, 0.1), [0.94, -1.88, 2.82], [0.2, 0.55]),
    "sgd momentum": (
        lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
        [0.90643466, -1.8128693, 2.7193038],
        [-0.0342349, 0.7802481],
    ),
    "sgd nesterov": (
        lambda p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01, loss_scale=2.0),
        [0.91925746, -1.8385149, 2.7577724],
        [0.0942275, 0.6497462],
    ),
    "momentum": (
        lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01, loss_scale=2.0),
        [0.94687378, -1.8937476, 2.8406214],
        [0.21693735, 0.5288587],
    ),
    "momentum nesterov": (
        # by the published formula: MindSpore's CPU kernel does not look at use_nesterov
        lambda p: nn.Momentum(p, 0.1, 0.9, use_nesterov=True),
        [0.85441, -1.70882, 2.56323],
        [-0.3049, 1.0549],
    ),
    "adam": (lambda p: nn.Adam(p, 0.1), [0.7076832, -1.7076828, 2.7076828], [0.2000011, 0.5499989]),
    "adam decay": (
        lambda p: nn.Adam(p, 0.1, weight_decay=0.1, loss_scale=2.0),
        [0.7000818, -1.7003211, 2.7004073],
        [0.2001931, 0.549773],
    ),
    "adam nesterov": (
        lambda p: nn.Adam(p, 0.1, use_nesterov=True),
        [0.5191216, -1.5191212, 2.5191212],
        [0.0404695, 0.7095305],
    ),
    "adam amsgrad": (
        lambda p: nn.Adam(p, 0.1, use_amsgrad=True),
        [0.7076832, -1.7076828, 2.7076828],
        [0.2000011, 0.5499989],
    ),
    "adam weight decay": (
        lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.1),
        [-0.2197428, -0.7504585, 1.7207248],
        [-0.7404984, 1.4682226],
    ),
    "rmsprop": (
        lambda p: nn.RMSProp(p, 0.1, weight_decay=0.01),
        [0.9292604, -1.8610468, 2.7973189],
        [0.1990437, 0.5491291],
    ),
    "rmsprop momentum": (
        lambda p: nn.RMSProp(p, 0.1, momentum=0.5),
        [0.913513, -1.829492, 2.7499144],
        [0.075, 0.675],
    ),
    "rmsprop centered": (
        lambda p: nn.RMSProp(p, 0.1, momentum=0.5, centered=True),
        [0.9134208, -1.8287978, 2.7477832],
        [0.0674477, 0.6825523],
    ),
    "adagrad": (
        lambda p: nn.Adagrad(p, learning_rate=0.1),
        [0.8569719, -1.7996632, 2.7730968],
        [0.278851, 0.471149],
    ),
    "adadelta": (
        lambda p: nn.Adadelta(p),
        [0.9879325, -1.9879291, 2.9879284],
        [0.4902925, 0.2597075],
    ),
    "ftrl": (
        lambda p: nn.FTRL(p, learning_rate=0.1, l2=0.01),
        [-0.0960747, -0.1084394, 0.5935707],
        None,
    ),
    "adamax": (lambda p: nn.AdaMax(p, 0.1), [0.7546805, -1.7546805, 2.7546806], [0.2, 0.55]),
    "rprop": (lambda p: nn.Rprop(p, 0.1), [0.636, -1.636, 2.636], [0.136, 0.614]),
    "asgd": (
        lambda p: nn.ASGD(p, 0.1),
        [0.939971, -1.8799419, 2.8199129],
        [0.1999902, 0.5499872],
    ),
    "list of rates": (lambda p: nn.SGD(p, [0.1, 0.2, 0.3]), [0.86, -1.72, 2.58], [-0.1, 0.85]),
    "schedule": (
        lambda p: nn.SGD(p, nn.ExponentialDecayLR(0.1, 0.9, 1)),
        [0.9477, -1.8954, 2.8431],
        [0.229, 0.521],
    ),
    "groups": (
        lambda p: nn.Momentum(
            [
                {"params": [p[0]], "lr": 0.2, "weight_decay": 0.1},
                {"params": [p[1]]},
                {"order_params": p},
            ],
            0.1,
            0.9,
        ),
        [0.701824, -1.4036479, 2.1054721],
        [-0.061, 0.811],
    ),
    "groups in order": (
        lambda p: nn.SGD(
            [{"params": [p[1]], "lr": 0.2}, {"params": [p[0]]}, {"order_params": p}], 0.1
        ),
        [0.94, -1.88, 2.82],
        [-0.1, 0.85],
    ),
}


def parameters() -> list[ms.Parameter]:
    return [
        ms.Parameter(ms.Tensor([1.0, -2.0, 3.0]), name="a.weight"),
        ms.Parameter(ms.Tensor([0.5, 0.25]), name="a.bias"),
    ]


def run(make, steps=3):
    params = parameters()
    optimizer = make(params)
    for i in range(1, steps + 1):
        optimizer((ms.Tensor([0.1 * i, -0.2 * i, 0.3 * i]), ms.Tensor([1.0, -1.0])))
    return optimizer, params


@pytest.mark.parametrize("name", STEPS)
def test_three_steps_of_each_optimizer(name):
    """J06, J07: groups of parameters with their own rate, decay and order; rates as numbers, lists
    and schedules
    """
    make, weight, bias = STEPS[name]
    optimizer, params = run(make)
    assert optimizer.global_step.asnumpy().tolist() == [3]
    # 1 - 0.999 in float32 is right to 2e-5 only
    for p, wanted in zip(params, (weight, bias), strict=True):
        if wanted is not None:
            np.testing.assert_allclose(p.asnumpy(), wanted, rtol=2e-5, atol=4e-6)
    assert all(np.isfinite(p.asnumpy()).all() for p in params)


def test_rmsprop_formula():
    _, params = run(STEPS["rmsprop momentum"][0], steps=2)
    p, s, m = 0.5, 1.0, 0.0
    for _ in range(2):
        s = 0.9 * s + 0.1
        m = 0.5 * m + 0.1 / np.sqrt(s + 1e-10)
        p -= m
    np.testing.assert_allclose(params[1].asnumpy()[0], p, rtol=1e-6)


def test_rmsprop_centered():
    _, params = run(lambda p: nn.RMSProp(p, 0.1, momentum=0.5, centered=True), steps=1)
    step = 0.1 / np.sqrt(1.0 - 0.01 + 1e-10)
    np.testing.assert_allclose(params[1].asnumpy()[0], 0.5 - step, rtol=1e-6)


def test_lamb_scales_the_step_to_the_weights():
    _, params = run(lambda p: nn.Lamb(p, 0.1), steps=1)
    w = np.array([0.5, 0.25])
    step = np.array([1.0, -1.0]) / (1.0 + 1e-6)
    wanted = w - 0.1 * np.linalg.norm(w) / np.linalg.norm(step) * step
    np.testing.assert_allclose(params[1].asnumpy(), wanted, rtol=1e-5)


def test_lars_scales_only_parameters_of_its_filter():
    _, params = run(lambda p: nn.LARS(nn.SGD(p, 0.1), coefficient=0.02), steps=1)
    w, g = np.array([1.0, -2.0, 3.0]), np.array([0.1, -0.2, 0.3])
    ratio = 0.02 * np.linalg.norm(w) / (np.linalg.norm(g) + 1e-5)
    np.testing.assert_allclose(params[0].asnumpy(), w - 0.1 * ratio * g, rtol=1e-5)
    np.testing.assert_allclose(params[1].asnumpy(), [0.4, 0.35], rtol=1e-6)


STATES = {
    "sgd": (nn.SGD, ["momentum", "accum.a.weight", "accum.a.bias", "stat.a.weight", "stat.a.bias"]),
    "momentum": (
        lambda p: nn.Momentum(p, 0.1, 0.9),
        ["momentum", "moments.a.weight", "moments.a.bias"],
    ),
    "adam": (
        nn.Adam,
        [
            "beta1_power",
            "beta2_power",
            "moment1.a.weight",
            "moment1.a.bias",
            "moment2.a.weight",
            "moment2.a.bias",
        ],
    ),
    "adam weight decay": (
        nn.AdamWeightDecay,
        ["adam_m.a.weight", "adam_m.a.bias", "adam_v.a.weight", "adam_v.a.bias"],
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_names_of_state_parameters(name):
    make, wanted = STATES[name]
    optimizer = make(parameters())
    found = {p.name for p in optimizer.get_parameters()}
    assert found == {"global_step", "learning_rate", "a.weight", "a.bias", *wanted}


# values of bn.gamma and fc.weight after two steps with the gradient 0.1, from 1.0, as MindSpore
# 2.10 printed them
DECAYS = {
    "sgd": (lambda p: nn.SGD(p, 0.1, weight_decay=1.0), 0.98, 0.791),
    "sgd, loss scale": (lambda p: nn.SGD(p, 0.1, weight_decay=1.0, loss_scale=4.0), 0.995, 0.80525),
    "sgd, group": (lambda p: nn.SGD([{"params": p, "weight_decay": 0.5}], 0.1), 0.883, 0.883),
    "momentum": (lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.5), 0.971, 0.829),
    "momentum, group": (
        lambda p: nn.Momentum([{"params": p, "weight_decay": 0.5}], 0.1, 0.9),
        0.829,
        0.829,
    ),
    "momentum, a Cell": (lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=Growing()), 0.971, 0.8932),
    "adagrad": (lambda p: nn.Adagrad(p, weight_decay=0.5, learning_rate=0.1), 0.94098, 0.84815),
    "adam": (lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.5), 0.259, 0.17731),
    "adam, a Cell": (lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=Growing()), 0.259, 0.20857),
}


class Growing(nn.Cell):
    def construct(self, step):
        return step.astype(ms.float32) * 0.5 + 0.1


@pytest.mark.parametrize("name", DECAYS)
def test_weight_decay_exempts_beta_and_gamma_without_groups(name):
    make, gamma, weight = DECAYS[name]
    p = [ms.Parameter(ms.Tensor([1.0]), name=n) for n in ("bn.gamma", "bn.beta", "fc.weight")]
    optimizer = make(p)
    for _ in range(2):
        optimizer(tuple(ms.Tensor([0.1]) for _ in p))
    np.testing.assert_allclose([q.asnumpy()[0] for q in p], [gamma, gamma, weight], atol=2e-5)


def test_weight_decay_as_a_cell():
    class Growing(nn.Cell):
        def construct(self, step):
            return step.astype(ms.float32) * 0.5

    p = [ms.Parameter(ms.Tensor([1.0]), name="w")]
    optimizer = nn.Momentum(p, 1.0, 0.0, weight_decay=Growing())
    optimizer((ms.Tensor([0.0]),))
    assert p[0].asnumpy()[0] == 1.0
    optimizer((ms.Tensor([0.0]),))
    assert p[0].asnumpy()[0] == 0.5


def test_float16_weights_keep_their_dtype():
    p = [ms.Parameter(ms.Tensor([1.0], ms.float16), name="w")]
    optimizer = nn.Adam(p, 0.1)
    optimizer((ms.Tensor([1.0], ms.float16),))
    assert p[0].dtype is ms.float16 and optimizer.moment1[0].dtype is ms.float16
    np.testing.assert_allclose(p[0].asnumpy(), [0.9], rtol=1e-3)


def test_learning_rate_can_be_assigned():
    p = [ms.Parameter(ms.Tensor([1.0]), name="w")]
    optimizer = nn.SGD(p, 0.1)
    optimizer.learning_rate.set_data(ms.Tensor(0.5))
    optimizer((ms.Tensor([1.0]),))
    assert p[0].asnumpy()[0] == 0.5
    assert optimizer.get_lr_parameter(p[0]) is optimizer.learning_rate


def test_gradient_centralization():
    p = [ms.Parameter(ms.Tensor([[1.0, 1.0]]), name="w")]
    optimizer = nn.SGD([{"params": p, "grad_centralization": True}], 1.0)
    optimizer((ms.Tensor([[1.0, 3.0]]),))
    assert p[0].asnumpy().tolist() == [[2.0, 0.0]]


def test_user_defined_optimizer():
    class Plain(nn.Optimizer):
        def __init__(self, params, rate):
            super().__init__(rate, params)

        def construct(self, gradients):
            gradients = self.scale_grad(self.decay_weight(self.flatten_gradients(gradients)))
            rate = self.get_lr()
            self.assignadd(self.global_step, 1)
            for p, g in zip(self.parameters, gradients):
                p.set_data(p - rate * g)
            return True

    p = [ms.Parameter(ms.Tensor([1.0]), name="w")]
    Plain(p, 0.5)((ms.Tensor([1.0]),))
    assert p[0].asnumpy()[0] == 0.5


def one() -> list[ms.Parameter]:
    return [ms.Parameter(ms.Tensor([1.0]), name="x")]


ERRORS = {
    "rate a text": (lambda: nn.SGD(one(), "a"), TypeError, "learning_rate='a'"),
    "rate below 0": (lambda: nn.SGD(one(), -1.0), ValueError, "learning_rate=-1.0"),
    "rate 2-d": (lambda: nn.SGD(one(), ms.Tensor([[0.1]])), ValueError, r"\(1, 1\)"),
    "no rates": (lambda: nn.SGD(one(), []), ValueError, "empty learning_rate"),
    "momentum below 0": (lambda: nn.SGD(one(), 0.1, momentum=-1.0), ValueError, "momentum=-1.0"),
    "nesterov": (lambda: nn.SGD(one(), 0.1, nesterov=True), ValueError, "nesterov=True"),
    "no parameters": (lambda: nn.SGD([], 0.1), ValueError, "no parameters"),
    "no Parameter": (lambda: nn.SGD([ms.Tensor([1.0])], 0.1), TypeError, "Tensor among"),
    "decay below 0": (
        lambda: nn.SGD(one(), 0.1, weight_decay=-1.0),
        ValueError,
        "weight_decay=-1.0",
    ),
    "scale below 0": (lambda: nn.SGD(one(), 0.1, loss_scale=-1.0), ValueError, "loss_scale=-1.0"),
    "beta of 1": (lambda: nn.Adam(one(), 0.1, beta1=1.0), ValueError, "beta1=1.0"),
    "one twice": (lambda: nn.SGD(one() + one(), 0.1), ValueError, "'x'"),
    "unknown key": (lambda: nn.SGD([{"parms": one()}], 0.1), KeyError, "parms"),
    "too many gradients": (
        lambda: nn.SGD(one(), 0.1)((ms.Tensor([1.0]), ms.Tensor([1.0]))),
        ValueError,
        "2 gradients for 1",
    ),
    "gradient that is no Tensor": (
        lambda: nn.SGD(one(), 0.1)((1.0,)),
        TypeError,
        "float as the gradient of 'x'",
    ),
    "gradient of another shape": (
        lambda: nn.SGD(one(), 0.1)((ms.Tensor([1.0, 2.0]),)),
        ValueError,
        r"\(2,\) for 'x' of shape \(1,\)",
    ),
    "order without all": (
        lambda: nn.SGD([{"params": one()}, {"order_params": one()}], 0.1),
        ValueError,
        "order_params",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_optimizers(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()
