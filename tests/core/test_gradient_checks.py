"""Gradients compared with finite differences: `check_gradient`, and registered rules in debug mode.

O05: a rule is checked for arity, shape, dtype and against finite differences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, nn, ops
from duograph.autodiff.bprop_registry import binop_grad_common
from duograph.errors import GradientError
from duograph.op import OPS, op
from duograph.op_tables import rules_changed
from duograph.ops import bprop_getters
from duograph.ops.extensions import withdraw

MODES: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "compiled": ms.jit}
A, B = (np.array(v, np.float32) for v in ([1.0, -2.0, 3.0], [3.0, 4.0, 5.0]))


class Ruled(nn.Cell):
    """A Cell that computes x * x and whose gradient is what a given function returns."""

    def __init__(self, rule: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.rule = rule

    def construct(self, x: Tensor) -> Tensor:
        return x * x

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (self.rule(x, dout),)


# ---- check_gradient ----


def dropped(x: Tensor) -> Tensor:
    return ops.dropout(x, p=0.5, training=True)


def branched(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x * x
    return -x


class Pair(NamedTuple):
    """Two Tensors."""

    a: Tensor
    b: Tensor


RIGHT: dict[str, tuple[Callable[..., Any], Any]] = {
    "one input": (ops.sin, Tensor(A)),
    "several": (lambda x, w: ops.tanh(x @ w), (Tensor(np.outer(A, B)), Tensor(np.outer(B, A)))),
    "several results": (lambda x: (x * x, ops.exp(x)), Tensor(A)),
    "other arguments": (lambda x, i, k: x[i] * k, (Tensor(A), Tensor([0, 2]), 3.0)),
    "complex": (lambda z: z * z * ops.conj(z), Tensor(np.array([1 + 2j, 0.5 - 1j], np.complex64))),
    "a kink": (ops.relu, Tensor([0.0, 1.0, -1.0])),
    "float32 inside": (lambda x: (x.astype(ms.float32) * x.astype(ms.float32)).sum(), Tensor(A)),
    "float64 refused": (lambda x: ops.masked_fill(x, x > 0, 0.0), Tensor(A)),
    "random": (dropped, Tensor(A)),
    "a Cell": (nn.Dense(3, 2), Tensor(np.outer(A, B))),
    "a branch": (branched, Tensor(A)),
    "its own rule": (Ruled(lambda x, dout: 2 * x * dout), Tensor(A)),
    "another device": (lambda x: x.move_to("Reference") ** 3, Tensor(A)),
    "a dictionary of results": (lambda x: {"a": [x * x], "b": (ops.exp(x),)}, Tensor(A)),
    "a dictionary": (lambda d: d["x"] * d["y"][0], {"x": Tensor(A), "y": [Tensor(B)]}),
    "a list of one": (lambda x, several: x * several[0], (Tensor(A), [Tensor(B)])),
    "a named tuple": (lambda p, k: p.a * p.b * k, (Pair(Tensor(A), Tensor(B)), 3.0)),
    "numbers in a tuple": (lambda x, axes: ops.sum(x, axes), (Tensor(np.outer(A, B)), (0, 1))),
    "integers inside": (lambda d: d["x"][d["i"]], ({"x": Tensor(A), "i": Tensor([0, 2])},)),
    "no gradient": (lambda n: n * 2, Tensor([1, 2])),
}


@pytest.mark.filterwarnings("ignore:(?s).*runs line by line")
@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_agree(name: str) -> None:
    fn, inputs = RIGHT[name]
    found = ms.check_gradient(fn, inputs)
    assert found, str(found)
    assert found.compared > 0 or name == "no gradient"
    assert ms.check_gradient(fn, inputs, order=1).compared <= found.compared


WRONG: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "a factor": (Ruled(lambda x, dout: 3 * x * dout), Tensor(A), "input 0"),
    "a sign": (Ruled(lambda x, dout: -2 * x * dout), Tensor(A), "input 0"),
    "zero": (lambda x, y: x * ops.stop_gradient(y), (Tensor(A), Tensor(B)), "input 1"),
    "one element": (
        Ruled(lambda x, dout: 2 * x * dout * Tensor([1.0, 1.0, 1.001])),
        Tensor(A),
        r"input 0\): .* at \[2\]",
    ),
    "in a dictionary": (
        lambda x: {"a": Ruled(lambda x, dout: 3 * x * dout)(x)},
        Tensor(A),
        "input 0",
    ),
    "of a nested input": (
        lambda d: d["x"] * ops.stop_gradient(d["y"][0]),
        {"x": Tensor(A), "y": [Tensor(B)]},
        "input 1",
    ),
    "NaN": (Ruled(lambda x, dout: dout * float("nan")), Tensor(A), "nan"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_found(name: str) -> None:
    fn, inputs, message = WRONG[name]
    found = ms.check_gradient(fn, inputs)
    assert not found
    assert (found.order, found.mode in ("eager", "compiled")) == (1, True)
    with pytest.raises(AssertionError, match=f"first derivative.*{message}.*by finite differences"):
        raise AssertionError(str(found))


def test_kinks_have_any_slope_between() -> None:
    for fn in (lambda x: x.max(), ops.relu, ops.abs, lambda x: ops.topk(x, 1)[0]):
        found = ms.check_gradient(fn, Tensor([0.0, 0.0, -1.0]), order=1)
        assert found, str(found)


def test_wrong_second_derivatives_are_found() -> None:
    class Once(nn.Cell):
        """x * x, whose gradient counts as a constant."""

        def construct(self, x: Tensor) -> Tensor:
            return x * x

        def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
            return (ops.stop_gradient(2 * x) * dout,)

    assert ms.check_gradient(Once(), Tensor(A), order=1)
    found = ms.check_gradient(Once(), Tensor(A))
    assert not found
    assert found.order == 2


def test_random_state_is_restored() -> None:
    ms.set_seed(3)
    want = ops.rand(2).asnumpy()
    ms.set_seed(3)
    ms.check_gradient(dropped, Tensor(A))
    np.testing.assert_array_equal(ops.rand(2).asnumpy(), want)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, Tensor(A)), TypeError, "got int; wanted a function or a Cell"),
        ((ops.sin, 3.0), TypeError, "got no Tensor among the inputs"),
        ((ops.sin, Tensor(A), 3), ValueError, "got order=3; wanted 1 or 2"),
        ((ops.sin, [[3.0], {"a": 2}]), TypeError, "got no Tensor among the inputs"),
        ((lambda x: None, Tensor(A)), TypeError, "returned NoneType without a Tensor"),
        ((lambda x: {"a": 3.0}, Tensor(A)), TypeError, "returned dict without a Tensor"),
        ((ops.log, Tensor([0.0])), ValueError, "wanted finite numbers: choose other inputs"),
    ],
)
def test_check_gradient_refuses(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ms.check_gradient(*arguments)


# ---- debug mode ----


@pytest.fixture
def debug() -> Iterator[None]:
    """Fixture: turns debug mode on; restores the gradient rules of three ops afterwards."""
    before = {name: (OPS[name].bprop_rule, OPS[name].own_rule) for name in ("mul", "select", "sin")}
    ms.set_context(debug=True)
    try:
        yield
    finally:
        ms.set_context(debug=False)
        for name, (rule, own) in before.items():
            OPS[name].bprop_rule, OPS[name].own_rule = rule, own
        rules_changed()


def registered(primitive: Any, rule: Callable[..., object]) -> None:
    bprop_getters.register(primitive)(lambda self: rule)


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize("mode", MODES)
def test_wrong_rules_are_refused(mode: str) -> None:
    x, y = Tensor(A), Tensor(B)

    def product(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum()

    gradient = MODES[mode](ms.grad(product, (0, 1)))
    wrong: list[tuple[Callable[..., object], str]] = [
        (lambda x, y, out, dout: (dout * 3, dout * x), "mul: .* operand 'input'"),
        (lambda x, y, out, dout: (dout * y, dout + x), "mul: .* operand 'other'"),
        (lambda x, y, out, dout: (dout * y, -dout * x), "mul: .* operand 'other'"),
    ]
    for rule, message in wrong:
        registered(ops.Mul, rule)
        for _ in range(2):  # not the first time alone
            with pytest.raises(GradientError, match=message + ".*by finite differences"):
                gradient(x, y)
    registered(ops.Mul, lambda x, y, out, dout: binop_grad_common(x, y, dout * y, dout * x))
    by_x, by_y = gradient(x, y)
    np.testing.assert_array_equal(by_x.asnumpy(), B)
    np.testing.assert_array_equal(by_y.asnumpy(), A)


@pytest.mark.usefixtures("debug")
def test_rules_of_other_operands_are_not_accused() -> None:
    """Integers and bools, domains, absent gradients and rules of the framework's ops."""
    registered("sin", lambda x, out, dout: (dout * ops.cos(x),))
    registered("select", lambda c, x, y, out, dout: (None, dout * c, dout * (~c)))
    got = ms.grad(lambda x: ops.select(x > 0, ops.sin(x), x * x).sum())(Tensor(A))
    np.testing.assert_allclose(got.asnumpy(), [np.cos(1.0), -4.0, np.cos(3.0)], rtol=1e-5)
    got = ms.grad(lambda x: ops.log(x).sum() + ops.gather(x, Tensor([1]), 0).sum())(Tensor(B))
    np.testing.assert_allclose(got.asnumpy(), 1 / B + [0, 1, 0], rtol=1e-5)


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize("mode", MODES)
def test_ops_of_others_are_checked(mode: str) -> None:
    """An op that a user or a plugin defines, with attributes and an optional operand."""
    try:

        @op(name=f"scaled_{mode}")
        def scaled(x: Tensor, shift: Tensor | None, by: float):
            out = ops.exp(x) * by
            return out if shift is None else out + shift

        @scaled.bprop
        def _(x, shift, out, dout, by):
            return dout * out, None if shift is None else dout * by

        x, y = Tensor(A), Tensor(B)
        for by, gradient in ((x, lambda a: scaled(a, y, 2.0)), (y, lambda a: scaled(x, a, 2.0))):
            with pytest.raises(GradientError, match=r"scaled_\w+: .* operand 'shift'"):
                MODES[mode](ms.grad(lambda a, f=gradient: f(a).sum()))(by)
        got = MODES[mode](ms.grad(lambda x: scaled(x, None, 2.0).sum()))(x)
        np.testing.assert_allclose(got.asnumpy(), 2 * np.exp(A), rtol=1e-5)
    finally:
        withdraw(__name__)


def test_rules_are_not_checked_without_debug_mode() -> None:
    before = OPS["sin"].bprop_rule, OPS["sin"].own_rule
    try:
        registered("sin", lambda x, out, dout: (dout * 1000,))
        assert ms.grad(ops.sin)(Tensor(1.0)).item() == 1000.0
    finally:
        OPS["sin"].bprop_rule, OPS["sin"].own_rule = before
        rules_changed()


def warned(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in found]


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize("mode", MODES)
def test_wrong_bprops_of_cells_are_named(mode: str) -> None:
    class Straight(nn.Cell):
        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return x * y

        def bprop(self, x: Tensor, y: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
            return (dout * y, dout)

    class Right(nn.Cell):
        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return x * y

        def bprop(self, x: Tensor, y: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, Tensor]:
            return (dout * y, dout * x)

    x, y = Tensor(A), Tensor(B)
    assert warned(lambda: MODES[mode](ms.grad(Right(), (0, 1)))(x, y)) == []
    (said,) = warned(lambda: MODES[mode](ms.grad(Straight(), (0, 1)))(x, y))
    assert said.startswith("Straight: its bprop differs from the derivative by input 1: it gave")


@pytest.mark.usefixtures("debug")
def test_wrong_bprops_of_custom_ops_are_named() -> None:
    def custom(bprop: Callable[..., object]) -> ops.Custom:
        return ops.Custom(lambda x: x * x, lambda s: s, lambda d: d, bprop=bprop)

    x = Tensor(A)
    assert warned(lambda: ms.grad(custom(lambda x, out, dout: (2 * x * dout,)))(x)) == []
    (said,) = warned(lambda: ms.grad(custom(lambda x, out, dout: (x * dout,)))(x))
    assert said.startswith("Custom: its bprop differs from the derivative by input 0")
