"""Every way by which a value leaves the tape or the graph: the gradient follows or is refused.

A gradient is zero without an error only by definition: `stop_gradient`, casts to integers,
piecewise constant ops, and values that Python or NumPy has read. Each program runs eagerly, inside
`jit`, and with the gradient taken of a compiled function.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, numpy, ops
from duograph.conformance.cases import all_cases
from duograph.conformance.check import arrays_of, substitute
from duograph.dtype import float32, float64
from duograph.errors import DeviceError, GradientError
from duograph.op import OPS

OTHER = "Reference"
VALUES = np.array([1.0, 2.0, 3.0], np.float32)
MODES: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: ms.grad(f),
    "inside jit": lambda f: ms.jit(ms.grad(f)),
    "of a jit function": lambda f: ms.grad(ms.jit(f)),
}
SQUARE = (2.0, 4.0, 6.0)  # the gradient of (x * x).sum()
NOTHING = (0.0, 0.0, 0.0)


def x_on(device: str = "CPU") -> Tensor:
    return Tensor(VALUES).move_to(device)


def through_list(t: Tensor) -> Tensor:
    held: list[Tensor] = []
    held.append(t * t)
    return held[0].sum()


def through_attribute(t: Tensor) -> Tensor:
    class Held:
        pass

    held = Held()
    held.value = t * t  # type: ignore[attr-defined]
    return held.value.sum()  # type: ignore[attr-defined]


def written(write: Callable[[Tensor, Tensor], object]) -> Callable[[Tensor], Tensor]:
    def run(t: Tensor) -> Tensor:
        target = ops.zeros(3)
        write(target, t * t)
        return target.sum()

    return run


def copied_in(target: Tensor, value: Tensor) -> None:
    target[:] = value


# ---- paths that carry the gradient ----

CARRIED: dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, ...]]] = {
    "move_to its own device": (lambda t: (t * t).move_to("CPU").sum(), SQUARE),
    "move_to another": (lambda t: (t * t).move_to(OTHER).sum(), SQUARE),
    "move_to and back": (
        lambda t: ((t * t).move_to(OTHER) * 2).move_to("CPU").sum(), (4.0, 8.0, 12.0)
    ),
    "an input moved": (lambda t: (t.move_to(OTHER) * t.move_to(OTHER)).sum(), SQUARE),
    "both ways joined": (
        lambda t: (t * t).move_to(OTHER).move_to("CPU").sum() + (t * t).sum(), (4.0, 8.0, 12.0)
    ),
    "to(device)": (lambda t: (t * t).to(OTHER).sum(), SQUARE),
    "to(own device)": (lambda t: (t * t).to("CPU").sum(), SQUARE),
    "to(dtype, device)": (lambda t: (t * t).to(ms.float16, device=OTHER).sum(), SQUARE),
    "to(dtype)": (lambda t: (t * t).to(ms.float16).sum(), SQUARE),
    "astype": (lambda t: (t * t).astype(ms.float64).sum(), SQUARE),
    "copy": (lambda t: (t * t).copy().sum(), SQUARE),
    "clone": (lambda t: (t * t).clone().sum(), SQUARE),
    "copy.copy": (lambda t: copy.copy(t * t).sum(), SQUARE),
    "copy.deepcopy": (lambda t: copy.deepcopy(t * t).sum(), SQUARE),
    "Tensor(x)": (lambda t: Tensor(t * t).sum(), SQUARE),
    "Tensor(x, dtype)": (lambda t: Tensor(t * t, ms.float64).sum(), SQUARE),
    "Tensor(x, device)": (lambda t: Tensor(t * t, device="CPU").sum(), SQUARE),
    "Tensor([x, 1])": (lambda t: Tensor([t[0] * t[0], 1.0]).sum(), (2.0, 0.0, 0.0)),
    "Tensor of nested lists": (lambda t: Tensor([[t * t], [t]]).sum(), (3.0, 5.0, 7.0)),
    "ms.tensor": (lambda t: ms.tensor(t * t).sum(), SQUARE),
    "numpy.array": (lambda t: numpy.array(t * t).sum(), SQUARE),
    "numpy.asarray of a list": (lambda t: numpy.asarray([t * t, t]).sum(), (3.0, 5.0, 7.0)),
    "an operand that is a list": (lambda t: (t + [t[0], t[1], 1.0]).sum(), (2.0, 2.0, 1.0)),
    "full": (lambda t: ops.full((2,), t[0]).sum(), (2.0, 0.0, 0.0)),
    "full_like": (lambda t: ops.full_like(t, t[1]).sum(), (0.0, 3.0, 0.0)),
    "fill": (lambda t: ops.fill(ms.float32, (2,), t[2]).sum(), (0.0, 0.0, 2.0)),
    "new_full": (lambda t: t.new_full((2,), t[0]).sum(), (2.0, 0.0, 0.0)),
    "fill_": (lambda t: (t * 1).fill_(t[0]).sum(), (3.0, 0.0, 0.0)),
    "scalar_to_tensor": (lambda t: ops.scalar_to_tensor(t[0] * t[0]), (2.0, 0.0, 0.0)),
    "view of the same dtype": (lambda t: (t * t).view(ms.float32).sum(), SQUARE),
    "set_dtype": (lambda t: (t * t).set_dtype(ms.float16).sum(), SQUARE),
    "contiguous, value, init_data": (
        lambda t: (t * t).contiguous().value().init_data().sum(), SQUARE
    ),
    "iteration": (lambda t: sum(list(t * t), ops.zeros(())), SQUARE),
    "a list": (through_list, SQUARE),
    "an attribute": (through_attribute, SQUARE),
    "x[:] =": (written(copied_in), SQUARE),
    "copy_": (written(lambda target, value: target.copy_(value)), SQUARE),
    "add_": (written(lambda target, value: target.add_(value)), SQUARE),
    "index_fill": (
        lambda t: ops.index_fill(t, 0, Tensor([0]), t[1] * t[1]).sum(), (0.0, 5.0, 1.0)
    ),
    "masked_fill": (lambda t: t.masked_fill(t > 2, t[0]).sum(), (2.0, 1.0, 0.0)),
}  # fmt: skip

# ---- paths whose gradient is zero by definition ----

DETACHED: dict[str, Callable[[Tensor], Tensor]] = {
    "stop_gradient": lambda t: ops.stop_gradient(t * t).sum(),
    "int and back": lambda t: (t * 0.5).astype(ms.int32).astype(ms.float32).sum(),
    "bool and back": lambda t: (t * t).astype(ms.bool_).astype(ms.float32).sum(),
    "Tensor(x, int)": lambda t: Tensor(t * t, ms.int32).astype(ms.float32).sum(),
    "comparison": lambda t: (t > 1).astype(ms.float32).sum(),
    "argmax": lambda t: (t * t).argmax().astype(ms.float32),
    "nonzero": lambda t: ops.nonzero(t * t).astype(ms.float32).sum(),
    "floor": lambda t: (t * t).floor().sum(),
    "round": lambda t: (t * t).round().sum(),
    "sign": lambda t: (t * t).sign().sum(),
    "view of the bits": lambda t: (t * t).view(ms.int32).astype(ms.float32).sum(),
    "asnumpy": lambda t: Tensor((t * t).asnumpy()).sum(),
    "from_numpy": lambda t: ms.from_numpy((t * t).asnumpy()).sum(),
    "dlpack": lambda t: Tensor.from_dlpack(t * t).sum(),
    "NumPy function": lambda t: Tensor(np.sin((t * t).asnumpy())).sum(),
    "an operand that is an array": lambda t: Tensor(VALUES * 1).sum() + np.asarray(t).sum(),
    "item": lambda t: Tensor((t * t).sum().item()),
    "tolist": lambda t: Tensor((t * t).tolist()).sum(),
    "float": lambda t: Tensor([float((t * t).sum())]).sum(),
    "int": lambda t: Tensor([float(int((t * t).sum()))]).sum(),
    "pickle": lambda t: pickle.loads(pickle.dumps(t * t)).sum(),
    "shape": lambda t: Tensor([float(t.shape[0])]).sum(),
}

# ---- paths without a gradient: errors ----

REFUSED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "unique": (lambda t: ops.unique(t * t)[0].sum(), "unique: has no gradient rule"),
    "unique_consecutive": (
        lambda t: ops.unique_consecutive(t * t)[0].sum(), "unique_consecutive: has no gradient"
    ),
    "random_gamma": (
        lambda t: ops.gamma((2,), t * t, Tensor(1.0)).sum(), "random_gamma: has no gradient rule"
    ),
    "elu(alpha=x)": (lambda t: ops.elu(-t, t[0] * 2).sum(), "elu: alpha: .*stop_gradient"),
    "leaky_relu(alpha=x)": (lambda t: ops.leaky_relu(-t, t[0]).sum(), "leaky_relu: alpha"),
    "arange(x)": (lambda t: ops.arange(t[0], 5.0, 1.0).sum(), "only its value is used"),
    "eps": (
        lambda t: ops.layer_norm(t, (3,), Tensor(VALUES), Tensor(VALUES), t[0]).sum(),
        "only its value is used",
    ),
    "view of other floats": (
        lambda t: (t * t).astype(ms.float16).view(ms.bfloat16).sum(), "only its value is used"
    ),
    "Custom": (
        lambda t: ops.Custom(lambda a: a * a, lambda s: s, lambda d: d)(t).sum(), "has no bprop"
    ),
}  # fmt: skip


def quietly(function: Callable[[], Any]) -> Any:
    """Call a function without the warnings that it runs line by line; return its result."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*runs line by line")
        return function()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CARRIED)
def test_gradient_follows(name: str, mode: str) -> None:
    function, want = CARRIED[name]
    got = quietly(lambda: MODES[mode](function)(x_on()))
    assert got.device == "CPU:0"
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DETACHED)
def test_gradient_is_zero_by_definition(name: str, mode: str) -> None:
    def function(t: Tensor) -> Tensor:
        return DETACHED[name](t) + t.sum()

    got = quietly(lambda: MODES[mode](function)(x_on()))
    np.testing.assert_array_equal(got.asnumpy(), np.ones(3))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REFUSED)
def test_lost_gradient_is_refused(name: str, mode: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(GradientError, match=message):
        quietly(lambda: MODES[mode](function)(x_on()))


def test_ops_without_a_rule_run_where_no_gradient_is_asked_for() -> None:
    """Indices, masks and values that the loss does not use need no rule."""

    def function(t: Tensor) -> Tensor:
        values, index = ops.unique(t * t)
        boxes = ops.stack([t, t + 1, t + 2, t + 3, t])
        _, _, keep = OPS["nms_with_mask"](boxes.T, 0.5)
        assert values.shape == (3,)
        return (t * t * keep * (index + 1)).sum()

    np.testing.assert_allclose(ms.grad(function)(x_on()).asnumpy(), [2.0, 8.0, 18.0])


def test_second_derivatives_pass_a_move() -> None:
    def cubes(t: Tensor) -> Tensor:
        return ((t * t).move_to(OTHER).move_to("CPU") * t).sum()

    got = ms.grad(lambda t: ms.grad(cubes)(t).sum())(x_on())
    np.testing.assert_allclose(got.asnumpy(), 6 * VALUES)
    _, tangent = ms.jvp(lambda t: (t * t).move_to(OTHER), x_on(), x_on())
    assert tangent.device == f"{OTHER}:0"
    np.testing.assert_allclose(tangent.asnumpy(), 2 * VALUES * VALUES)


def test_parameters_are_variables_of_their_own() -> None:
    p = Parameter(Tensor(VALUES), name="p")
    for make in (lambda t: Parameter(t), lambda t: Parameter([t[0]]), lambda t: p.clone()):
        with pytest.raises(GradientError, match="Parameter: got a Tensor that is being diff"):
            ms.grad(lambda t, make=make: (make(t) * t).sum(), 0, p)(x_on())
    for read in (lambda: p.value(), lambda: p.data, lambda: p.copy(), lambda: Tensor(p)):
        for mode in (lambda f: f, ms.jit):
            got = mode(ms.grad(lambda t, read=read: (read() * t).sum(), None, p))(x_on())
            np.testing.assert_allclose(got.asnumpy(), VALUES)


@pytest.mark.parametrize("mode", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_writes_of_parameters_carry_the_gradient(mode: Any) -> None:
    q = Parameter(Tensor(VALUES), name="q")
    for write in (
        lambda v: q.set_data(v),
        lambda v: q.assign_value(v),
        lambda v: ops.assign(q, v),
        lambda v: q.set_data(v.astype(ms.float16)),
    ):

        def function(t: Tensor, write: Any = write) -> Tensor:
            write(t * t)
            return (q * 1).sum()

        np.testing.assert_allclose(mode(ms.grad(function))(x_on()).asnumpy(), SQUARE)


class Ruled(nn.Cell):
    """A Cell that computes x * x and whose gradient is what a given function returns."""

    def __init__(self, rule: Callable[[Tensor, Tensor], object]) -> None:
        super().__init__()
        self.rule = rule

    def construct(self, x: Tensor) -> Tensor:
        return x * x

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> object:
        return (self.rule(x, dout),)


@pytest.mark.parametrize("mode", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_gradients_that_a_user_returns_are_checked(mode: Any) -> None:
    accepted = {
        SQUARE: lambda x, dout: 2 * x * dout,
        (2.0,) * 3: lambda x, dout: np.float32(2),
        (3.0,) * 3: lambda x, dout: 3,
        NOTHING: lambda x, dout: None,
    }
    for want, rule in accepted.items():
        np.testing.assert_allclose(mode(ms.grad(Ruled(rule)))(x_on()).asnumpy(), want)
    refused: list[tuple[Callable[..., object], type[Exception], str]] = [
        (lambda x, dout: dout.asnumpy(), GradientError, "returned ndarray for input 0"),
        (lambda x, dout: "no", GradientError, "returned str for input 0"),
        (lambda x, dout: [1.0, 2.0, 3.0], GradientError, "returned list for input 0"),
        (lambda x, dout: dout[:2], GradientError, r"shape \(2,\) for input 0"),
        (lambda x, dout: dout.move_to(OTHER), DeviceError, f"gradient on {OTHER}:0.*move_to"),
    ]
    for rule, error, message in refused:
        with pytest.raises(error, match=message):
            quietly(lambda rule=rule: mode(ms.grad(Ruled(rule)))(x_on()))


class Weighted(nn.Cell):
    """x * w, whose `bprop` has a gradient for x alone."""

    def __init__(self) -> None:
        super().__init__()
        self.w: Any = Parameter(Tensor(VALUES), name="w")

    def construct(self, x: Tensor) -> Tensor:
        return x * self.w

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * self.w,)


@pytest.mark.parametrize("mode", MODES)
def test_a_bprop_that_leaves_out_a_weight_is_refused(mode: str) -> None:
    cell = Weighted()
    x = x_on()
    np.testing.assert_array_equal(
        MODES[mode](lambda t: cell(t).sum())(x).asnumpy(), VALUES
    )  # the weight is not asked for
    both = {
        "eager": lambda f: ms.grad(f, 0, cell.w),
        "inside jit": lambda f: ms.jit(ms.grad(f, 0, cell.w)),
        "of a jit function": lambda f: ms.grad(ms.jit(f), 0, cell.w),
    }
    with pytest.raises(GradientError, match="is not an input, so that its bprop has no gradient"):
        both[mode](lambda t: cell(t).sum())(x)

    def held(t: Tensor) -> Tensor:
        cell.w = t * t
        return cell(t).sum()

    cell = Weighted()
    del cell._params["w"]
    with pytest.raises(GradientError, match="is not an input, so that its bprop has no gradient"):
        quietly(lambda: MODES[mode](held)(x))


@pytest.mark.parametrize("mode", MODES)
def test_a_bprop_is_not_asked_where_its_inputs_are_constants(mode: str) -> None:
    cell = Weighted()
    x = x_on()
    by_weight = {
        "eager": lambda f: ms.grad(f, None, cell.w),
        "inside jit": lambda f: ms.jit(ms.grad(f, None, cell.w)),
        "of a jit function": lambda f: ms.grad(ms.jit(f), None, cell.w),
    }
    got = by_weight[mode](lambda t: (cell(t) * 2).sum())(x)
    np.testing.assert_array_equal(got.asnumpy(), 2 * VALUES)


def test_cotangents_are_on_the_device_of_the_value() -> None:
    _, pull = ms.vjp(lambda t: t * t, x_on())
    with pytest.raises(DeviceError, match=r'on Reference:0 for a value on CPU:0.*move_to\("CPU:0"'):
        pull(x_on(OTHER))

    def hooked(t: Tensor) -> Tensor:
        y = t * 2
        y.register_hook(lambda g: g.move_to(OTHER))
        return y

    with pytest.raises(DeviceError, match="move it with move_to"):
        ms.grad(hooked)(x_on())
    got = ms.grad(lambda t: (t * t).sum())(x_on(OTHER))  # the current device is the CPU
    assert got.device == f"{OTHER}:0"


# ---- every op ----

# Ops of floats whose gradient is zero by definition although their results change smoothly.
BY_DEFINITION = {"stop_gradient", "moving_statistics"}


def test_every_op_has_a_rule_or_refuses() -> None:
    """C32: an op without a rule raises, so `differentiable=False` means that nothing is lost."""
    zero = set()
    for case in all_cases():
        dtype = next((d for d in (float64, float32) if d in case.takes), None)
        if case.op is None or case.op.differentiable or dtype is None:
            continue
        for sample in [s for s in case.made(dtype) if s.kind in ("normal", "odd", "zero_d")][:2]:
            if _changes_smoothly(case.function, sample.args, dict(sample.kwargs)):
                zero.add(case.op.name)
    assert zero <= BY_DEFINITION, zero - BY_DEFINITION


def _changes_smoothly(function: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a small change of some floating operand changes a floating result a little."""
    arrays = [a for a in arrays_of([list(args), kwargs]) if a.dtype.kind == "f" and a.size]

    def results(moved: np.ndarray | None, step: float) -> list[np.ndarray]:
        def tensor(array: np.ndarray) -> Tensor:
            return Tensor(array + step if array is moved else array)

        ms.set_seed(1)
        found = function(*substitute(args, tensor), **substitute(kwargs, tensor))
        several = found if isinstance(found, (tuple, list)) else (found,)
        return [t.asnumpy() for t in several if t.dtype.kind == "f"]

    for array in arrays:
        step = 1e-6 if array.dtype == np.float64 else 1e-3
        for a, b in zip(results(None, 0.0), results(array, step), strict=True):
            moved = np.abs(np.asarray(a, np.float64) - b)
            if np.any((moved > 0) & (moved < step * 1000)):
                return True
    return False
