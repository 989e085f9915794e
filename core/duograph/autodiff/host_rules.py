"""Gradient rules of values on the host: Python floats that a graph computes with, and residual
stacks.

The cotangent of a float is a float. That of a stack is a stack of the cotangents of its frames:
what a push put on, its rule pops from the cotangent; what a pop took, its rule pushes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..dtype import float64
from ..errors import GradientError
from ..ir.basic_ops import fill
from ..ir.builder import GraphBuilder
from ..ir.control import stack_holds, stack_new, stack_pop, stack_push, switch, to_host
from ..ir.graph import Graph
from ..ir.values import number_of
from ..op import NO_GRAD
from ..ops.exponential import log
from ..runtime_state import thread_state
from ..types import FLOAT, STACK, HostType, TensorType, ValueType
from .activity import has_cotangent

__all__ = ["RULES", "nothing", "full", "frame_types", "pop_or_nothing"]


def nothing(type_: ValueType) -> Any:
    """The cotangent to which any other one can be added without changing a bit of it: -0.0, an
    empty stack.
    """
    if isinstance(type_, HostType):
        builder: Any = thread_state.builder
        return builder.append(stack_new, (), {}) if type_ is STACK else builder.host(-0.0)
    zero: Any = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(type_.dtype.kind, 0)
    return full(type_, zero)


def full(type_: TensorType, number: Any) -> Any:
    """A tensor of one number, as a node of the current graph.

    A call of the op would find what eager code prepared: without operands nothing tells the two
    apart.
    """
    builder: Any = thread_state.builder
    value = bool(number) if type_.dtype.kind == "b" else number
    attributes = {"shape": type_.shape, "value": value, "dtype": type_.dtype}
    return builder.append(fill, (), attributes)


# ---- numbers ------------------------------------------------------------------------------------


def _divided(x: Any, y: Any, out: Any, d: Any) -> tuple[Any, Any]:
    return d / y, -(d * out) / y


def _power(x: Any, y: Any, out: Any, d: Any) -> tuple[Any, Any]:
    by_y: Any = NO_GRAD
    if getattr(y, "_type", None) is FLOAT:
        builder: Any = thread_state.builder
        log_x = builder.append(to_host, (log(builder.operand(x, float64)),), {"kind": FLOAT})
        by_y = d * out * log_x
    return d * y * x ** (y - 1), by_y


def _sign(x: Any, out: Any, d: Any) -> Any:
    return d * (number_of(x > 0, FLOAT) - number_of(x < 0, FLOAT))


_SCALAR: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, out, d: (d, d),
    "sub": lambda x, y, out, d: (d, -d),
    "mul": lambda x, y, out, d: (d * y, d * x),
    "truediv": _divided,
    "neg": lambda x, out, d: -d,
    "pos": lambda x, out, d: d,
    "float": lambda x, out, d: d,
    "pow": _power,
    "abs": _sign,
}


def _scalar(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    function = attributes["function"]
    rule = _SCALAR.get(function)

    def bprop(operands: Sequence[Any], out: Any, dout: Any) -> Any:
        if rule is None:  # steps: their derivative is zero
            return (NO_GRAD,) * len(operands)
        return rule(*operands, out, dout)

    return bprop


def _to_tensor(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    def bprop(operands: Sequence[Any], out: Any, dout: Any) -> Any:
        builder: Any = thread_state.builder
        if dout.dtype.kind == "c":
            raise GradientError(
                "to_tensor: got a complex cotangent for a Python float; wanted a real one"
            )
        return (builder.append(to_host, (dout,), {"kind": FLOAT}),)

    return bprop


# ---- stacks -------------------------------------------------------------------------------------


def frame_types(types: Sequence[ValueType]) -> tuple[ValueType, ...]:
    """Types of the cotangents of a frame: of those of its values that can have one."""
    return tuple(t for t in types if has_cotangent(t))


def _types_of(values: Sequence[Any]) -> list[ValueType]:
    return [v._type for v in values]


def _push(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    def bprop(operands: Sequence[Any], out: Any, dout: Any) -> Any:
        types = _types_of(operands[1:])
        rest, *found = pop_or_nothing(dout, frame_types(types))
        values = iter(found)
        return (rest, *[next(values) if has_cotangent(t) else NO_GRAD for t in types])

    return bprop


def _pop(attributes: Mapping[str, Any]) -> Callable[..., Any]:
    def bprop(operands: Sequence[Any], out: Any, dout: Any) -> Any:
        builder: Any = thread_state.builder
        rest, _, *values = dout
        kept = [v for v, t in zip(values, attributes["types"], strict=True) if has_cotangent(t)]
        return (builder.append(stack_push, (rest, *kept), {}),)

    return bprop


def pop_or_nothing(stack: Any, types: tuple[ValueType, ...]) -> tuple[Any, ...]:
    """Pop a frame of cotangents, (rest, *values); nothing was pushed on a stack without one: no
    cotangents.
    """
    branches: list[Graph] = []
    for holds in (False, True):
        inner = GraphBuilder()
        own = inner.parameter(STACK)
        with inner.current():
            if holds:
                rest, _, *values = inner.append(stack_pop, (own,), {"types": types})
            else:
                rest, values = own, [nothing(t) for t in types]
            branches.append(inner.finish((rest, *values)))
    builder: Any = thread_state.builder
    flag = builder.append(stack_holds, (stack,), {})
    made: tuple[Any, ...] = builder.append(switch, (flag, stack), {"branches": tuple(branches)})
    return made


RULES: dict[str, Callable[[Mapping[str, Any]], Callable[..., Any]]] = {
    "scalar": _scalar,
    "to_tensor": _to_tensor,
    "stack_push": _push,
    "stack_pop": _pop,
}
