"""Runs a function while the tape records it, then computes gradients of what it returned.

`grad`, `vjp` and the other transforms call `record`. While another function is being compiled,
`record` passes the call on to the front end, which makes the derivative part of the graph. The
module must not call gradient rules itself; the tape does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from .._locks import new_lock
from ..backend import registry
from ..errors import ArgumentError, GradientError
from ..ir.basic_ops import fill
from ..parameter import Parameter
from ..placement import commit
from ..recorded_tensors import is_recorded
from ..runtime_state import runtime_state, staged_builder, thread_state
from ..tensor import Tensor
from ..tracebacks import defined_at
from ..types import TensorType
from .node_plans import PythonPlan, zeros_on
from .pytrees import class_name, mapped, tensors_of
from .tape import (
    DerivativeScope,
    Edge,
    Leaf,
    Node,
    backward,
    edge_of,
    fitted,
    handle_of,
    hooks_of,
    next_sequence,
    with_present_edge,
)

__all__ = ["Recording", "detached", "differentiable_pullbacks", "ones_of", "record"]


class Recording:
    """A function call that the tape recorded, with its inputs and outputs.

    Attributes:
        start: tape sequence number at which the call began.
        leaves: tape edges of the inputs and weights to differentiate.
        leaf_types: types of these inputs and weights.
        outputs: the tensors in the function's result (with `has_aux`, in its first item), with
            their tape edges.
        result: what the function returned.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.leaves: list[Edge] = []
        self.leaf_types: list[TensorType] = []
        self.outputs: list[Tensor] = []
        self.result: Any = None

    def add_leaf(self, edge: Edge, type_: TensorType) -> None:
        """Add the input or weight with tape edge `edge` to the values that get gradients."""
        self.leaves.append(edge)
        self.leaf_types.append(type_)

    def pull(self, cotangents: Sequence[Tensor | None]) -> list[Tensor]:
        """Return the gradients of all inputs and weights, computed from cotangents of the outputs.

        There is one cotangent per output; None stands for a tensor of ones. The gradient of an
        input on which no output depends is zeros.
        """
        create_graph = thread_state.derivative_depth >= 1
        pairs: list[tuple[Edge | None, Tensor]] = []
        for out, given in zip(self.outputs, cotangents, strict=True):
            type_ = out._type
            if not type_.level:
                continue
            cotangent = ones_of(out) if given is None else given
            fit = fitted if create_graph else handle_of
            pairs.append((out._edge, fit(cotangent, type_)))
        found = backward(pairs, self.leaves, create_graph, self.start)
        result: list[Tensor] = []
        for value, type_ in zip(found, self.leaf_types, strict=True):
            plain = type_.on(type_.device)
            if value is None:
                result.append(zeros_on(plain))
            else:
                # a rule may return its cotangent or a residual, which are objects of the caller
                result.append(
                    with_present_edge(value) if create_graph else Tensor._make(plain, value)
                )
        return result


def detached(t: Tensor) -> Tensor:
    """Return an unrecorded tensor that shares the buffer of `t`, so that no gradient reaches `t`.

    Returns `t` itself if it is a plain Tensor (not a Parameter) that is not recorded, or if it has
    no device: its data is on the host only, or it is a value of a graph.
    """
    type_ = t._type
    if not type_.level and type(t) is Tensor:
        return t
    if type_.device is None:
        return t
    return Tensor._make(type_.on(type_.device), t._buf)


def ones_of(like: Tensor) -> Tensor:
    """Return a tensor of ones with the shape, dtype and device of `like`."""
    one: bool | int = True if like._type.dtype.kind == "b" else 1
    made: Tensor = fill(like._type.shape, one, like._type.dtype)
    if made._type.device is not like._type.device:
        made = made.move_to(repr(like._type.device))
    return made


def _alias(t: Tensor, level: int) -> Tensor:
    """Return a new tensor that shares the buffer of `t` and is an input of a derivative.

    Its gradient is computed separately even if another argument is the same tensor. `level` is the
    level of the derivative: 1, or 2 inside another derivative.
    """
    if t._type.device is None:
        commit(t, registry.current_device())
    type_ = t._type
    made = Tensor._make(type_.on(type_.device, level), t._buf)
    made._edge = _start_edge(t)
    if not is_recorded(t):
        made._edge.hooks = hooks_of(t)
    return made


def _start_edge(t: Tensor) -> Edge:
    """Return the tape edge for a tensor that becomes an input of a derivative now.

    The edge is a new leaf, at which gradients stop. If an enclosing derivative records `t`, the
    edge is instead a node that passes gradients on to `t`.
    """
    type_ = t._type
    if type_.level and runtime_state.derivatives > 1:
        own = type_.on(type_.device)
        plan = PythonPlan(lambda create_graph, cotangent: (cotangent,), (own,), (own,), "alias")
        return Node(plan, (edge_of(t),), (), True)
    return Leaf(type_.on(type_.device))


# Guards `_recording`, the type and the tape edge of Parameters, which all threads share.
_weights_lock = new_lock()


# A Parameter that a derivative records; its tape edge there; whether that is the leaf of the
# Parameter, which derivatives share; and its type and edge before.
_Weight: TypeAlias = "tuple[Parameter, Edge, bool, TensorType, Edge | None]"


@contextmanager
def _recorded_weights(weights: Sequence[Parameter], level: int) -> Iterator[list[Edge]]:
    """Return a context manager that records Parameters as inputs of a derivative.

    It yields their tape edges. On exit the Parameters are recorded only as other derivatives that
    still run, in this thread or another, have recorded them. `level` is the level of the
    derivative: 1, or 2 inside another derivative.
    """
    entered: dict[int, _Weight] = {}  # a Parameter that is given twice is one input
    try:
        for p in weights:
            if p._type.device is None:
                commit(p, registry.current_device())
        with _weights_lock:
            for p in weights:
                if id(p) not in entered:
                    entered[id(p)] = _enter_weight(p, level)
            runtime_state.bindings_version = object()
        yield [entered[id(p)][1] for p in weights]
    finally:
        with _weights_lock:
            for weight in entered.values():
                _leave_weight(weight, level)
            runtime_state.bindings_version = object()


def _enter_weight(p: Parameter, level: int) -> _Weight:
    """Record a Parameter as an input of a derivative of a level.

    The edge is the leaf of the Parameter, which all derivatives share, also those of other threads.
    The type has the highest of their levels: nodes of level 2 serve a derivative of level 1 too. If
    a derivative that runs has written the Parameter, the edge is another one, because the leaf
    stands for the value before the write.
    """
    before = p._type
    present: Edge | None = getattr(p, "_edge", None)
    recording = p._recording
    written = present is not p._leaf if before.level else bool(recording)
    edge: Edge
    if not written:
        edge = _leaf_of(p)
        p._recording = recording = (*recording, level)
        level = max(recording)
    elif before.level and level > 1:
        edge = _start_edge(p)
    else:
        edge = Leaf(before.on(before.device))
        edge.hooks = getattr(p, "_hooks", None)
    p._edge = edge
    p._type = before.on(before.device, level)
    return p, edge, not written, before, present


def _leave_weight(weight: _Weight, level: int) -> None:
    """Undo `_enter_weight` at the end of the derivative of the level.

    A Parameter to which an inner derivative wrote a recorded value keeps it: for the derivative
    around it, the value is a function of its inputs. `DerivativeScope` detaches it in the end.
    """
    p, edge, shared, type_before, edge_before = weight
    if shared:
        levels = list(p._recording)
        levels.remove(level)
        p._recording = tuple(levels)
    present = p._type
    if getattr(p, "_edge", None) is edge:
        if shared:
            p._type = present.on(present.device, max(p._recording, default=0))
        else:
            p._type = type_before
            if edge_before is not None:
                p._edge = edge_before
    elif present.level and thread_state.derivative_depth == 1:
        p._type = present.on(present.device)
        p._edge = p._leaf


def _leaf_of(p: Parameter) -> Leaf:
    """Return the leaf of a Parameter, the tape edge at which its gradient is collected.

    The leaf is stored on the Parameter and used again by later derivatives.
    """
    leaf: Leaf | None = p._leaf
    own = p._type.on(p._type.device)
    if leaf is None or leaf.type is not own:
        leaf = p._leaf = Leaf(own)
    elif not p._recording:
        leaf.seq = next_sequence()  # makes it younger than the derivative's start
    leaf.hooks = getattr(p, "_hooks", None)
    return leaf


def record(
    fn: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    positions: Sequence[int],
    weights: Sequence[Parameter],
    has_aux: bool,
) -> Recording:
    """Call a function while the tape records it; return what is needed to differentiate it.

    Args:
        fn: the function.
        args, kwargs: its arguments.
        positions: positions in `args` of the arguments to differentiate by.
        weights: the Parameters to differentiate by as well.
        has_aux: whether only the first item of the result is differentiated.

    Raises:
        ArgumentError: `has_aux`, and the result is not a tuple of at least two items.
        GradientError: the result holds no Tensor.
    """
    builder = staged_builder()
    if builder is not None:
        recorded: Recording = builder.evaluation.record(
            fn, args, kwargs, positions, weights, has_aux
        )
        return recorded
    run = Recording(next_sequence())
    with DerivativeScope() as depth:
        level = 1 if depth == 1 else 2

        def enter(t: Tensor) -> Tensor:
            made = _alias(t, level)
            run.add_leaf(made._edge, made._type)
            return made

        given = list(args)
        for i in positions:
            given[i] = mapped(given[i], enter)
        with _recorded_weights(weights, level) as edges:
            for p, edge in zip(weights, edges, strict=True):
                run.add_leaf(edge, p._type)
            result = fn(*given, **kwargs)
            main = main_result(fn, result) if has_aux else result
            # a Parameter that is returned loses its edge when the block ends
            run.outputs = [with_present_edge(t) for t in tensors_of(main)]
            if not run.outputs:
                raise GradientError(
                    f"grad: the function returned {type(main).__name__} without a Tensor; "
                    f"wanted at least one Tensor to differentiate"
                )
            run.result = mapped(result, detached) if depth == 1 else result
    return run


@contextmanager
def differentiable_pullbacks() -> Iterator[Callable[[Any], Any]]:
    """Return a context manager in which the tape records functions so that pullbacks can be, too.

    It yields a function that detaches the tensors of a result from the tape, for use afterwards.
    Within an enclosing derivative, or while compiling, this is so already and nothing changes.
    """
    if staged_builder() is not None or thread_state.derivative_depth:
        yield lambda result: result
        return
    with DerivativeScope():
        yield lambda result: mapped(result, detached)


def main_result(fn: object, result: object) -> object:
    """Return the first item of the result of a function with `has_aux=True`.

    This item is differentiated, the others are not. `fn` is the function, for messages.

    Raises:
        ArgumentError: `result` is not a tuple of at least two items.
    """
    if not isinstance(result, tuple) or len(result) < 2:
        name = getattr(fn, "__name__", type(fn).__name__)
        one = "a tuple of one item" if isinstance(result, tuple) else f"one {class_name(result)}"
        raise ArgumentError(
            f"has_aux=True: {name}{defined_at(fn)} returned {one}; wanted a tuple of the value "
            "to differentiate and at least one more item, as in `return loss, logits`"
        )
    return result[0]
