"""Rewrites calls that do nothing, or undo each other, or are known while compiling.

Every rule keeps the value bit for bit: there is no x + 0.0 -> x here (-0.0 + 0.0 is 0.0), but there
is x * 1.0 -> x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtype import DType
from ..ir.builder import GraphTensor
from ..ir.graph import Graph
from . import constant_folding as constant_folding
from . import inlining as inlining
from .context import PLAIN, PassContext
from .rewriting import RULES, Context, Rule, again, operand, rewrite, rule

__all__ = ["simplify", "RULES"]


def simplify(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Rebuild the graph, each call through the rules of its op: those here, in `inline.py` and in
    `folding.py`.
    """
    return rewrite(graph, {})


# ---- calls that do nothing ----------------------------------------------------------------------


@rule("identity")
def _identity(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """identity(x) -> x"""
    return operands[0]


@rule("cast")
def _cast(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """cast(x, its dtype) -> x; cast(cast(x, wider), its dtype) -> x; cast(number) -> number"""
    (x,) = operands
    dtype: DType = attributes["dtype"]
    if x.dtype is dtype:
        return x
    inner = context.made_by(x, "cast")
    if inner is not None:
        source = operand(context, inner)
        if source.dtype is dtype and _holds(x.dtype, dtype):
            return source
    number = context.made_by(x, "fill")
    if number is not None:
        with np.errstate(all="ignore"):
            value = np.array(number.attributes["value"], x.dtype.np).astype(dtype.np).item()
        return again(context, number, (), value=value, dtype=dtype)
    return None


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is a value of `wide`."""
    if wide.kind != narrow.kind or wide.kind == "b":
        return False
    if {wide.name, narrow.name} == {"float16", "bfloat16"}:
        return False
    return wide.itemsize > narrow.itemsize


@rule("reshape")
def _reshape(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """reshape(x, its shape) -> x; reshape(reshape(x)) -> reshape(x)"""
    (x,) = operands
    if x.shape == attributes["shape"]:
        return x
    inner = context.made_by(x, "reshape")
    if inner is not None:
        return again(context, inner, (operand(context, inner),), shape=attributes["shape"])
    return None


@rule("transpose")
def _transpose(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """transpose(x, 0 1 2) -> x; transpose(transpose(x, p), q) -> transpose(x, p[q])"""
    (x,) = operands
    perm = attributes["perm"]
    if perm == tuple(range(len(perm))):
        return x
    inner = context.made_by(x, "transpose")
    if inner is not None:
        first = inner.attributes["perm"]
        composed = tuple(first[i] for i in perm)
        return again(context, inner, (operand(context, inner),), perm=composed)
    return None


@rule("broadcast_to")
def _broadcast(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """broadcast_to(x, its shape) -> x; of a number -> that number in the shape"""
    (x,) = operands
    shape = attributes["shape"]
    if x.shape == shape:
        return x
    number = context.made_by(x, "fill")
    if number is not None:
        return again(context, number, (), shape=shape)
    return None


@rule("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_all", "reduce_any")
def _reduce(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """reduce(x, ()) -> x"""
    return operands[0] if attributes["axis"] == () else None


@rule("concat")
def _concat(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """concat((x,)) -> x"""
    return operands[0] if len(operands) == 1 else None


# ---- arithmetic ---------------------------------------------------------------------------------


@rule("neg")
def _neg(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """neg(neg(x)) -> x"""
    inner = context.made_by(operands[0], "neg")
    return None if inner is None else operand(context, inner)


def _is(context: Context, x: GraphTensor, value: float) -> bool:
    number = context.number(x)
    return number is not None and not isinstance(number, bool) and number == value


@rule("mul")
def _mul(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """x * 1 -> x, and 1 * x, where the shape stays"""
    x, y = operands
    out = _shape(x, y)
    if x.shape == out and _is(context, y, 1):
        return x
    if y.shape == out and _is(context, x, 1):
        return y
    return None


@rule("div")
def _div(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """x / 1 -> x, where the shape stays"""
    x, y = operands
    return x if x.shape == _shape(x, y) and _is(context, y, 1) else None


@rule("add")
def _add(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """x + -0.0 -> x, and -0.0 + x, where the shape stays; exact, unlike x + 0.0. Of integers also x
    + 0 -> x
    """
    x, y = operands
    out = _shape(x, y)
    for a, b in ((x, y), (y, x)):
        if a.shape == out and _is_nothing(context, b):
            return a
    return None


def _is_nothing(context: Context, x: GraphTensor) -> bool:
    """Whether adding `x` changes no bit: a complex one would."""
    number = context.number(x)
    if number is None or number != 0 or x.dtype.kind not in "fiu":
        return False
    return x.dtype.kind != "f" or str(number).startswith("-")


@rule("sub")
def _sub(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """x - 0 -> x, where the shape stays; exact, also for x = -0.0"""
    x, y = operands
    if x.shape != _shape(x, y) or not _is(context, y, 0):
        return None
    return None if str(context.number(y)).startswith("-") else x


def _shape(x: GraphTensor, y: GraphTensor) -> tuple[int, ...]:
    return np.broadcast_shapes(x.shape, y.shape)


_EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def _fold(name: str) -> Rule:
    """Two 0-d numbers -> the number; IEEE arithmetic gives the same bits here and in a kernel."""
    operation = _EXACT[name]

    def fold(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        x, y = operands
        a, b = context.made_by(x, "fill"), context.made_by(y, "fill")
        if (
            a is None
            or b is None
            or x.shape
            or y.shape
            or x.dtype.name not in ("float32", "float64")
        ):
            return None
        with np.errstate(all="ignore"):
            value = operation(
                np.array(a.attributes["value"], x.dtype.np),
                np.array(b.attributes["value"], y.dtype.np),
            )
        return again(context, a, (), value=float(value))

    fold.__doc__ = f"{name}(number, number) -> number"
    return fold


for _name in _EXACT:
    rule(_name)(_fold(_name))
