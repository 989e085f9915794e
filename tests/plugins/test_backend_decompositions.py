"""Decompositions of one backend take the place of the ops' own where it has no kernel."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.backend import registry
from duograph.backend.protocol import BackendSpec
from duograph.errors import BackendError, BackendUnavailable
from duograph_reference.backend import Reference

NAME = "Decomposing"
MODES = (None, "O0", "O1", "O2")
LACKS = ("softmax", "sort", "gelu_erf", "dense")


class Lacking(Reference):
    """The reference backend without some kernels."""

    name = NAME
    host_fallback = "off"
    lacks = LACKS

    def prepare(self, op, types, attributes, device_id):
        return None if op.name in self.lacks else super().prepare(op, types, attributes, device_id)


class Compiling(Lacking):
    """The same as a backend that compiles: regions for which it has no kernel."""

    def compiles(self, device_id):
        return None

    def compile(self, regions, device_id):
        return ["its ops run one by one"] * len(regions)


@pytest.fixture(params=[Lacking, Compiling])
def device(request, restored):
    """Return a function that registers a backend with decompositions and makes it the target."""

    def make(rules, lacks=LACKS):
        facts = {"decompositions": rules, "lacks": lacks}
        made = type("Made", (request.param,), facts)
        registry.register(BackendSpec(NAME, made, priority=None))
        ms.set_context(device_target=NAME)

    yield make
    ms.set_context(device_target="CPU", debug=False)
    registry.unregister(NAME)


def run(function, level, *operands):
    function = function if level is None else ms.jit(function, jit_level=level)
    return function(*[ms.Tensor(x) for x in operands]).asnumpy()


X = np.array([[3.0, -1.0, 2.0], [0.5, 0.25, -4.0]], np.float32)


def sevens(x, *more, **attributes):
    return ops.zeros_like(x) + 7


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("name", ["softmax", "gelu_erf", "dense"])
def test_it_takes_the_place_of_the_own_one(device, name, level):
    programs = {
        "softmax": lambda x: ops.softmax(x * 2) + 1,
        "gelu_erf": lambda x: ops.gelu(x * 2) + 1,
        "dense": lambda x: ops.dense(x, x[:, :] * 1)[:, :2] + 1,
    }
    rules = {"dense": lambda x, w, b=None: ops.zeros((2, 2)) + 7}
    device({name: rules.get(name, sevens)})
    np.testing.assert_array_equal(
        run(programs[name], level, X), np.full_like(X, 8)[:, : 2 + (name != "dense")]
    )


@pytest.mark.parametrize("level", MODES)
def test_it_serves_an_op_without_one(device, level):
    """`exp` is a primitive without a decomposition."""
    seen = []

    def exp(x):
        seen.append(x.dtype)
        return x * 2

    device({"exp": exp}, ("exp",))
    np.testing.assert_array_equal(run(lambda x: ops.exp(x) + 1, level, X), X * 2 + 1)
    assert seen == [ms.float32]  # traced once


@pytest.mark.parametrize("level", MODES)
def test_a_kernel_is_preferred(device, level):
    device({"tanh": sevens})
    np.testing.assert_allclose(run(lambda x: ops.tanh(x), level, X), np.tanh(X), 1e-6)


@pytest.mark.parametrize("level", MODES)
def test_not_implemented_leaves_the_op_to_its_own(device, level):
    def softmax(x, *, axis):
        return sevens(x) if x.dtype is ms.float16 else NotImplemented

    device({"softmax": softmax})
    want = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    np.testing.assert_allclose(run(lambda x: ops.softmax(x), level, X), want, 1e-6)
    got = run(lambda x: ops.softmax(x), level, X.astype(np.float16))
    np.testing.assert_array_equal(got, np.full_like(X, 7))


@pytest.mark.parametrize("level", MODES)
def test_declining_an_op_without_another_is_unsupported(device, level):
    device({"exp": lambda x: NotImplemented}, ("exp",))
    with pytest.raises(ms.errors.UnsupportedOpError, match="exp"):
        run(lambda x: ops.exp(x) + 1, level, X)


FAULTY = {
    "raises": (lambda x, **attributes: 1 / 0, "raised ZeroDivisionError"),
    "another type": (
        lambda x, **attributes: x.sum(),
        r"returned float32\[\]; wanted float32\[2, 3\]",
    ),
    "two results": (lambda x, **attributes: (x, x), "wanted float32"),
    "nothing": (lambda x, **attributes: None, "raised"),
}


@pytest.mark.parametrize("level", MODES)
@pytest.mark.parametrize("what", FAULTY)
def test_a_faulty_one_is_named(device, what, level):
    rule, said = FAULTY[what]
    device({"softmax": rule})
    with pytest.raises(BackendError, match=said) as error:
        run(lambda x: ops.softmax(x * 2) + 1, level, X)
    assert "its decomposition of the Decomposing backend" in str(error.value)


MALFORMED = {
    "a number": 3,
    "no function": {"softmax": 3},
    "no name": {3: sevens},
    "no op": {"softmaxx": sevens},
    "a list": [("softmax", sevens)],
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_table_disables_the_backend_alone(device, what):
    with pytest.raises(BackendUnavailable, match="decompositions"):
        device(MALFORMED[what])
    ms.set_context(device_target="CPU")
    assert float(ops.exp(ms.Tensor(0.0))) == 1
