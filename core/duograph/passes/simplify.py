"""Graph pass that removes calls which do nothing, cancel each other, or have constant operands.

Every rule must keep the value bit for bit: there is no rule x + 0.0 -> x, because -0.0 + 0.0 is
0.0, but there is a rule x * 1.0 -> x. The pass is part of `passes.CLEANUP`, which runs at every jit
level.

    %1 = transpose(%0, perm=(1, 0))
    %2 = transpose(%1, perm=(1, 0))          ->      %4 = relu(%0)
    %3 = mul(%2, fill(value=1.0))
    %4 = relu(%3)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from ..dims import is_symbolic, symbols_in
from ..dtype import DType, bool_
from ..ir.builder import GraphTensor
from ..ir.graph import Graph
from ..op import OPS
from ..types import broadcast_shapes
from .constant_folding import HOST_FOLDS, fold_constants
from .context import PLAIN, PassContext
from .inlining import INLINING
from .matched_ops import (
    add,
    broadcast_to,
    cast,
    concat,
    div,
    fill,
    identity,
    mul,
    neg,
    reshape,
    sub,
    transpose,
)
from .patterns import Value, call, number, rule
from .rewriting import Found, Rewriter, RewriteRule, RewriteRules

__all__ = ["RULES", "simplify"]


def simplify(graph: Graph, context: PassContext = PLAIN) -> Graph:
    """Apply the rewrite rules of RULES to every call of a graph and its sub-graphs.

    Returns a new graph that computes the same values bit for bit.
    """
    return Rewriter(RULES, fold_constants, {}).graph(graph)


X, Y, ONE, ZERO = Value("x"), Value("y"), number("one", 1), number("zero", 0)
LOGICAL = [OPS["reduce_all"], OPS["reduce_any"]]
REDUCTIONS = [op for op in OPS.values() if op.traits.reduction and op not in LOGICAL]


def if_shaped(x: GraphTensor, y: GraphTensor) -> GraphTensor | None:
    """Return `x` if broadcasting it with `y` would not change its shape, else None.

    Rules such as ``x * 1 -> x`` use it: the result must have the shape of the replaced call.
    """
    return x if x.shape == broadcast_shapes(x.shape, y.shape) else None


def holds(wide: DType, narrow: DType) -> bool:
    """Return whether dtype `wide` represents every value of dtype `narrow` exactly."""
    if wide.kind != narrow.kind or wide.kind == "b":
        return False
    if {wide.name, narrow.name} == {"float16", "bfloat16"}:
        return False
    return wide.itemsize > narrow.itemsize


def cast_number(g: Rewriter, x: GraphTensor, to: DType) -> Found | None:
    if is_symbolic(g.number(x)):
        return None
    with np.errstate(all="ignore"):
        value = np.array(g.number(x), x.dtype.np).astype(to.np).item()
    found: Found = g.call(fill, shape=x.shape, value=value, dtype=to)
    return found


def is_negative_zero(value: complex) -> bool:
    """Return whether a zero, or a part of a complex zero, has a minus sign."""
    return any(math.copysign(1, part) < 0 for part in (value.real, value.imag))


def add_zero(g: Rewriter, x: GraphTensor, zero: GraphTensor) -> Found | None:
    """Return `x` as the replacement of ``x + zero``, or None if the sum might differ from `x`.

    -0.0 + 0.0 is 0.0, so a floating-point zero must be -0.0; an integer zero has no sign.
    """
    kind = zero.dtype.kind
    if kind not in "fiu" or (kind == "f" and not is_negative_zero(g.number(zero))):
        return None
    return if_shaped(x, zero)


def by_one(g: Rewriter, x: GraphTensor, one: GraphTensor) -> Found | None:
    """Return `x` as the replacement of ``x * one`` or ``x / one``, or None for complex numbers.

    A complex product with 1 may differ from `x`: (inf + 0j) * (1 + 0j) has a NaN part, because 0 *
    inf is NaN.
    """
    return None if one.dtype.kind == "c" else if_shaped(x, one)


def subtract_zero(g: Rewriter, x: GraphTensor, zero: GraphTensor) -> Found | None:
    return None if is_negative_zero(g.number(zero)) else if_shaped(x, zero)


def fold_numbers(
    function: Callable[..., GraphTensor], g: Rewriter, x: GraphTensor, y: GraphTensor
) -> Found | None:
    """Compute a function of two constant 0-d floats at compile time; None for other operands.

    Returns the result as a `fill` in the new graph.
    """
    if x.shape or y.shape or x.dtype.name not in ("float32", "float64"):
        return None
    if symbols_in((g.number(x), g.number(y))):
        return None
    with np.errstate(all="ignore"):
        value = function(np.array(g.number(x), x.dtype.np), np.array(g.number(y), y.dtype.np))
    found: Found = g.call(fill, shape=(), value=float(value), dtype=x.dtype)
    return found


ALGEBRA: list[RewriteRule] = [
    rule("identity(x) -> x", call(identity, X), lambda g, x: x),
    rule(
        "cast(x, dtype of x) -> x",
        call(cast, X, dtype="to"),
        lambda g, x, to: x if x.dtype is to else None,
    ),
    rule(
        "cast(cast(x, wide), dtype of x) -> x, if wide holds all values of x",
        call(cast, call(cast, X, dtype="wide"), dtype="to"),
        lambda g, x, wide, to: x if x.dtype is to and holds(wide, to) else None,
    ),
    rule("cast(number, to) -> number", call(cast, number("x"), dtype="to"), cast_number),
    rule(
        "reshape(x, shape of x) -> x",
        call(reshape, X, shape="shape"),
        lambda g, x, shape: x if x.shape == shape else None,
    ),
    rule(
        "reshape(reshape(x, any), shape) -> reshape(x, shape)",
        call(reshape, call(reshape, X), shape="shape"),
        lambda g, x, shape: g.call(reshape, x, shape=shape),
    ),
    rule(
        "transpose(x, (0, 1, ..)) -> x",
        call(transpose, X, perm="p"),
        lambda g, x, p: x if p == tuple(range(len(p))) else None,
    ),
    rule(
        "transpose(transpose(x, p), q) -> transpose(x, p[q])",
        call(transpose, call(transpose, X, perm="p"), perm="q"),
        lambda g, x, p, q: g.call(transpose, x, perm=tuple([p[i] for i in q])),
    ),
    rule(
        "broadcast_to(x, shape of x) -> x",
        call(broadcast_to, X, shape="shape"),
        lambda g, x, shape: x if x.shape == shape else None,
    ),
    rule(
        "broadcast_to(number, shape) -> fill(shape, number)",
        call(broadcast_to, number("x"), shape="shape"),
        lambda g, x, shape: g.call(fill, shape=shape, value=g.number(x), dtype=x.dtype),
    ),
    rule(
        "reduce(x, axis=()) -> x",
        call(REDUCTIONS, X, axis="axis"),
        lambda g, x, axis: x if axis == () else None,
    ),
    rule(
        "all(x, axis=()) -> x, any(x, axis=()) -> x, of bools",
        call(LOGICAL, X, axis="axis"),
        lambda g, x, axis: x if axis == () and x.dtype is bool_ else None,
    ),
    rule("concat(x) -> x", call(concat, X), lambda g, x: x),
    rule("neg(neg(x)) -> x", call(neg, call(neg, X)), lambda g, x: x),
    rule(
        "x * 1 -> x of real numbers, if the shape stays",
        call(mul, X, ONE, commutative=True),
        by_one,
    ),
    rule("x / 1 -> x of real numbers, if the shape stays", call(div, X, ONE), by_one),
    rule(
        "x + -0.0 -> x, and x + 0 -> x of integers, if the shape stays",
        call(add, X, ZERO, commutative=True),
        add_zero,
    ),
    rule("x - 0.0 -> x, if the shape stays", call(sub, X, ZERO), subtract_zero),
]

ARITHMETIC: list[RewriteRule] = [
    rule(
        f"{op.name}(number, number) -> number, of 0-d floats",
        call(op, number("x"), number("y")),
        functools.partial(fold_numbers, function),
    )
    for op, function in ((add, np.add), (sub, np.subtract), (mul, np.multiply))
]

RULES: RewriteRules = RewriteRules([*HOST_FOLDS, *INLINING, *ALGEBRA, *ARITHMETIC])
