"""Initial values by name and by class: shapes, distributions, determinism."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import nn
from duograph.common import initializer as init

SHAPE = (60, 50)
# name, class -> wanted mean, standard deviation (None: not random), largest absolute value
KINDS = {
    "zeros": (init.Zero(), 0, 0, 0),
    "ones": (init.One(), 1, 0, 1),
    "normal": (init.Normal(), 0, 0.01, 0.06),
    "uniform": (init.Uniform(), 0, 0.07 / 3**0.5, 0.07),
    "XavierUniform": (init.XavierUniform(), 0, (2 / 110) ** 0.5, (6 / 110) ** 0.5),
    "HeUniform": (init.HeUniform(), 0, (2 / 50) ** 0.5, (6 / 50) ** 0.5),
    "TruncatedNormal": (init.TruncatedNormal(), 0, 0.01, 0.05),
}


@pytest.mark.parametrize("name", KINDS)
def test_by_name_and_class(name: str) -> None:
    """J16: Initializers by string and class"""
    made, mean, deviation, largest = KINDS[name]
    for given in (name, name.lower(), made):
        x = init.initializer(given, SHAPE, ms.float32).asnumpy()
        assert x.shape == SHAPE
        assert x.dtype == np.float32
        np.testing.assert_allclose(x.mean(), mean, atol=max(deviation, 1e-7) / 10)
        np.testing.assert_allclose(x.std(), deviation, rtol=0.05, atol=1e-7)
        assert np.abs(x).max() <= largest * (1 + 1e-6)


def test_seeded() -> None:
    def weights() -> np.ndarray:
        ms.set_seed(5)
        return nn.Dense(4, 3, weight_init="normal", bias_init=init.Uniform(1)).weight.asnumpy()

    np.testing.assert_array_equal(weights(), weights())


def test_layers_take_both() -> None:
    """J02: `nn.Dense(in, out, weight_init, bias_init, has_bias, activation)`"""
    layer = nn.Dense(3, 2, "ones", init.Constant(5), True, "relu")
    assert layer.weight.asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert layer(ms.Tensor([[1.0, 2.0, 3.0], [-9.0, 0.0, 0.0]])).asnumpy().tolist() == [
        [11, 11],
        [0, 0],
    ]
    bare = nn.Dense(3, 2, ms.Tensor(np.eye(2, 3), ms.float32), has_bias=False)
    assert not bare.has_bias
    assert bare(ms.Tensor([1.0, 2.0, 3.0])).asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("call", "kind", "pattern"),
    [
        (lambda: init.initializer("nosuch", (2,)), ValueError, "nosuch"),
        (lambda: init.initializer("ones", (-1,)), ValueError, "-1"),
        (lambda: init.initializer(ms.Tensor([1.0]), (2,)), ValueError, r"\(1,\)"),
        (lambda: nn.Dense(3, 2, ms.Tensor([[1.0]])), ValueError, r"\(1, 1\)"),
    ],
)
def test_refused(call, kind: type[Exception], pattern: str) -> None:
    with pytest.raises(kind, match=pattern):
        call()
