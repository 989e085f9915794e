"""Compiles expressions of symbolic sizes to Python functions of the symbols' values.

A program for many sizes evaluates the same expressions at each new shape: its guards, the bytes of
its values, and the numbers that its kernels receive. `evaluator` turns such a list into one
function, in which every expression is computed once. The functions compute what `dims.concrete`
computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .dims import Dim, Real, Size, is_symbolic
from .polynomials import Atom

__all__ = ["Behind", "checker", "evaluator"]

_INFIX = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
          "pow": "**"}  # fmt: skip
_FUNCTIONS = {"neg": "-", "abs": "abs", "float": "float"}


class Behind(NamedTuple):
    """The least offset in memory behind some blocks: a multiple of `alignment`.

    Attributes:
        blocks: offset and size of each block; None is the offset 0.
        alignment: the offset and all sizes are rounded up to multiples of this number.
    """

    blocks: tuple[tuple[Behind | None, Size], ...]
    alignment: int


class _Writer:
    """Writes the lines of a function that computes expressions of sizes.

    Attributes:
        lines: assignments to local variables, in order.
        constants: name -> a number that the function reads.
    """

    def __init__(self, symbols: Sequence[Atom]) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, object] = {}
        self._atoms: dict[Atom, str] = {s: f"s{k}" for k, s in enumerate(symbols)}
        self._known: dict[object, str] = {}
        self._keep: list[object] = []  # so that no id in `_known` is used again

    def text(self, value: Any) -> str:
        """Return the source of a number; a symbolic one is the name of a local variable."""
        kind = type(value)
        if kind in (list, tuple):
            return f"[{', '.join(map(self.text, value))}]"
        if not (is_symbolic(value) or kind is Behind):
            return repr(value) if kind in (int, bool) else self._constant(value)
        found = self._known.get(id(value))
        if found is None:
            if kind is Behind:
                source = self._behind(value)
            else:
                source = self._dim(value) if kind is Dim else self._real(value)
            found = self._known[id(value)] = self._local(source)
            self._keep.append(value)
        return found

    def _constant(self, value: object) -> str:
        """Return the name of a number that may have no literal, such as an infinity or a NaN."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def _local(self, source: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {source}")
        return name

    def _dim(self, value: Dim) -> str:
        terms = []
        for atoms, factor in value.terms.items():
            names = [self._atom(a) for a in atoms]
            terms.append("*".join([str(factor), *names] if factor != 1 or not names else names))
        return " + ".join(terms)

    def _atom(self, atom: Atom) -> str:
        found = self._atoms.get(atom)
        if found is None:
            assert atom.parts is not None
            above, below = map(self.text, atom.parts)
            found = self._atoms[atom] = self._local(f"{above} // {below}")
        return found

    def _behind(self, value: Behind) -> str:
        ends = []
        for offset, size in value.blocks:
            room = self._rounded(size, value.alignment)
            ends.append(room if offset is None else f"{self.text(offset)} + {room}")
        return f"max({', '.join(ends)})" if len(ends) > 1 else ends[0]

    def _rounded(self, size: Size, alignment: int) -> str:
        """Return the source of a size rounded up to a multiple, computed once for each size."""
        found = self._known.get(key := (size if type(size) is int else id(size), alignment))
        if found is None:
            source = f"-(-{self.text(size)} // {alignment}) * {alignment}"
            found = self._known[key] = self._local(source)
            self._keep.append(size)
        return found

    def _real(self, value: Real) -> str:
        parts = [f"({self.text(p)})" for p in value.parts]
        if value.function in _INFIX:
            return _INFIX[value.function].join(parts)
        return _FUNCTIONS[value.function] + parts[0]

    def function(self, symbols: Sequence[Atom], result: str) -> Callable[..., Any]:
        """Return the function of the symbols' values, in order, that returns `result`."""
        head = f"def computed({', '.join(f's{k}' for k in range(len(symbols)))}):"
        source = "\n    ".join([head, *self.lines, f"return {result}"])
        space: dict[str, Any] = dict(self.constants)
        exec(compile(source, "<sizes>", "exec"), space)
        found: Callable[..., Any] = space["computed"]
        return found


def evaluator(symbols: Sequence[Atom], values: Sequence[Any]) -> Callable[..., Any]:
    """Return a function of the symbols' values that returns the values of some expressions.

    `values` are numbers, symbolic numbers and offsets (`Behind`), in nested lists and tuples; the
    result has the same structure, of lists. The function takes one number for each of `symbols`.

    Raises (the function):
        ArithmeticError: a division by 0; a guard of the program excludes such sizes.
    """
    writer = _Writer(symbols)
    return writer.function(symbols, writer.text(values))


def checker(
    symbols: Sequence[Atom], conditions: Iterable[tuple[Any, str, Any, bool]]
) -> Callable[..., bool]:
    """Return a function of the symbols' values that returns whether all conditions hold.

    A condition is (left, relation, right, answer): whether ``left relation right`` must be true.
    The symbols must also be within their bounds. A division by 0 makes the result False.
    """
    writer = _Writer(symbols)
    tests = [f"{s.low!r} <= s{k} <= {s.high!r}" for k, s in enumerate(symbols)]
    for left, relation, right, answer in conditions:
        test = f"{writer.text(left)} {relation} {writer.text(right)}"
        tests.append(test if answer else f"not {test}")
    found = writer.function(symbols, " and ".join(tests) or "True")

    def holds(*values: int) -> bool:
        try:
            return bool(found(*values))
        except ArithmeticError:
            return False

    return holds
