"""The text form and the verifier on graphs with control flow, calls and host values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from duograph.dtype import bool_, float32, int32
from duograph.effects import IO
from duograph.errors import GraphError
from duograph.ir.control import (
    HostCall,
    host_call,
)
from duograph.ir.graph import Graph, GraphNode, NamedGraph
from duograph.ir.text import parse, to_text
from duograph.ir.verify import verify
from duograph.op import OPS
from duograph.ops.elementwise import add
from duograph.types import BOOL, FLOAT, INT, OBJECT, STACK, TensorType
from ir.graphs import branch, here, host, invoke, number, write
from ir.running import Span, again, append, compare, execute

V = TensorType.of((3,), float32)
N = TensorType.of((), int32)
FLAG = TensorType.of((), bool_)
X = np.array([1.0, 2.0, 3.0], np.float32)


# ---- text ---------------------------------------------------------------------------------------


def test_str_shows_locations_effects_and_sub_graphs() -> None:
    walk = NamedGraph("walk", (V,))
    walk.graph = write([V], lambda x: x)
    show = HostCall(lambda x: (), "print")

    def program(c: Any, x: Any) -> Any:
        here().span = Span
        y = add(x, x)
        here().span = None
        return branch(
            c,
            [y],
            lambda x: x,
            lambda x: (append(host_call, [x], run=show, types=()), invoke(walk, x))[1],
        )

    graph = write([BOOL, V], program)
    assert (
        str(graph)
        == """\
graph(%0: bool, %1: float32[3]) {
  %2 = add(%1, %1) : float32[3]  # model.py:12
  %3, = switch(%0, %2) : float32[3] ! io {
    branches[0] = graph(%0: float32[3]) {
      return %0,
    }
    branches[1] = graph(%0: float32[3]) {
      host_call(%0, run=host.print, types=()) ! io
      %1, = call(%0, target=@walk) : float32[3]
      return %1,
    }
  }
  return %3,
}
@walk = graph(%0: float32[3]) : float32[3] {
  return %0,
}"""
    )
    found = again_without_spans(graph)
    with pytest.raises(GraphError, match=r"host.print: the graph was read from text"):
        execute(found, [True, X])


def again_without_spans(graph: Graph) -> Graph:
    found = verify(parse(to_text(graph)))
    assert (
        to_text(found)
        == to_text(graph).replace("  # model.py:12", "")
        == to_text(graph, locations=False)
    )
    return found


def test_only_str_abbreviates_large_arrays() -> None:
    graph = write([], lambda: number(np.arange(40, dtype=np.int32), None))
    assert "..." in str(graph)
    assert "..." not in to_text(graph)
    compare(graph, [], [np.arange(40, dtype=np.int32)], "Reference")
    with pytest.raises(GraphError, match="elements of an array were left out"):
        parse(str(graph))


CONSTANTS = [
    0,
    -1,
    True,
    2.5,
    math.inf,
    -math.inf,
    "a, b) # { \\' \" \\",
    "",
    None,
    (1, "x", (2.0,)),
    1 + 2j,
]


@pytest.mark.parametrize("value", CONSTANTS)
def test_constants_as_text(value: Any) -> None:
    graph = again(write([], lambda: host(value)))
    (found,) = execute(graph, [])
    assert found == value
    assert type(found) is type(value)


def test_an_index_as_text() -> None:
    graph = write([V], lambda x: x[..., None, 1:])
    assert "Ellipsis" in str(graph)
    compare(graph, [X], [X[..., None, 1:]], "Reference")


def test_objects_are_shown_by_their_class() -> None:
    graph = write([], lambda: host({1: object()}))
    assert "host(<of dict>)" in str(graph)
    again(again(graph))


BAD_TEXT = [
    ("%1 = nothing(%0) : int32[]", "there is no op 'nothing'"),
    ("%1 = neg(%7) : int32[]", "%7 is used before it is defined"),
    ("%1 = neg(%0) : int31[]", "int31"),
    ("%1 = neg(%0) : integer", "is no type"),
    ("%1, %2 = neg(%0) : int32[]", "2 results and 1 types"),
    ("%1 = neg(%0 : int32[]", "wanted `%n = op"),
    ("%0 = neg(%0) : int32[]", "%0 is defined twice"),
    ("%1, = call(%0, target=@f) : int32[]", "@f is called and not defined"),
    (
        "%1, = while_loop(%0, n_carry=1) : int32[] {\nbody = graph(%0: int32[]) {\n}",
        "wanted `return`",
    ),
    ("%1, = switch(%0) : int32[] {\nbranches[1] = graph() {\n}\n}", r"wanted branches\[0\]"),
    ("%1, = switch(%0) : int32[] {", "the text ends here|wanted `attribute"),
]


@pytest.mark.parametrize(("line", "pattern"), BAD_TEXT)
def test_parser_rejects(line: str, pattern: str) -> None:
    with pytest.raises(GraphError, match=rf"(?s)graph text, line \d+: .*({pattern})"):
        parse(f"graph(%0: int32[]) {{\n{line}\n  return %0\n}}")


# ---- the verifier -------------------------------------------------------------------------------


def by_hand(types: Sequence[Any], n_params: int, *nodes: GraphNode, outputs: Any = ()) -> Graph:
    return Graph(n_params, list(types), list(nodes), tuple(outputs), False)


def node(
    name: str, operands: Any, results: Any, single: bool = False, **attributes: Any
) -> GraphNode:
    return GraphNode(OPS[name], tuple(operands), attributes, tuple(results), single)


EMPTY = by_hand([V], 1, outputs=[0])
OUTSIDE = by_hand([V, V], 1, node("neg", [5], [1], True), outputs=[1])
OTHER = by_hand([N], 1, outputs=[0])
NARROW = by_hand([V, N], 1, node("neg", [0], [1], True), outputs=[1])


def named(result: Any, graph: Graph | None, effects: Any = ()) -> NamedGraph:
    made = NamedGraph("f", (result,))
    made.graph, made.effects = graph, frozenset(effects)
    return made


NOISY = by_hand(
    [V], 1, node("host_call", [0], [], run=HostCall(print, "print"), types=()), outputs=[0]
)

WRONG: dict[str, tuple[Graph, str]] = {
    "branches of different types": (
        by_hand([BOOL, V, V], 2, node("switch", [0, 1], [2], branches=(EMPTY, by_hand([V], 1)))),
        "branch 1 returns",
    ),
    "operands that no branch takes": (
        by_hand([BOOL, V, V], 2, node("switch", [0, 1], [2], branches=(EMPTY, OTHER))),
        "switch, branch 1: got operands",
    ),
    "a float as index": (
        by_hand([FLOAT, V, V], 2, node("switch", [0, 1], [2], branches=(EMPTY, EMPTY))),
        "got an index float",
    ),
    "a vector as predicate": (
        by_hand([V, V, V], 2, node("while_loop", [0, 1], [2], body=EMPTY, n_carry=1)),
        "got a predicate",
    ),
    "a body without predicate": (
        by_hand([BOOL, V, V], 2, node("while_loop", [0, 1], [2], body=EMPTY, n_carry=1)),
        "its body returns",
    ),
    "a value from outside": (
        by_hand([BOOL, V, V], 2, node("switch", [0, 1], [2], branches=(EMPTY, OUTSIDE))),
        r"neg: operand %5 is used before.*\n(?s:.*)in a graph of\n> .*switch",
    ),
    "a wrong type inside": (
        by_hand([BOOL, V, N], 2, node("switch", [0, 1], [2], branches=(NARROW, NARROW))),
        "results are recorded as",
    ),
    "a host number for a tensor": (
        by_hand([INT, V], 1, node("neg", [0], [1], True)),
        "operand %0 is a host int",
    ),
    "a bare result of an op that returns tuples": (
        by_hand([BOOL, V, V], 2, node("switch", [0, 1], [2], True, branches=(EMPTY, EMPTY))),
        "says one result",
    ),
    "a call of what was never finished": (
        by_hand([V, V], 1, node("call", [0], [1], target=named(V, None))),
        "@f: is called and was never finished",
    ),
    "a call with other operands": (
        by_hand([N, V], 1, node("call", [0], [1], target=named(V, EMPTY))),
        "call of @f: got operands",
    ),
    "a named graph with other results": (
        by_hand([V, N], 1, node("call", [0], [1], target=named(N, EMPTY))),
        "@f: declares results",
    ),
    "a named graph with more effects": (
        by_hand([V, V], 1, node("call", [0], [1], target=named(V, NOISY))),
        "effects that it does not declare: IO",
    ),
    "a frame of no stack": (
        by_hand([V, STACK], 1, node("stack_push", [0], [1], True)),
        "wanted a stack",
    ),
    "arithmetic of objects": (
        by_hand([OBJECT, INT], 1, node("scalar", [0, 0], [1], True, function="add")),
        "wanted host numbers",
    ),
    "a vector as a number": (
        by_hand([V, INT], 1, node("to_host", [0], [1], True, kind=INT)),
        "wanted a Tensor of one element",
    ),
}


@pytest.mark.parametrize("title", WRONG)
def test_verifier_finds(title: str) -> None:
    graph, pattern = WRONG[title]
    with pytest.raises(GraphError, match=pattern):
        verify(graph)


def test_verifier_accepts_declared_effects() -> None:
    verify(by_hand([V, V], 1, node("call", [0], [1], target=named(V, NOISY, [IO()])), outputs=[1]))


def test_graph_only_ops_are_not_public() -> None:
    import duograph.ops as ops

    for name in ("switch", "while_loop", "call", "to_host", "host_constant"):
        assert OPS[name].graph_only
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(ops, name)
