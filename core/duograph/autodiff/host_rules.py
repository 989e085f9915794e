"""Gradient rules of Python floats in graphs.

The cotangent of a Python float is a Python float. The reverse sweep looks rules up in `RULES` by
the name of the op. Rules append graph nodes and compute nothing themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..dtype import float64
from ..errors import GradientError
from ..ir.basic_ops import fill
from ..ir.builder import GraphTensor, GraphValue, current_builder
from ..ir.control import stack_new, to_host
from ..ir.graph import Attributes
from ..ir.values import GraphScalar, number_of
from ..op import NO_GRAD
from ..ops.exponential import log
from ..types import FLOAT, STACK, HostType, TensorType, ValueType

__all__ = ["RULES", "additive_identity", "filled"]

# rule(operands, result(s), cotangent(s)) -> one cotangent or NO_GRAD per operand
Rule: TypeAlias = Callable[..., Sequence[object]]
# makes the rule for the attributes of a node
Getter: TypeAlias = Callable[[Attributes], Rule]
ScalarRule: TypeAlias = Callable[..., "object | tuple[object, ...]"]


def additive_identity(type_: ValueType) -> GraphValue:
    """Append to the current graph a constant cotangent that leaves any sum unchanged; return it.

    It is -0.0 for floats, 0 for other numbers and an empty stack for stacks.
    """
    if isinstance(type_, HostType):
        builder = current_builder()
        found: GraphValue = (
            builder.append(stack_new, (), {}) if type_ is STACK else builder.host(-0.0)
        )
        return found
    zero = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(type_.dtype.kind, 0)
    return filled(type_, zero)


def filled(type_: TensorType, number: complex) -> GraphTensor:
    """Append to the current graph a `fill` node, a tensor whose elements are all equal to `number`.

    Returns the tensor, which has the type `type_`. A bool tensor gets the truth value of `number`.
    """
    value = bool(number) if type_.dtype.kind == "b" else number
    attributes = {"shape": type_.shape, "value": value, "dtype": type_.dtype}
    made: GraphTensor = current_builder().append(fill, (), attributes)
    return made


# ---- numbers ------------------------------------------------------------------------------------


def _divided(
    x: GraphScalar, y: GraphScalar, out: GraphScalar, d: GraphScalar
) -> tuple[object, object]:
    return d / y, -(d * out) / y


def _power(
    x: GraphScalar, y: GraphScalar, out: GraphScalar, d: GraphScalar
) -> tuple[object, object]:
    by_y: object = NO_GRAD
    if getattr(y, "_type", None) is FLOAT:
        builder = current_builder()
        log_x = builder.append(to_host, (log(builder.operand(x, float64)),), {"kind": FLOAT})
        by_y = d * out * log_x
    return d * y * x ** (y - 1), by_y


def _abs(x: GraphScalar, out: GraphScalar, d: GraphScalar) -> object:
    return d * (number_of(x > 0, FLOAT) - number_of(x < 0, FLOAT))


_SCALAR: dict[str, ScalarRule] = {
    "add": lambda x, y, out, d: (d, d),
    "sub": lambda x, y, out, d: (d, -d),
    "mul": lambda x, y, out, d: (d * y, d * x),
    "truediv": _divided,
    "neg": lambda x, out, d: -d,
    "pos": lambda x, out, d: d,
    "float": lambda x, out, d: d,
    "pow": _power,
    "abs": _abs,
}


def _scalar(attributes: Attributes) -> Rule:
    rule = _SCALAR.get(attributes["function"])

    def bprop(operands: Sequence[GraphScalar], out: GraphScalar, dout: GraphScalar) -> Any:
        if rule is None:  # piecewise constant: comparisons, rounding
            return (NO_GRAD,) * len(operands)
        return rule(*operands, out, dout)

    return bprop


def _to_tensor(attributes: Attributes) -> Rule:
    def bprop(
        operands: Sequence[GraphScalar], out: GraphTensor, dout: GraphTensor
    ) -> tuple[object]:
        if dout.dtype.kind == "c":
            raise GradientError(
                "to_tensor: got a complex cotangent for a Python float; wanted a real one"
            )
        return (current_builder().append(to_host, (dout,), {"kind": FLOAT}),)

    return bprop


RULES: dict[str, Getter] = {
    "scalar": _scalar,
    "to_tensor": _to_tensor,
}
