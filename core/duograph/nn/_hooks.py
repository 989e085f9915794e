"""Hooks of Cells (network layers): registering and removing them, and calling a Cell with hooks.

`Cell` registers hooks here and `_calls` runs them. A forward hook is plain Python around
`construct`. A backward hook needs the gradients, so the inputs and outputs of the Cell pass
through identity functions whose gradient rule calls the hooks.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..autodiff.custom import custom_gradient
from ..errors import ArgumentError
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..tracebacks import defined_at

if TYPE_CHECKING:
    from .cell import Cell

__all__ = [
    "HookHandle",
    "add_hook",
    "call_hook",
    "call_with_bprop",
    "call_with_hooks",
    "check_hook",
]

_numbers = itertools.count()
Hooks: TypeAlias = "dict[int, Any]"  # registered functions, some paired with flags
Values: TypeAlias = "tuple[object, ...]"  # arguments or results of a Cell
# How hooks are registered and called, for messages.
PRE = "register_forward_pre_hook: hook(cell, inputs)"
PRE_KW = "register_forward_pre_hook: hook(cell, inputs, kwargs)"
FORWARD = "register_forward_hook: hook(cell, inputs, output)"
FORWARD_KW = "register_forward_hook: hook(cell, inputs, kwargs, output)"
BACKWARD = "register_backward_hook: hook(cell, grad_input, grad_output)"
BACKWARD_PRE = "register_backward_pre_hook: hook(cell, grad_output)"


class HookHandle:
    """Handle of a hook registered on a Cell; `remove()` unregisters the hook.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.ReLU()
        >>> handle = net.register_forward_hook(lambda cell, inputs, output: output + 1)
        >>> print(net(ms.Tensor([-1.0, 2.0])))
        [1. 3.]
        >>> handle.remove()
        >>> print(net(ms.Tensor([-1.0, 2.0])))
        [0. 2.]
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.handle_id = next(_numbers)

    def remove(self) -> None:
        """Unregister the hook of a Cell; a second call does nothing."""
        runtime_state.cells_version += 1
        self._hooks.pop(self.handle_id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def add_hook(hooks: Hooks, entry: object, prepend: bool = False) -> HookHandle:
    """Add a hook to the dictionary `hooks` of a Cell, at the front if `prepend` is set.

    `entry` is the hook function, or, for forward hooks, the pair (function, whether it also takes
    the keyword arguments of the call). Returns the handle that removes the hook again.
    """
    handle = HookHandle(hooks)
    runtime_state.cells_version += 1
    if prepend:
        rest = dict(hooks)
        hooks.clear()
        hooks[handle.handle_id] = entry
        hooks.update(rest)
    else:
        hooks[handle.handle_id] = entry
    return handle


def _as_tuple(value: object) -> Values:
    return value if isinstance(value, tuple) else (value,)


def _intercept_cotangents(values: Values, rule: Callable[[Values], Values]) -> Values:
    """Return `values` unchanged; in the backward pass, `rule` replaces their gradients.

    `rule` gets the tuple of the gradients of the Tensors among the values, and returns as many.
    """
    positions = [i for i, t in enumerate(values) if isinstance(t, Tensor)]
    if not positions:
        return values
    tensors = tuple(values[i] for i in positions)

    def bprop(*args: object) -> Values:
        return rule(_as_tuple(args[-1]))

    passed = custom_gradient(lambda *xs: xs, bprop, tensors, "hook")
    found = list(values)
    for i, t in zip(positions, passed, strict=True):
        found[i] = t
    return tuple(found)


def call_hook(hook: Callable[..., Any], form: str, *args: Any) -> Any:
    """Call a hook of a Cell; `form` says how, "register_forward_hook: hook(cell, inputs)".

    Raises:
        ArgumentError: the hook takes another number of arguments.
    """
    try:
        return hook(*args)
    except TypeError as error:
        check_hook(hook, form, args, error)
        raise


def check_hook(hook: object, form: str, args: Sequence[Any], error: TypeError) -> None:
    """Raise ArgumentError from `error` if a hook cannot be called with the arguments `args`.

    `error` is the TypeError that the call raised. `form` says how such hooks are called, for the
    message: "register_forward_hook: hook(cell, inputs)". If the hook does take `args`, the function
    returns, and the caller raises `error`.
    """
    if not callable(hook):
        return
    try:
        inspect.signature(hook).bind(*args)
    except (TypeError, ValueError):
        owner, _, call = form.partition(": ")
        name = getattr(hook, "__name__", type(hook).__name__)
        raise ArgumentError(
            f"{owner}: got the hook {name!r}{defined_at(hook)}, which does not take "
            f"{len(args)} arguments; wanted a function that is called as {call}"
        ) from error


def call_with_hooks(
    cell: Cell, args: Values, kwargs: dict[str, object], run: Callable[..., object]
) -> object:
    """Run the Cell's forward pre-hooks, then `run`, then its forward hooks; return the output.

    Backward hooks are attached to the inputs and the output, and run in the backward pass. If `run`
    raises, the forward hooks with `always_call` run with None as the output.
    """
    for hook, with_kwargs in list(cell._forward_pre_hooks.values()):
        if with_kwargs:
            changed = call_hook(hook, PRE_KW, cell, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        else:
            changed = call_hook(hook, PRE, cell, args)
            if changed is not None:
                args = _as_tuple(changed)
    grad_output: Values | None = None
    if cell._backward_hooks:

        def input_rule(douts: Values) -> Values:
            for hook in list(cell._backward_hooks.values()):
                changed = call_hook(hook, BACKWARD, cell, douts, grad_output)
                if changed is not None:
                    douts = _as_tuple(changed)
            return douts

        args = _intercept_cotangents(args, input_rule)
    if cell._forward_hooks_always:
        try:
            output = run(*args, **kwargs)
        except Exception:
            _run_forward_hooks(cell, args, kwargs, None, only_always=True)
            raise
    else:
        output = run(*args, **kwargs)
    output = _run_forward_hooks(cell, args, kwargs, output)
    if cell._backward_hooks or cell._backward_pre_hooks:
        single = not isinstance(output, tuple)

        def output_rule(douts: Values) -> Values:
            nonlocal grad_output  # the backward hooks, which run later, receive it
            for hook in list(cell._backward_pre_hooks.values()):
                changed = call_hook(hook, BACKWARD_PRE, cell, douts)
                if changed is not None:
                    douts = _as_tuple(changed)
            grad_output = douts
            return douts

        passed = _intercept_cotangents(_as_tuple(output), output_rule)
        output = passed[0] if single else passed
    return output


def _run_forward_hooks(
    cell: Cell, args: Values, kwargs: dict[str, object], output: object, only_always: bool = False
) -> object:
    """Run the forward hooks of a Cell on its output; return the output, as the hooks changed it.

    With `only_always`, run only those registered with `always_call`.
    """
    for key, (hook, with_kwargs) in list(cell._forward_hooks.items()):
        if only_always and key not in cell._forward_hooks_always:
            continue
        if with_kwargs:
            changed = call_hook(hook, FORWARD_KW, cell, args, kwargs, output)
        else:
            changed = call_hook(hook, FORWARD, cell, args, output)
        if changed is not None:
            output = changed
    return output


def call_with_bprop(cell: Cell, args: Values, kwargs: dict[str, object]) -> object:
    """Run a Cell's `construct` without recording it for differentiation; return its output.

    In the backward pass, the Cell's own method `bprop` computes the gradients of `args`.
    """
    bprop: Callable[..., object] = cell.bprop  # type: ignore[attr-defined]  # the caller checked it
    return custom_gradient(
        lambda *xs: cell.construct(*xs, **kwargs),
        bprop,
        args,
        type(cell).__name__,
        bprop.__func__ if isinstance(bprop, types.MethodType) else bprop,
    )
