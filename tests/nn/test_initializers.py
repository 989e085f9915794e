"""Tests of initial values: statistics, dependence on the seed, errors."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn
from duograph.common import initializer as I
from duograph.common.initializer import initializer

SHAPE = (60, 20, 3, 3)
FAN_IN, FAN_OUT = 180, 540
# initializer: (standard deviation, largest absolute value or None)
RANDOM = {
    "Normal": (I.Normal(), 0.01, None),
    "Normal moved": (I.Normal(0.5, 3.0), 0.5, None),
    "TruncatedNormal": (I.TruncatedNormal(1.0, 0.0, -2.0, 2.0), 0.8796, 2.0),
    "Uniform": (I.Uniform(), 0.07 / 3**0.5, 0.07),
    "XavierUniform": (
        I.XavierUniform(),
        (2 / (FAN_IN + FAN_OUT)) ** 0.5,
        (6 / (FAN_IN + FAN_OUT)) ** 0.5,
    ),
    "XavierNormal": (I.XavierNormal(2.0), 2 * (2 / (FAN_IN + FAN_OUT)) ** 0.5, None),
    "HeUniform": (I.HeUniform(), (2 / FAN_IN) ** 0.5, (6 / FAN_IN) ** 0.5),
    "HeUniform sqrt 5": (I.HeUniform(5**0.5), (1 / 3 / FAN_IN) ** 0.5, (1 / FAN_IN) ** 0.5),
    "HeNormal out": (I.HeNormal(mode="fan_out", nonlinearity="relu"), (2 / FAN_OUT) ** 0.5, None),
    "VarianceScaling": (I.VarianceScaling(), (1 / FAN_IN) ** 0.5, 2 / 0.8796 * (1 / FAN_IN) ** 0.5),
    "VarianceScaling uniform": (
        I.VarianceScaling(2.0, "fan_avg", "uniform"),
        (4 / (FAN_IN + FAN_OUT)) ** 0.5,
        None,
    ),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_values(name):
    """J16: Initializers by string and class"""
    init, deviation, bound = RANDOM[name]
    ms.set_seed(0)
    found = initializer(init, SHAPE).asnumpy()
    assert found.dtype == np.float32
    assert found.std() == pytest.approx(deviation, rel=0.03)
    if bound is not None:
        assert np.abs(found).max() <= bound * 1.001


CONSTANT = {
    "zeros": ("zeros", (2,), [0, 0]),
    "ones": ("ones", 2, [1, 1]),
    "number": (0.5, [2], [0.5, 0.5]),
    "constant": (I.Constant(3), (2,), [3, 3]),
    "identity": ("identity", (2, 3), [[1, 0, 0], [0, 1, 0]]),
    "dirac": (I.Dirac(2), (4, 2, 3), [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]] * 2),
    "Tensor": (Tensor([1.0, 2.0]), (2,), [1, 2]),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_values(name):
    """J16: Initializers by string and class"""
    init, shape, wanted = CONSTANT[name]
    assert initializer(init, shape).asnumpy().tolist() == wanted


def test_orthogonal_and_sparse():
    for shape in ((6, 4), (4, 6)):
        m = initializer(I.Orthogonal(2.0), shape).asnumpy()
        product = m.T @ m if shape[0] > shape[1] else m @ m.T
        np.testing.assert_allclose(product, 4 * np.eye(4), atol=1e-5)
    assert (initializer(I.Sparse(0.4), (5, 4)).asnumpy() == 0).sum(0).tolist() == [2, 2, 2, 2]


def test_values_depend_on_the_seed_alone():
    def weights(order):
        ms.set_seed(11)
        made = [initializer("normal", (3,)) for _ in range(3)]
        for i in order:
            made[i].asnumpy()
        return [t.asnumpy().tolist() for t in made]

    first = weights([0, 1, 2])
    assert first == weights([2, 0, 1]) and len({tuple(v) for v in first}) == 3
    shared = I.Normal()
    ms.set_seed(11)
    both = nn.Dense(3, 3, weight_init=shared), nn.Dense(3, 3, weight_init=shared)
    assert not np.array_equal(both[0].weight.asnumpy(), both[1].weight.asnumpy())


def test_values_are_created_at_first_use():
    class Counting(I.Initializer):
        calls = 0

        def _initialize(self, arr):
            Counting.calls += 1
            arr[...] = 1

    p = Parameter(initializer(Counting(), (2,)), name="w")
    assert Counting.calls == 0
    assert p.init_data() is p and p.asnumpy().tolist() == [1, 1] and Counting.calls == 1
    assert Tensor(shape=(2,), dtype=ms.float16, init=I.One()).init_data().asnumpy().tolist() == [
        1,
        1,
    ]


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float64, ms.int32], ids=str)
def test_dtypes(dtype):
    assert initializer("ones", (2,), dtype).dtype is dtype


ERRORS = {
    "unknown name": (lambda: initializer("hhh", (2,)), ValueError, "init='hhh'"),
    "shape of the Tensor": (lambda: initializer(Tensor([1.0, 2.0]), (3,)), ValueError, r"\(2,\)"),
    "no shape": (lambda: initializer("ones"), ValueError, "no shape"),
    "empty": (lambda: initializer("normal", (0,)), ValueError, r"shape=\(0,\)"),
    "negative": (lambda: initializer("ones", (-1,)), ValueError, r"shape=\(-1,\)"),
    "no initializer": (lambda: initializer(object(), (1,)), TypeError, "object"),
    "identity, 3-D": (lambda: initializer("identity", (2, 2, 2)).asnumpy(), ValueError, "two axes"),
    "dirac, 2-D": (lambda: initializer("dirac", (2, 2)).asnumpy(), ValueError, "3, 4 or 5 axes"),
    "mode": (lambda: initializer(I.HeNormal(mode="x"), (2, 2)).asnumpy(), ValueError, "mode='x'"),
    "gain": (
        lambda: initializer(I.HeNormal(nonlinearity="x"), (2, 2)).asnumpy(),
        ValueError,
        "nonlinearity='x'",
    ),
    "distribution": (lambda: I.VarianceScaling(distribution="x"), ValueError, "distribution='x'"),
    "bounds": (
        lambda: initializer(I.TruncatedNormal(0.01, 0, 5, 6), (2,)).asnumpy(),
        ValueError,
        "bounds",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_initializers(name):
    call, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        call()
