"""Patterns of graph nodes, and tables of rewrite rules that are indexed by op.

A rule is a statement for the reader, a pattern, and a function that computes the replacement:

    rule(
        "transpose(transpose(x, p), q) -> transpose(x, p[q])",
        call(transpose, call(transpose, X, perm="p"), perm="q"),
        lambda g, x, p, q: g.call(transpose, x, perm=compose(p, q)),
    )

A match binds the names in the pattern: those of operands to value ids (None for an absent operand),
those of attributes to the attributes' values. `rewriting` and `replacing` apply the rules and say
what a rule's function receives and returns. This module changes no graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ..ir.control import host_constant
from ..ir.graph import Attributes, GraphNode
from ..op import Op
from .matched_ops import constant, fill

__all__ = [
    "Bindings",
    "Call",
    "Producers",
    "Rule",
    "Rules",
    "Value",
    "call",
    "known",
    "known_value",
    "number",
    "rule",
]

# Value id -> the node that produces the value; parameters have no entry.
Producers: TypeAlias = Mapping[int | None, GraphNode]
# What the names in a pattern stand for: a value id, a sequence of them, or an attribute.
Bindings: TypeAlias = dict[str, Any]
R = TypeVar("R")


class Value:
    """Rewrite pattern that matches any graph value; base class of all rewrite patterns.

    Attributes:
        name: the name that a match binds to the value's id.
        value_names: all names in this pattern that a match binds to value ids or tuples of them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.value_names: tuple[str, ...] = (name,) if name else ()

    def binds(self, i: int | None, producers: Producers, found: Bindings) -> bool:
        """Return whether graph value `i` matches this pattern; if so, store its names in `found`.

        `producers` maps value ids to the nodes that compute them. A name that occurs twice in a
        pattern must match the same value both times. After a failed match, `found` may have some of
        the names.
        """
        return found.setdefault(self.name, i) == i


class Number(Value):
    """Rewrite pattern that matches the result of a `fill` node, a tensor of equal elements.

    `wanted` is the number that it must be filled with; None matches any.
    """

    def __init__(self, name: str, wanted: float | None) -> None:
        super().__init__(name)
        self.wanted = wanted

    def binds(self, i: int | None, producers: Producers, found: Bindings) -> bool:
        """Return whether value `i` is a `fill` of the wanted number; if so, store its id."""
        node = producers.get(i)
        if node is None or node.op is not fill:
            return False
        value = node.attributes["value"]
        if self.wanted is not None and (isinstance(value, bool) or value != self.wanted):
            return False
        return super().binds(i, producers, found)


class Known(Value):
    """Rewrite pattern that matches a Python value or constant tensor known at compile time.

    The constant tensors are those of one element and those filled with one number. A match binds
    the name to the Python number or object, not to the value id.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.value_names = ()

    def binds(self, i: int | None, producers: Producers, found: Bindings) -> bool:
        value = known_value(i, producers)
        return value is not None and found.setdefault(self.name, value) is value


def known_value(i: int | None, producers: Producers) -> Any:
    """Return the Python value of a host constant or constant tensor, else None.

    A constant tensor is a `constant` of one element or a `fill`; its value is that number.
    `producers` maps value ids to the nodes that compute them.
    """
    node = producers.get(i)
    if node is None:
        return None
    if node.op is host_constant:
        return node.attributes["value"].value
    if node.op is fill:
        return node.attributes["value"]
    if node.op is constant and node.attributes["value"].array.size == 1:
        return node.attributes["value"].array.item()
    return None


class Call(Value):
    """Rewrite pattern that matches the result of calling one of several ops.

    Attributes:
        ops: the ops.
        operands: a pattern for each operand, or for the first ones if `rest` names the others.
        attributes: pairs (attribute of the op, name to which a match binds its value).
        rest: the name that a match binds to the tuple of remaining operands; "" allows no further
            operands.
        commutative: whether two operands may also match in reverse order, which is tried second.
        name: the name that a match binds to the result's id; "" binds no name.
    """

    def __init__(
        self,
        ops: Sequence[Op],
        operands: Sequence[Value],
        attributes: Mapping[str, str],
        rest: str,
        commutative: bool,
        name: str,
    ) -> None:
        super().__init__(name)
        self.ops = frozenset(ops)
        self.operands = tuple(operands)
        self.attributes = tuple(attributes.items())
        self.rest = rest
        self.commutative = commutative
        own = [name, rest, *(n for each in operands for n in each.value_names)]
        self.value_names = tuple(dict.fromkeys(n for n in own if n))

    def binds(self, i: int | None, producers: Producers, found: Bindings) -> bool:
        node = producers.get(i)
        if node is None or node.op not in self.ops:
            return False
        if self.name and not super().binds(i, producers, found):
            return False
        return self.binds_call(node.operands, node.attributes, producers, found)

    def binds_call(
        self,
        operands: Sequence[int | None],
        attributes: Attributes,
        producers: Producers,
        found: Bindings,
    ) -> bool:
        """Return whether operands and attributes match; if so, store the bound names in `found`."""
        patterns = self.operands
        missing = len(patterns) - len(operands)
        if missing > 0 or (missing < 0 and not self.rest):
            return False
        if self.rest:
            found[self.rest] = tuple(operands[len(patterns) :])
        for pattern, i in zip(patterns, operands):
            if not pattern.binds(i, producers, found):
                return False
        for attribute, name in self.attributes:
            found[name] = attributes[attribute]
        return True

    def matches(
        self, operands: Sequence[int | None], attributes: Attributes, producers: Producers
    ) -> Iterator[Bindings]:
        """Yield a dict of bound names for each way in which an op call matches this pattern."""
        found: Bindings = {}
        if self.binds_call(operands, attributes, producers, found):
            yield found
        if self.commutative:
            found = {}
            if self.binds_call(operands[::-1], attributes, producers, found):
                yield found


def call(
    ops: Op | Sequence[Op],
    *operands: Value,
    rest: str = "",
    commutative: bool = False,
    result: str = "",
    **attributes: str,
) -> Call:
    """Return a pattern for calls of one of `ops` whose operands match the given patterns.

    Args:
        ops: the op, or several.
        operands: a pattern for each operand.
        rest: name for the tuple of further operands; "" allows no further operands.
        commutative: whether two operands may match in either order.
        result: name for the result's id; "" for none.
        attributes: name for the value of each attribute, such as ``perm="p"``.
    """
    several = (ops,) if isinstance(ops, Op) else ops
    return Call(several, operands, attributes, rest, commutative, result)


def number(name: str, wanted: float | None = None) -> Number:
    """Return a rewrite pattern for a tensor of equal elements: `wanted`, or any number if None."""
    return Number(name, wanted)


def known(name: str) -> Known:
    """Return a rewrite pattern for a value that is known at compile time.

    It matches a Python number or object, a one-element `constant`, and a `fill` of any shape. A
    match binds `name` to the Python value.
    """
    return Known(name)


class Rule(NamedTuple, Generic[R]):
    """A graph rewrite rule: the pattern of a call and a function that computes its replacement.

    Attributes:
        statement: the text `pattern -> replacement`, for the reader.
        pattern: pattern of the calls that the rule replaces.
        replace: function that receives the bound names as keyword arguments and returns the
            replacement, or None to leave the call unchanged.
    """

    statement: str
    pattern: Call
    replace: Callable[..., R | None]


def rule(statement: str, pattern: Call, replace: Callable[..., R | None]) -> Rule[R]:
    """Return a graph rewrite rule; `statement` describes it as ``pattern -> replacement``."""
    return Rule(statement, pattern, replace)


class Rules(Generic[R]):
    """Graph rewrite rules: `rules` in order, and `by_op` by the op whose calls they replace."""

    def __init__(self, rules: Sequence[Rule[R]]) -> None:
        self.rules = tuple(rules)
        self.by_op: dict[Op, list[Rule[R]]] = {}
        for each in rules:
            for op in each.pattern.ops:
                self.by_op.setdefault(op, []).append(each)
