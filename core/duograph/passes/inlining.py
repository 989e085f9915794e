"""Puts the nodes of a graph in the place of the node that runs it, where that is known to happen
just once.

```
  %1 = host_constant(value=host(True)) : bool
  %2, = switch(%1, %0, branches=(.., graph(%0: float32[3]) {        ->      %2 = exp(%0) : float32[3]
    %1 = exp(%0) : float32[3]
    return %1,
  })) : float32[3]
```
"""

from __future__ import annotations

from typing import Any

from ..ir.graph import Graph, NamedGraph
from .rewriting import Context, rule

__all__ = ["recursive"]

# A graph that has grown to so many nodes takes in no further calls: they would double it level by
# level.
_LIMIT = 100_000


def _ids(operands: tuple[Any, ...]) -> list[int]:
    return [v._id for v in operands]


def _run(context: Context, graph: Graph, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    tensor = context.builder.tensor
    return tuple([tensor(i) for i in context.replay(graph, _ids(operands))])


@rule("switch")
def _switch(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """switch(number, ...) -> the nodes of that branch"""
    index = context.known(operands[0])
    if index is None or not 0 <= int(index) < len(attributes["branches"]):
        return None
    return _run(context, attributes["branches"][int(index)], operands[1:])


@rule("while_loop")
def _while(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """while_loop(False, ...) -> the carries"""
    going = context.known(operands[0])
    if going is None or going:
        return None
    return operands[1 : 1 + attributes["n_carry"]]


@rule("custom_call")
def _custom(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """custom_call(...) -> the nodes of its graph; what its backward is, is known by now"""
    return _run(context, attributes["graph"], operands)


@rule("call")
def _call(context: Context, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """call(...) -> the nodes of the callee, unless it can come to call itself"""
    target: NamedGraph = attributes["target"]
    key = ("recursive", target)
    found = context.done.get(key)
    if found is None:
        found = context.done[key] = recursive(target)
    if found or len(context.builder.nodes) > _LIMIT:
        return None
    assert target.graph is not None
    return _run(context, target.graph, operands)


def recursive(target: NamedGraph) -> bool:
    """Whether the function can come to call itself; one that is not complete yet can."""
    seen: set[Any] = set()
    graphs: list[Graph | None] = [target.graph]
    while graphs:
        graph = graphs.pop()
        if graph is None:
            return True
        if graph in seen:
            continue
        seen.add(graph)
        for node in graph.nodes:
            graphs.extend(node.graphs)
            callee = node.attributes.get("target")
            if callee is target:
                return True
            if isinstance(callee, NamedGraph):
                graphs.append(callee.graph)
    return False
