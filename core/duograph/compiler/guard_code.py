"""Generates the Python code that runs before a compiled program to detect changed captures.

A capture is a value from outside that a program treats as constant. `compiler.guards` makes one
`IdentityCheck` per program. The generated code stores every captured object in a local variable,
because Python reads local variables fastest. It compares identities only; `Guard` decides what a
change means.
"""

from __future__ import annotations

import builtins
import functools
import operator
import types
from collections.abc import Callable, Mapping, Sequence

from ..backend.prepared import HandleFunction
from ..frontend.state.journal import MISSING
from ..frontend.types import Value

__all__ = ["FACTS", "LIMIT", "IdentityCheck", "StateChanged"]

# Kind of a capture -> expression of its value, in which `{}` is the object that it was read from.
FACTS = {
    "bases": "{}.__mro__",
    "cell": "{}.cell_contents",
    "class": "type({})",
    "code": "{}.__code__",
    "form": "{}._type.plain",
}

# Lookups and items of lists beyond this number are compared in a loop.
LIMIT = 256

# Types of mappings whose lookups run no code of a user's class.
_PLAIN = (dict, types.MappingProxyType)

# The statements in `{comparison}` raise KeyError or ValueError if an object is another one now.
# Warnings and errors are left to code outside the `try`, so that they have no KeyError as their
# context.
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
  except (KeyError, ValueError): pass
  else:
    if not reported: return run({handles})
    reported.clear()
    return run({handles})
  if not may_run(): raise StateChanged
  return run({handles})
"""

# The source of an expression whose value is a captured number. A literal stands for that very
# object, until `IdentityCheck._generate` puts the object among the constants of the compiled code:
# reading a constant is faster than reading a parameter, whose default value is copied at each call.
# Python removes the `1 and`, which only avoids its warning about `is` with a literal. Other objects
# stay default values: the garbage collector does not look into code, and Python replaces a string
# among the constants by an equal one.
_CONSTANT = "(1 and 'object {}')"
_NUMBERS = frozenset({bool, int, float, complex})

# The file name of generated code. It lies in this package, so that warnings and tracebacks point to
# the line of the user that called the compiled function.
_FILE = f"{__file__} (generated)"


class StateChanged(Exception):
    """Raised by the fast call of a compiled program if something outside its arguments has changed.

    That is a captured value, or the buffer or type of some tensor. `JitFunction` catches it and
    makes the call again with all checks. See `CompiledProgram.fast_call`.
    """


class IdentityCheck:
    """Generates checks that dictionary entries and list items are the objects of compile time.

    `test` makes a function that only checks, `call` one that checks and then runs the program.

    Args:
        lookups: tuples (dictionary, key, object that was found there).
        lists: tuples (list, the objects that it held, in order).
        facts: tuples (expression of `FACTS`, object, what the expression gave for it).
        others: further checks, each a function that returns whether its captures are unchanged.
            They run last.
    """

    def __init__(
        self,
        lookups: Sequence[tuple[Mapping[Value, Value], Value, Value]],
        lists: Sequence[tuple[list[Value], tuple[Value, ...]]],
        others: Sequence[Callable[[], bool]] = (),
        facts: Sequence[tuple[str, Value, Value]] = (),
    ) -> None:
        self._objects: dict[str, Value] = {}
        self._constants: dict[str, Value] = {}
        self._lines: list[str] = []
        rest = list(others)
        terms = []
        for owner, key, value in lookups[:LIMIT]:
            d, name = self._object(owner), self._object(key)
            if value is MISSING and type(owner) in _PLAIN:
                terms.append(f"{name} not in {d}")
                continue
            v = self._object(value)
            found = f"{d}[{name}]" if type(owner) in _PLAIN else f"{d}.get({name}, MISSING)"
            terms.append(f"{found} is {v}")
        for expression, owner, value in facts:
            terms.append(f"{expression.format(self._object(owner))} is {self._object(value)}")
        self._require(terms)
        size = 0
        for items, expected in lists:
            n = len(expected)
            if not n or size + n > LIMIT:
                rest.insert(0, functools.partial(_holds_items, items, expected))
                continue
            size += n
            self._lines.append(f"{', '.join(f'x{j}' for j in range(n))}, = {self._object(items)}")
            self._require([f"x{j} is {self._object(x)}" for j, x in enumerate(expected)])
        if lookups[LIMIT:]:
            rest.insert(0, functools.partial(_are_found, lookups[LIMIT:]))
        self._require([f"{self._object(f)}()" for f in rest])

    def _object(self, value: Value) -> str:
        """Return the source of an expression whose value is `value`, in the generated functions."""
        if type(value) in _NUMBERS:
            self._constants[f"object {len(self._constants)}"] = value
            return _CONSTANT.format(len(self._constants) - 1)
        name = f"o{len(self._objects)}"
        self._objects[name] = value
        return name

    def _require(self, terms: Sequence[str]) -> None:
        if terms:
            self._lines.append(f"if not ({' and '.join(terms)}): raise KeyError")

    def test(self) -> Callable[[], bool]:
        """Generate a function without arguments that returns whether all captures are unchanged."""
        made: Callable[[], bool] = self._generate(_TEST, {})
        return made

    def call(
        self,
        run: HandleFunction,
        n_handles: int,
        may_run: Callable[[], bool],
        reported: dict[int, Value],
    ) -> HandleFunction:
        """Generate a function that checks the captures, then calls `run` and returns its result.

        Args:
            run: function from buffer handles of the arguments to the handle of the result.
            n_handles: number of arguments of `run`.
            may_run: function that is called if a capture has changed. If it returns False, the
                generated function raises StateChanged and does not call `run`.
            reported: id of a capture -> the changed value that a warning was about. The generated
                function clears this dict if all captures are unchanged.
        """
        handles = "".join(f"h{k}, " for k in range(n_handles))
        objects = {"run": run, "may_run": may_run, "reported": reported}
        made: HandleFunction = self._generate(_CALL, objects, handles)
        return made

    def _generate(self, template: str, objects: dict[str, Value], handles: str = "") -> Value:
        """Generate a function from a source template, with the comparisons of this check inserted.

        Args:
            template: source of the function, `_TEST` or `_CALL`.
            objects: further objects that the template uses, by name.
            handles: the parameters of the function, each followed by a comma.
        """
        given = self._objects | objects
        source = template.format(
            comparison="\n".join(f"    {line}" for line in self._lines) or "    pass",
            objects=", ".join(f"{o}=None" for o in given),
            handles=handles,
        )
        code, known = _compiled(source), self._constants
        constants = [known.get(c, c) if type(c) is str else c for c in code.co_consts]
        code = code.replace(co_consts=tuple(constants))
        assert all(map(operator.is_, code.co_consts, constants)), "constants were replaced"
        return types.FunctionType(code, _GLOBALS, code.co_name, tuple(given.values()))


_GLOBALS = {
    "MISSING": MISSING, "StateChanged": StateChanged, "type": type, "__builtins__": builtins
}  # fmt: skip


@functools.lru_cache(256)
def _compiled(source: str) -> types.CodeType:
    """Compile a source that consists of one function definition; return the function's code."""
    (code,) = [
        constant
        for constant in compile(source, _FILE, "exec").co_consts
        if isinstance(constant, types.CodeType)
    ]
    return code


def _are_found(lookups: Sequence[tuple[Mapping[Value, Value], Value, Value]]) -> bool:
    return all([owner.get(key, MISSING) is value for owner, key, value in lookups])


def _holds_items(items: list[Value], expected: tuple[Value, ...]) -> bool:
    return len(items) == len(expected) and all(map(operator.is_, items, expected))
