"""Parses printed graphs; `ir.text` describes the format.

Tests, tools and readers of bug reports use it. A printed graph does not contain the Python
functions of its host calls; in their place the parser puts functions that raise an error when they
run. The parser must neither import nor call anything that a text names, because the text may come
from anyone.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from ..dtype import as_dtype
from ..effects import IO, Communicates, Effect, Random, Reads, Writes
from ..errors import GraphError
from ..op import OPS
from ..types import BOOL, FLOAT, INT, OBJECT, STACK, TensorType, ValueType
from .control import HostCall, HostConstant
from .graph import FrozenArray, Graph, GraphNode, NamedGraph

__all__ = ["parse"]

_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_NAMES = {**_NUMBERS, "Ellipsis": ..., "True": True, "False": False, "None": None}
_HOST_TYPES = {t.name: t for t in (INT, FLOAT, BOOL, OBJECT, STACK)}
# Attributes that hold types: there, `bool` is the host type and not the dtype.
_TYPE_ATTRIBUTES = {"types", "kind"}
_HEAD = re.compile(r"graph\(([^()]*)\)(.*)")
_BLOCK = re.compile(r"(\w+)(?:\[(\d+)\])? = (graph\(.*)")
_NAMED = re.compile(r"(@[\w.]+) = (.*)")
_NODE = re.compile(r"(?:(%.*?) = )?(\w+)\((.*)\)")
_TYPE = re.compile(r"(\w+)\[([\d, ]*)\]")
# Brackets inside each other in a line, and graphs inside each other; both are read recursively.
_DEPTH = 100
# Characters of a Python object that is printed as a literal; `ir.text` prints no longer ones.
_LONGEST = 1000


class _Shown:
    """Placeholder in a parsed graph for a Python object of which only the printed form is known."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _outside(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield (index, character, bracket depth) for each character outside of string literals."""
    depth = 0
    quote = ""
    escaped = False
    for i, c in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c == quote:
                quote = ""
        elif c in "'\"":
            quote = c
        else:
            yield i, c, depth
            if c in "([{":
                depth += 1
                if depth > _DEPTH:
                    raise ValueError(f"more than {_DEPTH} brackets inside each other")
            elif c in ")]}":
                depth -= 1


def _split(text: str) -> list[str]:
    """Split a text at its commas, except those in brackets and strings."""
    cuts = [-1, *(i for i, c, depth in _outside(text) if c == "," and depth == 0), len(text)]
    items = [text[a + 1 : b].strip() for a, b in itertools.pairwise(cuts)]
    return items if items[-1] else items[:-1]


def _strip(line: str) -> str:
    """Return a line of a printed graph without its comment and surrounding white space."""
    for i, c, _ in _outside(line):
        if c == "#":
            return line[:i].strip()
    return line.strip()


def _type(text: str) -> ValueType:
    """Return the tensor or host type that a text such as "float32[2, 3]" or "int" names."""
    text = text.strip()
    if text in _HOST_TYPES:
        return _HOST_TYPES[text]
    found = _TYPE.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is no type; wanted one such as float32[2, 3], or a host type such as int"
        )
    shape = tuple(int(n) for n in found[2].split(",") if n.strip())
    return TensorType.of(shape, as_dtype(found[1]))


def _effect(text: str) -> Effect:
    """Return the side effect that a text such as "io" or "writes(x)" names."""
    name, _, operand = text.rstrip(")").partition("(")
    plain: dict[str, Callable[[], Effect]] = {
        "io": IO, "random": Random, "communicates": Communicates,
    }  # fmt: skip
    named: dict[str, Callable[[str], Effect]] = {"reads": Reads, "writes": Writes}
    if name in plain and not operand:
        made: Effect = plain[name]()
    elif name in named and operand:
        made = named[name](operand)
    else:
        raise ValueError(
            f"there is no effect {text!r}; wanted io, random, communicates, reads(operand) or "
            "writes(operand)"
        )
    return made


def _tail(text: str) -> tuple[list[ValueType], frozenset[Effect]]:
    """Parse the end of a printed node, such as ` : float32[3] ! io`: its types and effects."""
    kinds, _, effects = text.partition("!")
    kinds = kinds.strip()
    if kinds and not kinds.startswith(":"):
        raise ValueError(f"got {kinds!r}; wanted `: type`")
    types = [_type(k) for k in _split(kinds[1:])]
    return types, frozenset(_effect(e) for e in _split(effects))


class _Reader:
    """Parser of a printed graph, line by line.

    Attributes:
        lines: (number, text without comment, whole text) of each line that is not empty.
        at: number of these lines that have been read.
        last: number and text of the line that was read last; errors name it.
        depth: how many graphs enclose the current line.
        named: name -> graph that the text defines or calls by this name.
        defined: names of the graphs that the text has defined so far.
    """

    def __init__(self, text: str) -> None:
        self.lines = [(i, _strip(line), line) for i, line in enumerate(text.splitlines(), 1)]
        self.lines = [found for found in self.lines if found[1]]
        self.at = 0
        self.last = (0, "")
        self.depth = 0
        self.named: dict[str, NamedGraph] = {}
        self.defined: set[str] = set()

    def next(self, wanted: str) -> str:
        """Return the next line without its comment; at the end of the text, raise ValueError.

        `wanted` says in the error what the line should have been.
        """
        if self.at == len(self.lines):
            raise ValueError(f"the text ends here; wanted {wanted}")
        number, line, whole = self.lines[self.at]
        self.at += 1
        self.last = (number, whole)
        return line

    def target(self, name: str) -> NamedGraph:
        """Return the named graph of a name such as "@walk", created at the name's first mention."""
        found = self.named.get(name)
        if found is None:
            found = self.named[name] = NamedGraph(name[1:], ())
        return found

    def program(self) -> Graph:
        """Parse the main graph and the named graphs after it; return the main graph."""
        line = self.next("`graph(%0: type, ...) {`")
        made, _ = self.graph(line)
        while self.at < len(self.lines):
            line = self.next("a named graph")
            found = _NAMED.fullmatch(line)
            if found is None:
                raise ValueError(
                    "wanted `@name = graph(%0: type, ...) : type {`, or the end of the text"
                )
            name, rest = found.groups()
            if name in self.defined:
                raise ValueError(f"{name} is defined twice")
            self.defined.add(name)
            target = self.target(name)
            if rest.startswith("unfinished"):
                types, effects = _tail(rest[len("unfinished") :])
            else:
                target.graph, (types, effects) = self.graph(rest)
            target.result_types, target.effects = tuple(types), effects
        for name in self.named:
            if name not in self.defined:
                raise ValueError(f"{name} is called and not defined")
        return made

    def graph(self, line: str) -> tuple[Graph, tuple[list[ValueType], frozenset[Effect]]]:
        """Parse a graph whose header is `line`, up to its closing brace.

        Returns the graph, and the (types, effects) that its header declares.
        """
        self.depth += 1
        if self.depth > _DEPTH:
            raise ValueError(f"more than {_DEPTH} graphs inside each other")
        head = _HEAD.fullmatch(line.removesuffix("{").strip())
        if head is None or not line.endswith("{"):
            raise ValueError("wanted `graph(%0: type, ...) {`")
        scope = _Scope(self)
        for item in _split(head[1]):
            name, _, kind = item.partition(":")
            scope.define(name.strip(), _type(kind))
        n_params = len(scope.types)
        tail = _tail(head[2])
        nodes: list[GraphNode] = []
        while True:
            line = self.next("a node, or `return`")
            if line == "}":
                raise ValueError("wanted `return` before the closing brace")
            if line == "return" or line.startswith("return "):
                break
            nodes.append(scope.node(line))
        listed = line[len("return") :].strip()
        outputs = tuple(scope.use(n) for n in _split(listed))
        single = len(outputs) == 1 and not listed.endswith(",")
        if self.next("the closing brace") != "}":
            raise ValueError("wanted the closing brace after `return`")
        self.depth -= 1
        return Graph(n_params, scope.types, nodes, outputs, single), tail


class _Scope:
    """Parser of the nodes of one graph, which knows the graph's values so far.

    Attributes:
        reader: the parser that reads the lines of the text.
        names: name of a value, such as "%3" -> its id.
        types: types of the values, by id.
    """

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.names: dict[str, int] = {}
        self.types: list[ValueType] = []

    def define(self, name: str, type_: ValueType) -> int:
        """Add a value with this name and type to the graph; return its id."""
        if name in self.names:
            raise ValueError(f"{name} is defined twice")
        self.names[name] = len(self.types)
        self.types.append(type_)
        return self.names[name]

    def use(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"{name} is used before it is defined")
        return self.names[name]

    def node(self, line: str) -> GraphNode:
        """Parse a graph node from its line, and from the lines of its sub-graphs after it."""
        has_blocks = line.endswith("{")
        line = line.removesuffix("{").strip()
        # the operands end with the bracket that closes them; effects may contain brackets too
        end = next((i for i, c, depth in _outside(line) if c == ")" and depth == 1), 0)
        found = _NODE.fullmatch(line[: end + 1])
        if found is None:
            raise ValueError("wanted `%n = op(operands, attribute=value) : type`")
        left, op_name, inside = found.groups()
        tail = line[end + 1 :]
        op = OPS.get(op_name)
        if op is None:
            raise ValueError(f"there is no op {op_name!r}")
        operands: list[int | None] = []
        given: dict[str, object] = {}
        for item in _split(inside):
            if item == "none":
                operands.append(None)
            elif item.startswith("%"):
                operands.append(self.use(item))
            else:
                key, _, value = item.partition("=")
                if key in given:
                    raise ValueError(f"got two values for {key}")
                given[key] = self.value(value, key in _TYPE_ATTRIBUTES and op.graph_only)
        result_types, _ = _tail(tail)
        left = left or ""
        result_names = _split(left)
        if len(result_names) != len(result_types):
            raise ValueError(f"{len(result_names)} results and {len(result_types)} types")
        if has_blocks:
            given.update(self.blocks())
        attributes = {k: given.pop(k) for k in op.attribute_names if k in given}
        results = tuple(self.define(n, t) for n, t in zip(result_names, result_types, strict=True))
        single = len(results) == 1 and not left.rstrip().endswith(",")
        return GraphNode(op, tuple(operands), {**attributes, **given}, results, single)

    def blocks(self) -> dict[str, Graph | tuple[Graph, ...]]:
        """Parse the sub-graphs of a printed node, up to the closing brace of the node.

        Returns a dict: name of an attribute of the node -> its sub-graph or tuple of sub-graphs.
        """
        made: dict[str, Graph | tuple[Graph, ...]] = {}
        while True:
            line = self.reader.next("a graph inside the node, or the closing brace")
            if line == "}":
                return made
            found = _BLOCK.fullmatch(line)
            if found is None:
                raise ValueError("wanted `attribute = graph(%0: type, ...) {`")
            name, index, rest = found.groups()
            if index is None:
                made[name], _ = self.reader.graph(rest)
            else:
                several = made.setdefault(name, ())
                if not isinstance(several, tuple) or index != str(len(several)):
                    raise ValueError(f"got {name}[{index}]; wanted {name}[0], {name}[1], ...")
                made[name] = (*several, self.reader.graph(rest)[0])

    def value(self, text: str, is_type: bool = False) -> Any:
        """Parse the text of a node's attribute; return the Python value.

        With `is_type`, the text names types of graph values: each is a `TensorType` or a
        `HostType`, and `bool` is the type of Python bools. Otherwise `bool` is the dtype.
        """
        if text[:1] in "([":
            items = _split(text[1:-1])
            if text[0] == "(" and len(items) == 1 and not text[1:-1].rstrip().endswith(","):
                return complex(text[1:-1])
            inner = [self.value(v, is_type) for v in items]
            return tuple(inner) if text[0] == "(" else inner
        if is_type:
            return _type(text)
        if text in _NAMES:
            return _NAMES[text]
        if text.startswith("array("):
            name, shape, values = _split(text[len("array(") : -1])
            if values == "...":
                raise ValueError("the elements of an array were left out; wanted to_text(graph)")
            dtype = as_dtype(name)
            data = np.array(self.value(values), dtype.np)
            return FrozenArray(data.reshape(self.value(shape)))
        if text.startswith("@"):
            return self.reader.target(text)
        if text.startswith("host("):
            return HostConstant(_host_value(text[len("host(") : -1]))
        if text.startswith("host."):
            return _unknown_call(text[len("host.") :])
        if text.isidentifier():
            return as_dtype(text)
        return _literal(text)


def _literal(text: str) -> object:
    """Parse a string literal or a number."""
    if text[:1] in ("'", '"'):
        return ast.literal_eval(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return complex(text)


def _host_value(text: str) -> object:
    """Parse a printed Python object: return a number, a literal, or else a `_Shown`."""
    if text in _NUMBERS:
        return _NUMBERS[text]
    if text in _NAMES:
        return _NAMES[text]
    if text.startswith("<of "):
        return _Shown(text)
    if len(text) > _LONGEST:
        raise ValueError(f"a literal of {len(text)} characters; wanted at most {_LONGEST}")
    try:
        return ast.literal_eval(text)
    except (MemoryError, RecursionError):
        raise ValueError("a literal is nested too deeply") from None


def _unknown_call(name: str) -> HostCall:
    def refuse(*_: object) -> NoReturn:
        raise GraphError(
            f"host.{name}: the graph was read from text, which holds no Python functions; "
            "wanted the graph that was compiled"
        )

    return HostCall(refuse, name)


def parse(text: str) -> Graph:
    """Return the graph that a text printed by `to_text` describes.

    Raises:
        GraphError: the text does not describe a graph; the message names the line.
    """
    try:
        reader = _Reader(text)
    except ValueError as error:
        raise GraphError(f"graph text: {error}") from None
    if len(reader.lines) < 3:
        raise GraphError("graph text: got less than a head, a return and a brace")
    try:
        return reader.program()
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        SyntaxError,
    ) as error:
        number, line = reader.last
        raise GraphError(f"graph text, line {number}: {error}\n  {line.strip()}") from None
