"""Hooks of Cells: their handles, and the call of a Cell that has some.

A forward hook is plain Python around `construct`. A backward hook needs the cotangents, so the
inputs and outputs of the Cell pass through identities whose gradient rule calls the hooks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..autodiff.custom import custom_gradient
from ..runtime_state import runtime_state
from ..tensor import Tensor

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["HookHandle", "add_hook", "call_with_hooks", "call_with_bprop"]

_numbers = itertools.count()
Hooks = dict[int, Any]


class HookHandle:
    """What registering a hook returns; `remove()` takes the hook out.

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
        """Take the hook out; doing it twice does nothing."""
        runtime_state.cells_version += 1
        self._hooks.pop(self.handle_id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def add_hook(hooks: Hooks, entry: Any, prepend: bool = False) -> HookHandle:
    """Put `entry` into `hooks`, last or first."""
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


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _through(
    tensors: tuple[Any, ...], rule: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """The values unchanged; cotangents of the tensors among them go through `rule`."""
    places = [i for i, t in enumerate(tensors) if isinstance(t, Tensor)]
    if not places:
        return tensors
    given = tuple(tensors[i] for i in places)

    def bprop(*args: Any) -> tuple[Any, ...]:
        return rule(_as_tuple(args[-1]))

    passed = custom_gradient(lambda *xs: xs, bprop, given, "hook")
    found = list(tensors)
    for i, t in zip(places, passed, strict=True):
        found[i] = t
    return tuple(found)


def call_with_hooks(
    cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any], run: Callable[..., Any]
) -> Any:
    """Call `run` with the hooks of `cell` around it."""
    for hook, with_kwargs in list(cell._forward_pre_hooks.values()):
        if with_kwargs:
            changed = hook(cell, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        else:
            changed = hook(cell, args)
            if changed is not None:
                args = _as_tuple(changed)
    seen: dict[str, Any] = {"grad_output": None}
    if cell._backward_hooks:

        def input_rule(douts: tuple[Any, ...]) -> tuple[Any, ...]:
            for hook in list(cell._backward_hooks.values()):
                changed = hook(cell, douts, seen["grad_output"])
                if changed is not None:
                    douts = _as_tuple(changed)
            return douts

        args = _through(args, input_rule)
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

        def output_rule(douts: tuple[Any, ...]) -> tuple[Any, ...]:
            for hook in list(cell._backward_pre_hooks.values()):
                changed = hook(cell, douts)
                if changed is not None:
                    douts = _as_tuple(changed)
            seen["grad_output"] = douts
            return douts

        passed = _through(_as_tuple(output), output_rule)
        output = passed[0] if single else passed
    return output


def _run_forward_hooks(
    cell: Cell, args: Any, kwargs: Any, output: Any, only_always: bool = False
) -> Any:
    for key, (hook, with_kwargs) in list(cell._forward_hooks.items()):
        if only_always and key not in cell._forward_hooks_always:
            continue
        changed = hook(cell, args, kwargs, output) if with_kwargs else hook(cell, args, output)
        if changed is not None:
            output = changed
    return output


def call_with_bprop(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `construct` unrecorded, with the Cell's own `bprop` as its gradient."""
    return custom_gradient(
        lambda *xs: cell.construct(*xs, **kwargs), cell.bprop, args, type(cell).__name__
    )
