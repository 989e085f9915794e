"""Decides which number arguments of a compiled function are inputs of its programs.

A Python number is a constant of a program, so that each value is compiled. `jit_call` asks this
module whether a number has had several values; if so, it compiles the function once more with the
number as an input, as if it were marked `mutable`. The program is used only if nothing but
arithmetic needs the number: a condition, a loop or Python code that would run at each call is not
worth it. Nothing here compiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ..frontend.types import Args, Kwargs, Value
from ..ir.control import call, host_call, switch, while_loop
from ..ir.graph import Graph
from .options import mutable

__all__ = ["VaryingNumbers", "is_no_slower"]

# The position of a positional argument, or the name of a keyword argument.
Place: TypeAlias = int | str

# A number becomes an input at this many different values.
_VALUES = 3
# Ops that cost more than the arithmetic that they save.
_SLOW = (switch, while_loop, call, host_call)


class VaryingNumbers:
    """The number arguments of one function that are inputs of its programs.

    Attributes:
        inputs: positions or keyword names of the arguments that are inputs of programs.
        constants: positions or keyword names of the arguments that must stay constants.
    """

    def __init__(self) -> None:
        self.inputs: set[Place] = set()
        self.constants: set[Place] = set()
        self._seen: dict[Place, set[tuple[type, int | str]]] = {}

    def varying(self, given: Args, kwargs: Kwargs) -> set[Place]:
        """Record the numbers passed to a call that is being compiled; return which arguments vary.

        An argument varies once it has had at least three different values in such calls. The result
        has the position of each varying positional argument and the name of each keyword argument.

        Args:
            given: the positional arguments.
            kwargs: the keyword arguments.
        """
        found: set[Place] = set()
        for place, value in _numbered(given, kwargs):
            if type(value) in (int, float) and place not in self.constants:
                values = self._seen.setdefault(place, set())
                if len(values) < _VALUES:
                    values.add((int, value) if type(value) is int else (float, repr(value)))
                if len(values) >= _VALUES:
                    found.add(place)
        return found

    def marked(
        self, given: Args, kwargs: Kwargs, more: Iterable[Place] = ()
    ) -> tuple[Args, Kwargs]:
        """Return the arguments of a call, with `mutable` applied to the numbers that are inputs.

        Args:
            given: the positional arguments.
            kwargs: the keyword arguments.
            more: positions or keyword names of further arguments to mark.
        """
        places = self.inputs.union(more)

        def made(place: Place, value: Value) -> Value:
            return mutable(value) if place in places and type(value) in (int, float) else value

        positional = tuple([made(i, v) for i, v in enumerate(given)])
        return positional, {k: made(k, v) for k, v in kwargs.items()}

    def keep_constant(self, places: Iterable[Place] | None = None) -> None:
        """Make the arguments at `places` constants from now on; None stands for all present inputs.

        A place is the position or the keyword name of an argument.
        """
        self.constants.update(self.inputs if places is None else places)
        self.inputs -= self.constants


def _numbered(given: Args, kwargs: Mapping[str, Value]) -> list[tuple[Place, Value]]:
    return [*enumerate(given), *kwargs.items()]


def is_no_slower(graph: Graph, constant: Graph) -> bool:
    """Return whether a graph with numbers as inputs has no more control flow than another one.

    Args:
        graph: the graph with inputs.
        constant: a graph of the same function in which the numbers are constants.
    """
    return _slow_nodes(graph, set()) <= _slow_nodes(constant, set())


def _slow_nodes(graph: Graph, seen: set[int]) -> int:
    """Return how many branches, loops and calls (of graphs or of Python) a graph contains.

    Nodes of sub-graphs count too. `seen` holds the ids of graphs already counted.
    """
    if id(graph) in seen:
        return 0
    seen.add(id(graph))
    inner = sum([_slow_nodes(g, seen) for node in graph.nodes for g in node.graphs])
    return inner + sum([node.op in _SLOW for node in graph.nodes])
