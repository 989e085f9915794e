"""Gradients that users write in Python: calls with their own backward, and gradient hooks.

`custom_gradient` implements `Cell.bprop` and ops that run Python code, `without_residuals`
implements recomputation, and `add_hook` implements `Tensor.register_hook`. All of them use the
eager tape; compiled functions handle `bprop` themselves.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..backend import registry
from ..context import settings
from ..dtype import DType
from ..errors import ArgumentError, GradientError, RefusedError
from ..placement import commit
from ..recorded_tensors import is_recorded
from ..runtime_state import runtime_state, staged_builder
from ..tensor import Tensor
from ..tracebacks import defined_at
from ..types import TensorType
from .activity import lost_in_bprop
from .node_plans import OwnResult, PythonPlan
from .pytrees import mapped, tensors_of
from .recording import detached, ones_of
from .rule_checks import check_function
from .tape import Edge, Hook, Node, Output, edge_of, hooks_of, next_sequence, with_present_edge

__all__ = [
    "Hook", "add_hook", "check_gradient_of", "custom_gradient", "without_residuals",
    "wrong_number_of_gradients",
]  # fmt: skip


def custom_gradient(
    forward: Callable[..., Any],
    bprop: Callable[..., object],
    args: Sequence[object],
    name: str,
    rule: object = None,
) -> Any:
    """Run a Python function whose gradient another Python function computes; return its result.

    The tape records one node: its forward is `forward(*args)`, its backward is `bprop(*args, out,
    dout)`. It records nothing if no argument is a recorded tensor.

    Args:
        forward: any Python code that returns a Tensor or a tuple of Tensors.
        bprop: function that returns one gradient per argument, or one per argument that is a
            Tensor.
        args: the arguments; recorded tensors among them get the gradients.
        name: name of the function, for messages.
        rule: the `bprop` as the user wrote it, which debug mode compares with finite differences;
            None if the framework wrote it.

    Raises:
        GradientError: raised by the backward pass if `bprop` returned a wrong number of gradients,
            or a gradient whose shape differs from that of its argument.
    """
    recorded = _recorded(args)
    if not recorded:
        return forward(*args)
    if rule is not None and settings.debug:
        check_function(name, rule, lambda *xs: custom_gradient(forward, bprop, xs, name), args)
    plain = [detached(x) if isinstance(x, Tensor) else x for x in args]
    found = forward(*plain)
    # whether the user's function reads recorded tensors other than its inputs
    lost = rule is not None and any(is_recorded(t) for t in tensors_of(found))
    return _one_node(found, bprop, args, recorded, name, lost, rule)


def without_residuals(
    forward: Callable[..., Any], bprop: Callable[..., object], args: Sequence[object], name: str
) -> Any:
    """Run a function and record one tape node for it, whose gradient `bprop` computes.

    The nodes that the tape recorded inside the function are freed. They are kept, with a warning,
    if the function read a recorded Tensor that is not among `args`, because `bprop` has no gradient
    for that Tensor. Returns the function's result. If no argument is a recorded tensor, the
    function only runs.

    Args:
        forward, bprop, args, name: see `custom_gradient`.
    """
    recorded = _recorded(args)
    if not recorded:
        return forward(*args)
    start = next_sequence()
    found = forward(*args)
    inputs = {edge_of(x) for x in recorded.values()}
    if _reads_more([t._edge for t in tensors_of(found) if is_recorded(t)], inputs, start):
        warnings.warn(
            f"{name}: the block reads a Tensor with a gradient that is not one of its inputs, so "
            "its intermediate values are kept; pass that Tensor as an input",
            RuntimeWarning,
            stacklevel=4,
        )
        return found
    return _one_node(found, bprop, args, recorded, name)


def _recorded(args: Sequence[object]) -> dict[int, Tensor]:
    """Return the recorded tensors among arguments, by position.

    The result is empty outside a derivative. It is also empty while the front end traces a function
    into a graph, because then the graph is differentiated.
    """
    if not runtime_state.derivatives or staged_builder() is not None:
        return {}
    return {i: x for i, x in enumerate(args) if isinstance(x, Tensor) and x._type.level > 0}


def _reads_more(edges: Sequence[Edge], inputs: set[Edge], start: int) -> bool:
    """Return whether results depend on an older recorded value that is not among the inputs.

    Args:
        edges: the tape edges of the results.
        inputs: the tape edges of the inputs.
        start: the tape's sequence number when the call began; older values have smaller numbers.
    """
    waiting: list[Edge | None] = list(edges)
    seen: set[Edge] = set()
    while waiting:
        edge = waiting.pop()
        if edge is None or edge in inputs or edge in seen:
            continue
        seen.add(edge)
        if edge.seq < start:
            return True
        if isinstance(edge, Output):
            waiting.append(edge.node)
        elif isinstance(edge, Node):
            waiting += edge.parents
    return False


def _one_node(
    found: Any,
    bprop: Callable[..., object],
    args: Sequence[object],
    recorded: Mapping[int, Tensor],
    name: str,
    lost: bool = False,
    rule: object = None,
) -> Any:
    """Record one tape node for a function that has been run; return its result as recorded tensors.

    Args:
        found: the result: a Tensor or a tuple of them.
        bprop, args, name, rule: see `custom_gradient`.
        recorded: the recorded arguments, by position.
        lost: whether the function read recorded tensors that are not among `args`. A backward pass
            through the node then raises an error.
    """
    level = max(x._type.level for x in recorded.values())
    out = mapped(found, detached)
    several = isinstance(out, (tuple, list))
    outs = list(tensors_of(out))
    for t in outs:
        if t._type.device is None:
            commit(t, registry.current_device())
    # the caller may write to its tensors before the backward pass
    values = mapped(out, _unrecorded_copy)
    kept = tuple(with_present_edge(x) if isinstance(x, Tensor) else x for x in args)

    def backward(create_graph: bool, *douts: Tensor) -> list[Tensor | None]:
        if lost:
            raise lost_in_bprop(name)
        # new tensors: a bprop may write to them, and a backward pass may run again
        own = with_present_edge if create_graph else _unrecorded_copy
        given = [own(x) if isinstance(x, Tensor) else x for x in kept]
        result = mapped(values, _unrecorded_copy)
        if create_graph:
            node = node_of()
            assert node is not None  # it runs this function
            result = _with_edges(values, level, [own.edge_in(node) for own in owns])
        dout = douts if several else douts[0]
        return _per_argument(name, defined_at(rule), args, bprop(*given, result, dout))

    plan = PythonPlan(
        backward,
        tuple(_unrecorded(t._type) for t in outs),
        tuple(_unrecorded(recorded[i]._type) if i in recorded else None for i in range(len(args))),
        name,
    )
    parents: tuple[Edge | None, ...] = tuple(
        edge_of(recorded[i]) if i in recorded else None for i in range(len(args))
    )
    node = Node(plan, parents, (), level > 1)
    node_of = weakref.ref(node)  # the plan of a node must not keep the node alive
    owns = [OwnResult(t._type, t._buf, i if len(outs) > 1 else None) for i, t in enumerate(outs)]
    edges = [own.edge_in(node) for own in owns]
    for own, edge in zip(owns, edges, strict=True):
        if isinstance(edge, Output):
            own.recorded_as(edge)
    return _with_edges(values, level, edges)


def _with_edges(values: Any, level: int, edges: Sequence[Edge]) -> Any:
    """Return copies of the results of a call, recorded at `level` with the given tape edges."""
    items = iter(edges)

    def with_edge(t: Tensor) -> Tensor:
        made = Tensor._make(t._type.on(t._type.device, level), t._buf)
        made._edge = next(items)
        return made

    return mapped(values, with_edge)


def _unrecorded_copy(t: Tensor) -> Tensor:
    """Return a new unrecorded Tensor that shares the buffer of `t`."""
    return Tensor._make(_unrecorded(t._type), t._buf)


def _unrecorded(type_: TensorType) -> TensorType:
    """Return a tensor type with its device and without its recording level."""
    return type_.on(type_.device)


def _per_argument(
    name: str, place: str, args: Sequence[object], found: object
) -> list[Tensor | None]:
    """Return the gradients that a user's `bprop` returned as a list with one item per argument.

    An item is None for an argument that is no Tensor or has no gradient. `args` are the arguments
    and `found` is what `bprop` returned. Messages contain `name`, the name of the function, and
    `place`, the text that tells where `bprop` is defined.

    Raises:
        GradientError: the number of gradients or one of them is not valid.
    """
    items = list(found) if isinstance(found, (tuple, list)) else [found]
    tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
    if len(items) == len(args):
        by_index = dict(enumerate(items))
    elif len(items) == len(tensors):
        by_index = dict(zip(tensors, items, strict=True))
    else:
        raise wrong_number_of_gradients(name, place, len(items), len(args))
    out: list[Tensor | None] = []
    for i, x in enumerate(args):
        g: Any = by_index.get(i)
        if not isinstance(x, Tensor):
            out.append(None)
            continue
        check_gradient_of(name, place, i, x.shape, x.dtype, g)
        if isinstance(g, (int, float, np.number)):
            g = ones_of(detached(x)) * Tensor(g, x.dtype)
        out.append(g)
    return out


def wrong_number_of_gradients(name: str, place: str, got: int, wanted: int) -> GradientError:
    """Return the error for a user's `bprop` that returns too few or too many gradients.

    `name` is that of the Cell, `place` where its `bprop` is defined.
    """
    many = f"{got} gradient" + ("s" if got != 1 else "")
    return GradientError(
        f"{name}: its bprop{place} returned {many}, wanted {wanted}, one per input: return a tuple "
        f"of {wanted}"
    )


def check_gradient_of(
    name: str, place: str, position: int, shape: tuple[int, ...], dtype: DType, gradient: object
) -> None:
    """Raise GradientError unless a user's `bprop` returned a valid gradient for one input.

    Valid gradients are a Tensor of the input's shape, a number to which every element of the
    gradient is equal, and None, which means no gradient. With the setting `check_bprop`, the Tensor
    must also have the input's dtype if that is floating or complex.

    Args:
        name: name of the function, for messages.
        place: text that tells where the `bprop` is defined, for messages.
        position: index of the input.
        shape, dtype: shape and dtype of the input.
        gradient: what `bprop` returned for the input.
    """
    if gradient is None or isinstance(gradient, (int, float, np.number)):
        return
    if not isinstance(gradient, Tensor):
        raise GradientError(
            f"{name}: its bprop{place} returned {type(gradient).__name__} for input {position}; "
            f"wanted a Tensor, a number, or None for no gradient"
        )
    if gradient.shape != shape:
        raise GradientError(
            f"{name}: its bprop{place} returned a gradient of shape {gradient.shape} for input "
            f"{position} of shape {shape}; wanted the input's shape"
        )
    checked = settings.check_bprop and (dtype.is_floating or dtype.is_complex)
    if checked and gradient.dtype is not dtype:
        raise GradientError(
            f"{name}: its bprop{place} returned a {gradient.dtype.name} gradient for input "
            f"{position}, which is {dtype.name}; wanted the dtype of the input (check_bprop=True)"
        )


def add_hook(t: Tensor, function: Callable[[Tensor], object]) -> Hook:
    """Register a function to call with the gradient of `t` once the gradient is complete.

    A Tensor that the function returns replaces the gradient. Returns a handle that can unregister
    the function.

    Raises:
        ArgumentError: `function` is not callable.
        RefusedError: called inside a compiled function.
    """
    if not callable(function):
        raise ArgumentError(
            f"register_hook: got {type(function).__name__}; wanted a function of the gradient"
        )
    if staged_builder() is not None:
        raise RefusedError(
            "register_hook: got a hook inside jit; a compiled function has no place where a hook "
            "could run. Register it outside, or run the function line by line"
        )
    hooks = hooks_of(t)
    if hooks is getattr(
        t, "_hooks", None
    ):  # of the Tensor itself, not of its value in a derivative
        runtime_state.cells_version += 1  # compiled functions compare a Parameter's hooks
    return Hook(hooks, function)
