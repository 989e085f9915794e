"""Ops with side effects: assignment, ordering, printing and gradient hooks.

Users and optimizers call these. While a function is compiled, an effect must be recorded in the
graph instead of executed, so that each run of the function has it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..autodiff.custom import add_hook, custom_gradient
from ..backend import registry
from ..errors import (
    ArgumentError,
    RefusedError,
    ShapeError,
    UnsupportedSyntaxError,
)
from ..option_checks import check_options
from ..placement import commit
from ..runtime_state import staged_builder
from ..tensor import Tensor
from ..types import broadcast_shapes
from .creation import cast
from .elementwise import add, sub
from .methods import tensor_method
from .movement import identity
from .primitive import Primitive, primitive
from .shape_primitives import broadcast_to

V = TypeVar("V")

__all__ = [
    "assign", "assign_add", "assign_sub", "depend", "print_", "Print", "HookBackward",
    "InsertGradientOf", "Load", "UpdateState",
]  # fmt: skip


# ---- writing -------------------------------------------------------------------------------------


def _written(name: str, variable: object, value: object) -> Tensor:
    """Assign `value`, broadcast and cast, to a Parameter or Tensor; return the new value.

    While a function is compiled, the write is recorded in the graph. `name` is the user's function
    in errors.
    """
    if not isinstance(variable, Tensor):
        raise ArgumentError(
            f"{name}: got {type(variable).__name__} to write to; wanted a Parameter or Tensor"
        )
    if not isinstance(value, Tensor):
        value = Tensor(value)
    if value.shape != variable.shape:
        if broadcast_shapes(value.shape, variable.shape) != variable.shape:
            raise ShapeError(
                f"{name}: got a value of shape {value.shape} for a variable of shape "
                f"{variable.shape}; "
                f"wanted that shape, or one that broadcasts to it"
            )
        value = broadcast_to(value, variable.shape)
    value = cast(value, variable.dtype)
    builder = staged_builder()
    if builder is not None:
        builder.write_state(variable, value)
        return variable._after_write()
    device = variable._type.device or registry.current_device()
    if value._type.device is None:
        value = Tensor(value)  # a private copy: the caller may change the host data later
        commit(value, device)
    variable._rebind(value)
    return variable._after_write()


@primitive("Assign()(variable, value)")
def assign(variable: Tensor, value: Tensor | int | float | Sequence[float]) -> Tensor:
    """Write `value` to a Parameter or Tensor (`mindspore.ops.assign`).

    Args:
        variable: Parameter or Tensor to write to; it keeps its shape and dtype.
        value: Tensor or number of the same shape, or one that broadcasts to it.

    Returns:
        The new value of a Parameter as a Tensor, which later writes do not change; a Tensor that
        is not a Parameter is returned itself.

    Raises:
        ValueError: another shape.
        TypeError: `variable` is not a Tensor.

    Examples:
        >>> import duograph as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> print(ms.ops.assign(w, ms.Tensor([2.0])))
        [2.]
    """
    return _written("assign", variable, value)


@primitive("AssignAdd()(variable, value)")
def assign_add(variable: Tensor, value: Tensor | int | float) -> Tensor:
    """Add `value` to a Parameter or Tensor in place (`mindspore.ops.assign_add`).

    Args:
        variable: Parameter or Tensor to write to; it keeps its shape and dtype.
        value: Tensor or number of the same shape, or one that broadcasts to it.

    Returns:
        The new value of a Parameter as a Tensor, which later writes do not change; a Tensor that
        is not a Parameter is returned itself.

    Raises:
        ValueError: another shape.
        TypeError: `variable` is not a Tensor.

    Examples:
        >>> import duograph as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> print(ms.ops.assign_add(w, 2))
        [3.]
    """
    return _written("assign_add", variable, _number_like(variable, value, "assign_add", 1))


@primitive("AssignSub()(variable, value)")
def assign_sub(variable: Tensor, value: Tensor | int | float) -> Tensor:
    """Subtract `value` from a Parameter or Tensor in place (`mindspore.ops.assign_sub`).

    Args:
        variable: Parameter or Tensor to write to; it keeps its shape and dtype.
        value: Tensor or number of the same shape, or one that broadcasts to it.

    Returns:
        The new value of a Parameter as a Tensor, which later writes do not change; a Tensor that
        is not a Parameter is returned itself.

    Raises:
        ValueError: another shape.
        TypeError: `variable` is not a Tensor.

    Examples:
        >>> import duograph as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> print(ms.ops.assign_sub(w, 2))
        [-1.]
    """
    return _written("assign_sub", variable, _number_like(variable, value, "assign_sub", -1))


def _number_like(variable: object, value: Tensor | int | float, name: str, sign: int) -> Tensor:
    if not isinstance(variable, Tensor):
        raise ArgumentError(
            f"{name}: got {type(variable).__name__} to write to; wanted a Parameter or Tensor"
        )
    return add(variable, value) if sign > 0 else sub(variable, value)


# ---- order and output ----------------------------------------------------------------------------


@primitive("Depend()(value, expr)")
def depend(value: V, expr: object) -> V:
    """Return `value`; the side effects of `expr` come before (`mindspore.ops.depend`).

    The arguments are evaluated first, and compiled functions keep the order of side effects, so
    nothing else is done.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.depend(ms.Tensor(1), ms.Tensor(2)).item()
        1
    """
    del expr
    return value


def print_(*input_x: object) -> None:
    """Print tensors and other values, one per line (`mindspore.ops.print_`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.print_("x:", ms.Tensor(1))
        x:
        Tensor(shape=[], dtype=Int64, value= 1)
    """
    builder = staged_builder()
    if builder is not None:
        builder.evaluation.print_later(input_x)
        return
    for x in input_x:
        text = repr(x) if isinstance(x, Tensor) else str(x)
        sys.stdout.write(text + "\n")


# ---- primitive classes ---------------------------------------------------------------------------


class Load(Primitive):
    """Read the current value of a Parameter: `Load()(variable, state)`."""

    def __call__(self, variable: Tensor, state: object = None) -> Tensor:
        """Return the current value of a Parameter as a Tensor; `state` is ignored."""
        return identity(variable)


class UpdateState(Primitive):
    """Primitive without effect: `UpdateState()(state, *exprs)`.

    MindSpore's graphs need it to order side effects; here compiled functions keep their order.
    """

    def __call__(self, state: object, *exprs: object) -> object:
        """Return `state` unchanged; `exprs` are ignored."""
        return state


class Print(Primitive):
    """Primitive form of `print_`: `Print()("x:", x)`."""

    def __call__(self, *args: object) -> None:
        """Print the arguments."""
        print_(*args)


# ---- hooks ---------------------------------------------------------------------------------------


def _hooked(args: tuple[object, ...], on_gradient: Callable[..., object], name: str) -> Any:
    """Return the arguments unchanged, but call `on_gradient` in the backward pass.

    `on_gradient` gets the tuple of the cotangents of the results and returns the gradients of
    `args`. `name` is the name of the recorded op.
    """

    def forward(*values: object) -> object:
        return values[0] if len(values) == 1 else tuple(values)

    def bprop(*found: object) -> object:
        dout = found[-1]
        return on_gradient(dout if isinstance(dout, tuple) else (dout,))

    return custom_gradient(forward, bprop, args, name)


def refuse_when_compiled(name: str) -> None:
    """Raise RefusedError while a function is being compiled, since hooks run eagerly only.

    `name` is the user's function in the message.
    """
    if staged_builder() is not None:
        raise RefusedError(
            f"{name}: got a hook inside jit; a compiled function has no place where a hook could "
            "run. Remove it, or "
            f"run the function line by line"
        )


class HookBackward(Primitive):
    """Identity whose gradient is passed to a function (`mindspore.ops.HookBackward`).

    Args:
        hook_fn: function of the tuple of gradients. If it returns None, they are unchanged; a
            Tensor or tuple replaces them.
        cell_id: without effect.

    Raises:
        TypeError: `hook_fn` is not a function.

    Examples:
        >>> import duograph as ms
        >>> hook = ms.ops.HookBackward(lambda grads: grads[0] * 10)
        >>> ms.grad(lambda x: hook(x) * 2)(ms.Tensor(1.0)).item()
        20.0
    """

    def __init__(self, hook_fn: Callable[..., object], cell_id: str = "") -> None:
        super().__init__()
        if not callable(hook_fn):
            raise ArgumentError(
                f"HookBackward: got {type(hook_fn).__name__}; wanted a function of the gradients"
            )
        check_options("ops.HookBackward", cell_id=cell_id)
        self.hook_fn = hook_fn

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return `inputs` unchanged; the backward pass calls the hook with their gradients.

        The hook is the function given to the constructor, and receives the gradients as one tuple.
        What it returns replaces the gradients, unless it returns None.

        Raises:
            RefusedError: a function is being compiled; hooks run in eager mode only.
        """
        refuse_when_compiled("HookBackward")

        def run(douts: tuple[object, ...]) -> tuple[object, ...]:
            found = self.hook_fn(douts)
            if found is None:
                return douts
            return tuple(found) if isinstance(found, (tuple, list)) else (found,)

        return _hooked(inputs, run, "HookBackward")


class InsertGradientOf(Primitive):
    """Identity whose gradient goes through a function (`mindspore.ops.InsertGradientOf`).

    Args:
        f: function of the gradient that returns another gradient of the same shape.

    Examples:
        >>> import duograph as ms
        >>> clip = ms.ops.InsertGradientOf(lambda dx: ms.ops.clamp(dx, -1.0, 1.0))
        >>> ms.grad(lambda x: clip(x) * 5)(ms.Tensor(1.0)).item()
        1.0
    """

    def __init__(self, f: Callable[..., object]) -> None:
        super().__init__()
        if not callable(f):
            raise ArgumentError(
                f"InsertGradientOf: got {type(f).__name__}; wanted a function of the gradient"
            )
        self.f = f

    def __call__(self, x: Tensor) -> Tensor:
        """Return `x` unchanged; in the backward pass, replace its gradient g by ``f(g)``.

        f is the function given to the constructor.
        """
        if staged_builder() is not None:
            raise UnsupportedSyntaxError(
                "InsertGradientOf: got a function of the gradient inside jit, which Python calls",
                construct="InsertGradientOf",
                remedy="Give a Cell a bprop, or use LAX, which runs line by line",
            )
        return _hooked((x,), lambda douts: (self.f(douts[0]),), "InsertGradientOf")


@tensor_method("register_hook")
def register_hook(self: Tensor, hook: Callable[..., object]) -> Any:
    """Call `hook(gradient)` when this tensor's gradient is complete
    (`mindspore.Tensor.register_hook`).

    Args:
        hook: function of the gradient. If it returns a Tensor, that replaces the gradient.

    Returns:
        A handle, whose method `remove()` removes the hook.

    Raises:
        TypeError: `hook` is not a function.

    Examples:
        >>> import duograph as ms
        >>> def f(x):
        ...     y = x * 2
        ...     y.register_hook(lambda g: g * 10)
        ...     return y
        >>> ms.grad(f)(ms.Tensor(1.0)).item()
        20.0
    """
    return add_hook(self, hook)
