"""Rewrites calls that do nothing, or undo each other, or are known while compiling.

Every rule keeps the value bit for bit: there is no x + 0.0 -> x here (-0.0 + 0.0 is 0.0), but there is x * 1.0 -> x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import DType
from ..ir.builder import GraphBuilder, GraphTensor
from ..ir.graph import Graph, GraphNode

__all__ = ["simplify", "RULES"]


class Context:
    """The graph being rewritten: which node made a value of the new graph."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.maker: dict[int, GraphNode] = {}

    def made_by(self, x: GraphTensor, op: str) -> GraphNode | None:
        """The node that made `x`, if it is a call of that op."""
        node = self.maker.get(x._id)
        return node if node is not None and node.op.name == op else None

    def number(self, x: GraphTensor) -> Any:
        """The value of `x` when it is the same number everywhere, else None."""
        node = self.made_by(x, "fill")
        return None if node is None else node.attributes["value"]


Rule = Callable[[Context, tuple[Any, ...], dict[str, Any]], Any]
RULES: dict[str, list[Rule]] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Enter a rewrite under the ops it looks at. It returns the value that stands for the call, or None."""

    def enter(function: Rule) -> Rule:
        for name in ops:
            RULES.setdefault(name, []).append(function)
        return function

    return enter


def simplify(graph: Graph) -> Graph:
    """Rebuild the graph, each call through the rules of its op until none fits."""
    context = Context()
    builder = context.builder
    env: dict[int, GraphTensor | None] = {
        i: builder.parameter(graph.types[i]) for i in range(graph.n_params)
    }
    for node in graph.nodes:
        operands = tuple(None if i is None else env[i] for i in node.operands)
        found = _apply(context, node, operands)
        made = (found,) if node.single else found
        env.update(zip(node.results, made, strict=True))
    outputs = tuple(env[i] for i in graph.outputs)
    return builder.finish(outputs[0] if graph.single else outputs)


def _apply(context: Context, node: GraphNode, operands: tuple[Any, ...]) -> Any:
    for rewrite in RULES.get(node.op.name, ()):
        found = rewrite(context, operands, dict(node.attributes))
        if found is not None:
            return found
    out = context.builder.append(node.op, operands, node.attributes)
    made = context.builder.nodes[-1]
    for i in made.results:
        context.maker[i] = made
    return out


def _again(context: Context, node: GraphNode, operands: tuple[Any, ...], **attributes: Any) -> Any:
    """The op of `node` with other operands and attributes, through the rules."""
    from dataclasses import replace

    return _apply(context, replace(node, attributes={**node.attributes, **attributes}), operands)


def _operand(context: Context, node: GraphNode, k: int = 0) -> GraphTensor:
    i = node.operands[k]
    assert i is not None
    return context.builder.tensor(i)


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
        source = _operand(context, inner)
        if source.dtype is dtype and _holds(x.dtype, dtype):
            return source
    number = context.made_by(x, "fill")
    if number is not None:
        with np.errstate(all="ignore"):
            value = np.array(number.attributes["value"], x.dtype.np).astype(dtype.np).item()
        return _again(context, number, (), value=value, dtype=dtype)
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
        return _again(context, inner, (_operand(context, inner),), shape=attributes["shape"])
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
        return _again(context, inner, (_operand(context, inner),), perm=composed)
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
        return _again(context, number, (), shape=shape)
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
    return None if inner is None else _operand(context, inner)


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
        return _again(context, a, (), value=float(value))

    fold.__doc__ = f"{name}(number, number) -> number"
    return fold


for _name in _EXACT:
    rule(_name)(_fold(_name))
