"""Gradients that users write as Python: a node with its own backward, and gradient hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..backend import registry
from ..errors import ArgumentError, GradientError, RefusedError
from ..placement import commit
from ..runtime_state import runtime_state, staged_builder
from ..tensor import Tensor
from .node_plans import PythonPlan
from .pytrees import mapped, tensors_of
from .recording import detached, ones_of, with_present_edge
from .tape import Node, Output, edge_of

__all__ = ["custom_gradient", "Hook", "add_hook"]


def custom_gradient(
    forward: Callable[..., Any], bprop: Callable[..., Any], args: Sequence[Any], name: str
) -> Any:
    """Run `forward(*args)` as one node whose gradient is `bprop(*args, out, dout)`.

    Args:
        forward: any Python code returning a Tensor or a tuple of them.
        bprop: returns one gradient per argument that is a Tensor (or one per argument).
        args: arguments; tensors among them that are recorded get the gradients.
        name: for messages.

    Raises:
        GradientError: `bprop` returned another number, or another shape, than the arguments.
    """
    recorded = [isinstance(x, Tensor) and x._type.level > 0 for x in args]
    if not runtime_state.derivatives or not any(recorded):
        return forward(*args)
    level = max(x._type.level for x, r in zip(args, recorded, strict=True) if r)
    plain = [detached(x) if isinstance(x, Tensor) else x for x in args]
    out = mapped(forward(*plain), detached)
    several = isinstance(out, (tuple, list))
    outs = [t for t in tensors_of(out)]
    for t in outs:
        if t._type.device is None:
            commit(t, registry.current_device())
    first = next(x for x, r in zip(args, recorded, strict=True) if r)
    kept = tuple(with_present_edge(x) if isinstance(x, Tensor) else x for x in args)

    def run(create_graph: bool, *douts: Any) -> Sequence[Any]:
        given = kept if create_graph else plain
        dout: Any = tuple(douts) if several else douts[0]
        found = bprop(*given, out, dout)
        return _per_argument(name, args, found)

    plan = PythonPlan(
        run,
        tuple(t._type.plain for t in outs),
        tuple(x._type.plain if r else None for x, r in zip(args, recorded, strict=True)),
        first._type.device,
        name,
    )
    parents = tuple(edge_of(x) if r else None for x, r in zip(args, recorded, strict=True))
    node = Node(plan, parents, (), level > 1)
    counter = iter(range(len(outs)))

    def wrap(t: Tensor) -> Tensor:
        made = Tensor._make(t._type.on(t._type.device, level), t._buf)
        i = next(counter)
        made._edge = Output(node, i) if len(outs) > 1 else node
        return made

    return mapped(out, wrap)


def _per_argument(name: str, args: Sequence[Any], found: Any) -> list[Any]:
    items = list(found) if isinstance(found, (tuple, list)) else [found]
    tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    if len(items) == len(args):
        by_index = dict(enumerate(items))
    elif len(items) == len(tensors):
        by_index = dict(zip(tensors, items, strict=True))
    else:
        raise GradientError(
            f"{name}: its bprop returned {len(items)} gradients, wanted {len(args)}, one per input"
        )
    out: list[Any] = []
    for i, x in enumerate(args):
        g = by_index.get(i)
        if isinstance(x, Tensor) and isinstance(g, (int, float)):
            g = Tensor(g, x.dtype)
            g = ones_of(detached(x)) * g
        if isinstance(x, Tensor) and isinstance(g, Tensor) and g.shape != x.shape:
            raise GradientError(
                f"{name}: its bprop returned a gradient of shape {g.shape} for input {i} of shape "
                f"{x.shape}; wanted the input's shape"
            )
        out.append(g if isinstance(g, Tensor) else None)
    return out


class Hook:
    """Handle of a registered hook; `remove()` takes the hook out."""

    def __init__(self, hooks: list[Any], function: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._function = function

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        if self._function in self._hooks:
            self._hooks.remove(self._function)


def add_hook(t: Tensor, function: Callable[..., Any]) -> Hook:
    """Call `function(gradient)` when the gradient of `t` is complete; a Tensor it returns replaces
    it.
    """
    if not callable(function):
        raise ArgumentError(
            f"register_hook: got {type(function).__name__}; wanted a function of the gradient"
        )
    if staged_builder() is not None:
        raise RefusedError(
            "register_hook: got a hook inside jit; a compiled function has no place where a hook could run. "
            "Register it outside, or run the function line by line"
        )
    edge = getattr(t, "_edge", None) if t._type.level else None
    if edge is not None:
        if edge.hooks is None:
            edge.hooks = []
        hooks = edge.hooks
    else:
        hooks = getattr(t, "_hooks", None)
        if hooks is None:
            hooks = t._hooks = []
    hooks.append(function)
    return Hook(hooks, function)
