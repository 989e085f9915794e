"""Generates Python code that compares captured objects with those that a program was compiled for.

`compiler.guards` makes one `Comparison` per program. The code gives each object a variable of its
own, since this is the fastest comparison that Python has. It only compares identities; what a
change means is decided by `Guard.holds`.
"""

from __future__ import annotations

import builtins
import functools
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ..backend.prepared import HandleFunction
from ..frontend.state.journal import MISSING
from ..frontend.types import Value

__all__ = ["Comparison", "Counted", "StateChanged"]

# Lookups and items of lists beyond this number are compared in a loop.
_LIMIT = 64

# Types of mappings whose lookups run no code of a user's class.
_PLAIN = (dict, types.MappingProxyType)

# `{comparison}` raises KeyError or ValueError if something has changed. The objects are defaults of
# parameters, as these are the variables that Python reads fastest.
_TEST = """
def test({objects}):
  try:
{comparison}
  except (KeyError, ValueError): return False
  return True
"""

_CALL = """
def call({handles}{objects}):
  try:
{comparison}
    if reported: raise KeyError
  except (KeyError, ValueError):
    if not holds(): raise StateChanged from None
  program.hits += 1
  return run({handles})
"""


class StateChanged(Exception):
    """Raised by the function that `fast_call` returns, if state or captured values have changed.

    The caller then makes the call with all checks; see `CompiledProgram.fast_call`.
    """


class Counted(Protocol):
    """An object that counts its calls."""

    hits: int


class Comparison:
    """A comparison by identity of looked-up objects and of the items of lists.

    Args:
        lookups: (mapping, key, expected object).
        lists: (list, expected items in order).
        others: more functions that return whether something is unchanged; called last.
    """

    def __init__(
        self,
        lookups: Sequence[tuple[Mapping[Value, Value], Value, Value]],
        lists: Sequence[tuple[list[Value], tuple[Value, ...]]],
        others: Sequence[Callable[[], bool]] = (),
    ) -> None:
        self._objects: dict[str, Value] = {}
        self._lines: list[str] = []
        rest = list(others)
        terms = []
        for k, (owner, key, value) in enumerate(lookups[:_LIMIT]):
            found = f"d{k}[k{k}]" if type(owner) in _PLAIN else f"d{k}.get(k{k}, MISSING)"
            terms.append(f"{found} is v{k}")
            self._objects |= {f"d{k}": owner, f"k{k}": key, f"v{k}": value}
        self._demand(terms)
        size = 0
        for k, (items, expected) in enumerate(lists):
            n = len(expected)
            if not n or size + n > _LIMIT:
                rest.insert(0, functools.partial(_holds_items, items, expected))
                continue
            size += n
            self._lines.append(f"{', '.join(f'x{j}' for j in range(n))}, = l{k}")
            self._demand([f"x{j} is c{k}_{j}" for j in range(n)])
            self._objects |= {f"c{k}_{j}": x for j, x in enumerate(expected)} | {f"l{k}": items}
        if lookups[_LIMIT:]:
            rest.insert(0, functools.partial(_are_found, lookups[_LIMIT:]))
        self._demand([f"o{k}()" for k in range(len(rest))])
        self._objects |= {f"o{k}": f for k, f in enumerate(rest)}

    def _demand(self, terms: Sequence[str]) -> None:
        if terms:
            self._lines.append(f"if not ({' and '.join(terms)}): raise KeyError")

    def test(self) -> Callable[[], bool]:
        """Return a function that tells whether everything is unchanged."""
        made: Callable[[], bool] = self._made(_TEST, "test", {})
        return made

    def call(
        self,
        run: HandleFunction,
        n_handles: int,
        program: Counted,
        holds: Callable[[], bool],
        reported: dict[int, Value],
    ) -> HandleFunction:
        """Return `run` with the comparison before it.

        Args:
            run: takes handles, and returns the handle of the result.
            n_handles: number of handles that `run` takes.
            program: its `hits` counts the calls.
            holds: called after a change; if it returns False, StateChanged is raised.
            reported: `holds` is also called while this is not empty.
        """
        handles = "".join(f"h{k}, " for k in range(n_handles))
        objects = {"run": run, "program": program, "holds": holds, "reported": reported}
        made: HandleFunction = self._made(_CALL, "call", objects, handles)
        return made

    def _made(
        self, template: str, name: str, objects: dict[str, Value], handles: str = ""
    ) -> Value:
        """Return the function `name` of a template, over the objects compared and more objects."""
        given = self._objects | objects
        source = template.format(
            comparison="\n".join(f"    {line}" for line in self._lines) or "    pass",
            objects=", ".join(f"{o}=None" for o in given),
            handles=handles,
        )
        code: types.CodeType = _compiled(source, name)
        return types.FunctionType(code, _GLOBALS, name, tuple(given.values()))


_GLOBALS = {"MISSING": MISSING, "StateChanged": StateChanged, "__builtins__": builtins}


@functools.lru_cache(256)
def _compiled(source: str, name: str) -> types.CodeType:
    """Return the code of the function `name` that a source defines."""
    found: dict[str, types.FunctionType] = {}
    exec(source, found)
    return found[name].__code__


def _are_found(lookups: Sequence[tuple[Mapping[Value, Value], Value, Value]]) -> bool:
    return all([owner.get(key, MISSING) is value for owner, key, value in lookups])


def _holds_items(items: list[Value], expected: tuple[Value, ...]) -> bool:
    return len(items) == len(expected) and all(map(operator.is_, items, expected))
