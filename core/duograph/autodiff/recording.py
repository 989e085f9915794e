"""Runs a function while the tape records it, then computes gradients of what it returned.

`grad`, `vjp` and the other transforms call `record`. While another function is being compiled,
`record` passes the call on to the front end, which makes the derivative part of the graph. The
module must not call gradient rules itself; the tape does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..backend import registry
from ..errors import ArgumentError, GradientError
from ..ir.basic_ops import fill
from ..parameter import Parameter
from ..placement import commit
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
    next_sequence,
)

__all__ = ["Recording", "detached", "ones_of", "record", "with_present_edge"]


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
    no device yet.
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


def with_present_edge(t: Tensor) -> Tensor:
    """Return a new Tensor with the buffer and the tape edge that `t` has now.

    If `t` has no device yet, it is first placed on the current device. Later in-place writes to `t`
    do not change the new Tensor.
    """
    made = Tensor._make(t._type, t._buf)
    if t._type.level:
        made._edge = t._edge
    elif t._type.device is None:
        commit(t, registry.current_device())
        made = Tensor._make(t._type, t._buf)
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
    hooks = getattr(t, "_hooks", None)
    if hooks and not type_.level:
        made._edge.hooks = hooks
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


@contextmanager
def _recorded_weights(weights: Sequence[Parameter], level: int) -> Iterator[list[Edge]]:
    """Return a context manager that records Parameters as inputs of a derivative.

    It yields their tape edges. On exit the Parameters are no longer recorded, or are recorded again
    as an enclosing derivative had recorded them. `level` is the level of the derivative: 1, or 2
    inside another derivative.
    """
    edges: list[Edge] = []
    before: list[tuple[Parameter, TensorType | None, Edge | None]] = []
    try:
        for p in weights:
            if p._type.device is None:
                commit(p, registry.current_device())
            old_type = p._type
            old_edge: Edge | None = getattr(p, "_edge", None)
            nested = old_type.level and level > 1
            edge: Edge
            if nested:
                edge = _start_edge(p)
            else:
                edge = _leaf_of(p)
                p._recording += 1
            before.append((p, old_type if nested else None, old_edge))
            p._edge = edge
            p._type = old_type.on(old_type.device, level)
            runtime_state.bindings_version = object()
            edges.append(edge)
        yield edges
    finally:
        for (p, outer_type, outer_edge), edge in zip(before, edges, strict=False):
            if outer_type is not None:
                if p._edge is edge:
                    p._type, p._edge = outer_type, outer_edge
                    runtime_state.bindings_version = object()
                continue
            p._recording -= 1
            if p._recording == 0:
                p._type = p._type.on(p._type.device)
                runtime_state.bindings_version = object()
                if hasattr(p, "_edge"):
                    del p._edge


def _leaf_of(p: Parameter) -> Leaf:
    """Return the leaf of a Parameter, the tape edge at which its gradient is collected.

    The leaf is stored on the Parameter and used again by later derivatives.
    """
    leaf: Leaf | None = p.__dict__.get("_leaf")
    if leaf is None or leaf.type.plain is not p._type.plain:
        leaf = p.__dict__["_leaf"] = Leaf(p._type.on(p._type.device))
        leaf.hooks = getattr(p, "_hooks", None)
    leaf.seq = next_sequence()  # makes it younger than the derivative's start
    if hasattr(p, "_hooks"):
        leaf.hooks = p._hooks
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
