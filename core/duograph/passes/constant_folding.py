"""Computes while compiling what depends on constants alone, where that gives the bits that a kernel
gives.

That is integers, bools, comparisons, and ops that only move elements; of floats only these (and
sums, differences and products of two numbers, in `simplify.py`). What the host computes with Python
numbers is always the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.control import SCALAR_FUNCTIONS, HostConstant, host_constant, scalar_type
from ..ir.graph import FrozenArray
from ..op import OPS
from ..types import BOOL, FLOAT, INT, HostType, TensorType
from .rewriting import Context, Rule, rule

__all__ = ["LIMIT"]

# Elements of a constant that is worth making.
LIMIT = 1024
# Bits of an int that Python computes while compiling.
_BITS = 4096

_MOVES = ("transpose", "broadcast_to", "concat", "strided_slice", "flip", "select", "reshape")
_COMPARES = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_INTEGERS = (
    "add",
    "sub",
    "mul",
    "neg",
    "abs",
    "square",
    "maximum",
    "minimum",
    "sign",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_not",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "reduce_sum",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_all",
    "reduce_any",
)
_KINDS: dict[HostType, type] = {BOOL: bool, INT: int, FLOAT: float}


def _array(context: Context, x: Any) -> Any:
    """The elements of a small constant, else None."""
    if x is None or not isinstance(x._type, TensorType) or x._type.size > LIMIT:
        return None
    node = context.maker.get(x._id)
    if node is None:
        return None
    if node.op.name == "constant":
        return node.attributes["value"].array
    if node.op.name == "fill":
        return np.full(x._type.shape, node.attributes["value"], x._type.dtype.np)
    return None


def _constant(context: Context, array: Any, type_: TensorType) -> Any:
    """A node for a known array: a fill where all elements are one number."""
    assert array.shape == type_.shape and array.dtype == type_.dtype.np, (array.dtype, type_)
    first = array.reshape(-1)[:1]
    if (
        array.tobytes() == np.full(array.shape, first[0]).astype(array.dtype).tobytes()
        and first[0] == first[0]
    ):
        attributes = {"shape": type_.shape, "value": first[0].item(), "dtype": type_.dtype}
        return _made(context, context.builder.append(OPS["fill"], (), attributes))
    frozen = FrozenArray(array)
    return _made(context, context.builder.append(OPS["constant"], (), {"value": frozen}))


def _made(context: Context, x: Any) -> Any:
    context.maker[x._id] = context.builder.nodes[-1]
    return x


def _fold(name: str, kinds: str) -> Rule:
    def fold(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        arrays = []
        for x in operands:
            array = _array(context, x)
            if array is None or x._type.dtype.kind not in kinds:
                return None
            arrays.append(array)
        op = OPS[name]
        type_ = op.result_types(tuple(x._type for x in operands), attributes)
        if not isinstance(type_, TensorType) or not 0 < type_.size <= LIMIT:
            return None
        assert op.reference_rule is not None
        with np.errstate(all="ignore"):
            array = np.asarray(op.reference_rule(*op.arguments(arrays), **attributes))
        return _constant(context, array.astype(type_.dtype.np, copy=False), type_)

    fold.__doc__ = f"{name}(constants) -> constant"
    return fold


for _name in _MOVES:
    rule(_name)(_fold(_name, "biufc"))
for _name in _COMPARES:
    rule(_name)(_fold(_name, "biuf"))
for _name in _INTEGERS:
    rule(_name)(_fold(_name, "biu"))


@rule("cast")
def _cast(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """cast(constant) -> constant, of integers, and of floats to wider ones or to integers that hold
    them
    """
    (x,) = operands
    array = _array(context, x)
    source, target = x._type.dtype, attributes["dtype"]
    if array is None or not array.size or source.kind not in "biuf" or target.kind == "c":
        return None
    if source.kind == "f" and target.kind == "f" and target.itemsize < source.itemsize:
        return None
    if source.kind == "f" and target.kind in "iu":
        limits = np.iinfo(target.np)
        wide = array.astype(np.float64)
        if not np.all((wide > limits.min) & (wide < limits.max)):
            return None
    return _constant(context, array.astype(target.np), TensorType.of(x._type.shape, target))


# ---- the host -----------------------------------------------------------------------------------


def _host(context: Context, value: Any) -> Any:
    attributes = {"value": HostConstant(value)}
    return _made(context, context.builder.append(host_constant, (), attributes))


@rule("scalar")
def _scalar(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """scalar(numbers) -> number; what raises does so when the program runs"""
    values = [context.known(x) for x in operands]
    if any(v is None for v in values):
        return None
    function = attributes["function"]
    if function in ("pow", "lshift", "mul") and all(isinstance(v, int) for v in values):
        a, b = (abs(v) for v in values)
        bits = a.bit_length() + b.bit_length() if function == "mul" else b + a.bit_length()
        if function == "pow":
            bits = b * a.bit_length()
        if bits > _BITS:
            return None
    try:
        value = SCALAR_FUNCTIONS[function](*values)
    except (ArithmeticError, ValueError, TypeError):
        return None
    kind = scalar_type(function, [x._type for x in operands])
    return _host(context, value) if type(value) is _KINDS[kind] else None


@rule("to_host")
def _to_host(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """to_host(number) -> number"""
    (x,) = operands
    array = _array(context, x)
    if array is None or array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        return None
    return _host(context, _KINDS[attributes["kind"]](array.item()))


@rule("to_tensor")
def _to_tensor(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """to_tensor(number) -> number, where the dtype holds it"""
    (x,) = operands
    value, dtype = context.known(x), attributes["dtype"]
    if value is None or dtype.kind == "c":
        return None
    if dtype.kind in "iu":
        limits = np.iinfo(dtype.np)
        if not isinstance(value, int) or not limits.min <= value <= limits.max:
            return None
    with np.errstate(all="ignore"):
        array = np.asarray(value).astype(dtype.np)
    return _constant(context, array, TensorType.of((), dtype))
