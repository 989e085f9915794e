"""Symbolic programs: functions evaluated once for many sizes of their arguments.

`compiler.jit_call` asks `SymbolicPrograms` before it compiles a call. A symbolic program
(`symbolic_program.py`) is the graph of a function whose argument shapes have symbols (`dims`), with
the guards under which the graph is right. For the sizes of a call, the symbols are replaced by
numbers. The resulting *specialised* program is an ordinary `CompiledProgram`, which later calls
find by its `JitKey` like any other.

Nothing here may change what a program computes. Where the front end or a rule of an op cannot
handle symbols, the function is compiled for each shape, and `explain` says why.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from ..dims import Dim, concrete, linear, text_of
from ..errors import DuographError
from ..frontend.types import Value
from ..ir.substitution import check_substitutable
from ..polynomials import LEAST, Atom
from ..scopes import Scope
from ..sharding.mode import dividing
from ..symbol import Symbol
from ..types import TensorType
from .compiled_program import CompiledProgram
from .evaluate import Sizes, Traced, trace_call
from .results import substituted
from .signature import open_axes
from .symbolic_program import MOST_FAILURES, MOST_PROGRAMS, Shapes, SymbolicProgram

if TYPE_CHECKING:
    from .jit_call import JitCall
    from .key import JitKey

__all__ = ["Axis", "SymbolicPrograms"]

# An axis of an argument: (number of the tensor argument, axis).
Axis = tuple[int, int]
# Axes with varying sizes, and how the user described the sizes.
Open = Mapping[Axis, Symbol | None]

# Values of `jit(dynamic=)` that turn symbolic sizes off: each shape is compiled separately.
_NEVER = (0, False)
_MOST_FAMILIES = 64
_MOST_SEEN = 63  # the most shapes of a family that are kept before the newest


class Family:
    """The calls of one function whose arguments differ only in the sizes of tensors.

    Attributes:
        seen: the argument shapes of the calls that were compiled.
        fixed: axis whose size the function uses as a number, so that it cannot be symbolic -> where
            the function does so.
        programs: the programs for symbolic sizes, newest last.
        reason: why a call could not be served by a symbolic program; "" if none failed.
        failures: how many evaluations with symbolic sizes have failed.
    """

    def __init__(self) -> None:
        self.seen: list[Shapes] = []
        self.fixed: dict[Axis, str] = {}
        self.programs: list[SymbolicProgram] = []
        self.reason = ""
        self.failures = 0

    def fail(self, reason: str) -> None:
        """Count a failed evaluation with symbolic sizes and store the reason.

        The cause may also be an error of the user's code, which is raised when the function is
        compiled for exact sizes.
        """
        self.reason = reason
        self.failures += 1

    def varying(self, shapes: Shapes) -> list[Axis]:
        """Return the axes whose sizes vary.

        An axis varies if its size in `shapes` differs from its size in at least one call that was
        compiled before.
        """
        return [
            (i, axis)
            for i, shape in enumerate(shapes)
            for axis, n in enumerate(shape)
            if any(known[i][axis] != n for known in self.seen)
        ]


class SymbolicPrograms:
    """The programs for symbolic sizes of one function, or of one method for one receiver.

    Such a program is evaluated once and serves many sizes of the arguments.
    """

    def __init__(self) -> None:
        self.families: dict[Hashable, Family] = {}

    def programs(self) -> list[SymbolicProgram]:
        """Return all symbolic programs."""
        return [p for family in self.families.values() for p in family.programs]

    def describe(self, key: JitKey) -> list[str]:
        """Return lines for `explain` about a key's symbolic programs and why there are no more."""
        family = self.families.get(_family_key(key))
        if family is None:
            return []
        lines = [str(program) for program in family.programs]
        if family.reason:
            lines.append(f"other shapes are compiled on their own: {family.reason}")
        return lines

    def specialised(self, call: JitCall) -> CompiledProgram | None:
        """Return a program for a call, made from a symbolic program for its sizes, or None.

        If no symbolic program fits, the function is evaluated with symbols for the axes whose sizes
        differ between calls; by default this needs at least two compiled calls before. If the
        result is None, the caller compiles the function for the exact sizes of the call.
        """
        shapes = tuple([x._type.shape for x in call.slots.leaves])
        if call.function.dynamic in _NEVER or not any(shapes) or dividing() is not None:
            return None  # a divided program is made for the sizes of all ranks together
        family = self._family(call)
        for program in reversed(family.programs):
            values = program.values(shapes)
            if values is not None and program.is_current():
                return self._program(call, family, program, values)
        # kept, because a captured flag may get its old value again
        stale = [p for p in family.programs if not p.is_current()]
        current = len(family.programs) - len(stale)
        if family.failures >= MOST_FAILURES or current >= MOST_PROGRAMS:
            return None
        found = self._traced(call, family, shapes)
        if found is None:
            return None
        self.add_shapes(call)
        family.programs = [p for p in family.programs if p not in stale[:-MOST_PROGRAMS]]
        family.programs.append(found)
        if current + 1 >= MOST_PROGRAMS:
            family.reason = f"its guards distinguish {MOST_PROGRAMS} programs already"
        call.function._misses += 1
        call.function._reasons.add(f"compiled: {found.description()}")
        values = found.values(shapes)
        return None if values is None else self._program(call, family, found, values)

    def add_shapes(self, call: JitCall) -> None:
        """Remember the argument shapes of a call that was compiled."""
        if call.function.dynamic not in _NEVER:
            family = self._family(call)
            shapes = tuple([x._type.shape for x in call.slots.leaves])
            family.seen = [*family.seen[-_MOST_SEEN:], shapes]

    def _program(
        self, call: JitCall, family: Family, program: SymbolicProgram, values: Mapping[Atom, int]
    ) -> CompiledProgram | None:
        """Return a program specialised for some sizes, or None if it cannot be lowered for them.

        After a failure the symbolic program is removed from its family.
        """
        try:
            made = program.program(values)
            reasons = call.function._reasons
            for each in program.variants:
                line = f"lowered for each shape: {each.not_sized}"
                if each.not_sized and line not in reasons:
                    reasons.add(line)
            return made
        except Exception as error:  # noqa: BLE001  (compiling for the sizes decides what is raised)
            family.programs.remove(program)
            family.fail(f"{type(error).__name__}: {error}")
            return None

    def _family(self, call: JitCall) -> Family:
        """Return the family of a call: the calls that differ from it only in sizes of tensors.

        A family that does not exist is created; the oldest one is dropped if there are too many.
        """
        key = _family_key(call.key)
        found = self.families.get(key)
        if found is None:
            if len(self.families) >= _MOST_FAMILIES:
                del self.families[next(iter(self.families))]
            found = self.families[key] = Family()
        return found

    def _traced(self, call: JitCall, family: Family, shapes: Shapes) -> SymbolicProgram | None:
        """Evaluate the function with symbols for the axes whose sizes vary.

        If the size of an axis is used as a number, the axis is marked as fixed and the evaluation
        is repeated. Returns None if no axis varies, if the present size of a varying axis is 0 or
        1, or if the evaluation fails.
        """
        varying = dict(open_axes(call.function._input_signature, call.given))
        if len(family.seen) >= (1 if call.function.dynamic else 2):
            varying = {**dict.fromkeys(family.varying(shapes)), **varying}
        axes = {a: symbol for a, symbol in varying.items() if a not in family.fixed}
        if not axes or any(shapes[i][axis] < LEAST for i, axis in axes):
            return None
        start = time.perf_counter()
        try:
            return self._evaluated(call, family, shapes, axes)
        finally:
            call.function._seconds += time.perf_counter() - start

    def _evaluated(
        self, call: JitCall, family: Family, shapes: Shapes, axes: Open
    ) -> SymbolicProgram | None:
        """Evaluate the function with symbols for the sizes of `axes`.

        If the function uses some of these sizes as numbers, it is evaluated again without symbols
        for them.

        Returns None if the evaluation fails or no axes are left; the reason is stored in `family`.
        Also returns None, without a reason, if a size is used as a number although the family
        already has symbolic programs.
        """
        while axes:
            try:
                found = _evaluated(call, family, axes, shapes)
                if isinstance(found, SymbolicProgram):
                    return found
                if family.programs:  # this size equals another one by chance
                    return None
                again = _evaluated_for_others(call, family, axes, shapes, found)
            except Exception as error:  # noqa: BLE001  (the concrete evaluation decides, as above)
                family.fail(f"{type(error).__name__}: {error}")
                return None
            if isinstance(again, SymbolicProgram):
                return again
            family.fixed.update(again)
            axes = {a: symbol for a, symbol in axes.items() if a not in again}
        used = ", ".join(dict.fromkeys(family.fixed.values()))
        family.reason = f"its sizes are used as numbers: {used}"
        return None


def _family_key(part: Hashable) -> Hashable:
    """Return a part of a `JitKey` without the sizes of tensors."""
    if isinstance(part, TensorType):
        return len(part.shape), part.dtype, part.device
    if isinstance(part, tuple):
        return tuple([_family_key(p) for p in part])
    return part


def _symbolic_types(
    call: JitCall, family: Family, axes: Open, shapes: Shapes
) -> tuple[Scope, list[TensorType], dict[Axis, Dim]]:
    """Return a new scope, the types of the tensor arguments with symbols, and each axis's symbol.

    `axes` maps each axis to the `Symbol` that the user declared for it, or None. Axes with the same
    declaration, or with none, that have had equal sizes in every call get one common symbol. The
    program then serves only calls in which the sizes of these axes are equal.
    """
    scope = Scope()
    symbols: dict[Axis, Dim] = {}
    for a, described in axes.items():
        size = shapes[a[0]][a[1]]
        alike = [b for b in symbols if axes[b] is described and _equal(family, a, b, shapes)]
        same = symbols[alike[0]] if alike else None
        if same is not None:
            symbols[a] = same
        elif described is None or not described.accepts(size):
            symbols[a] = scope.symbol(size)
        else:
            symbols[a] = scope.symbol(
                size, described.min, described.limit, described.divisor, described.remainder
            )
    types = []
    for i, x in enumerate(call.slots.leaves):
        shape: Value = tuple([symbols.get((i, k), n) for k, n in enumerate(x._type.shape)])
        types.append(TensorType.of(shape, x._type.dtype))
    return scope, types, symbols


def _doubled(shapes: Shapes, axes: Open) -> Shapes:
    """Return shapes in which the sizes of `axes` are doubled if their declared Symbols allow it.

    They are example sizes for a second evaluation, after a size equalled another number by chance.
    """

    def other(a: Axis, n: int) -> int:
        described = axes.get(a)
        if a not in axes:
            return n
        return 2 * n if described is None or described.accepts(2 * n) else n

    return tuple(
        [
            tuple([other((i, axis), n) for axis, n in enumerate(shape)])
            for i, shape in enumerate(shapes)
        ]
    )


def _equal(family: Family, one: Axis, other: Axis, shapes: Shapes) -> bool:
    """Return whether two axes have had equal sizes in every call, including the present one."""
    return all(s[one[0]][one[1]] == s[other[0]][other[1]] for s in (*family.seen, shapes))


def _evaluated(
    call: JitCall, family: Family, axes: Open, shapes: Shapes
) -> SymbolicProgram | dict[Axis, str]:
    """Evaluate the function of a call with symbols for some axes.

    Args:
        call: the call.
        family: the family of the call.
        axes: the axes, with the user's descriptions of their sizes.
        shapes: example shapes that give each symbol its hint: those of the call, or others.

    Returns:
        the symbolic program; or, if the function uses sizes of some of the axes as numbers, a dict
            of these axes and the places where it does so.

    Raises:
        DuographError: the program has something that cannot be specialised.
    """
    scope, types, symbols = _symbolic_types(call, family, axes, shapes)
    traced = _traced_call(call, Sizes(scope, types))
    pinned = {
        a: f"{text_of(g.left)} ({g.where})"
        for g in scope.pinned
        for a in axes
        if _depends(g.left, symbols[a])
    }
    return pinned or SymbolicProgram(scope, [t.shape for t in types], traced)


def _evaluated_for_others(
    call: JitCall, family: Family, axes: Open, shapes: Shapes, pinned: dict[Axis, str]
) -> SymbolicProgram | dict[Axis, str]:
    """Evaluate a function again with other example sizes, after it used some sizes as numbers.

    A size of the call may equal another number by chance, such as the size of a Parameter, and
    thus seem to be a fixed number. The new example sizes are twice those in `shapes`. `pinned` maps
    each axis whose size was used as a number to the place where this happened. The result is that
    of `_evaluated` for the new sizes, or `pinned` if that evaluation raises an error.
    """
    try:
        return _evaluated(call, family, axes, _doubled(shapes, axes))
    except Exception:  # noqa: BLE001  (the other sizes need not fit the function)
        return pinned


def _traced_call(call: JitCall, sizes: Sizes) -> Traced:
    """Evaluate the function of a call with symbolic sizes; return its graph, inputs and writes.

    Raises:
        DuographError: the program has something that cannot be specialised.
    """
    function = call.function
    target, args = function._target, call.given
    if target is None:
        target, args = function.function, call.args
    try:
        traced = trace_call(
            target, args, call.kwargs, function.strict(), call.key.device, function._name,
            function.level(), sizes=sizes, finish=lambda t: t,
        )  # fmt: skip
    finally:
        sizes.scope.locate = (
            str  # ops cache graphs with these sizes; the evaluation must not live on
        )
    sizes.scope.closed = True
    check_substitutable(traced.graph)
    substituted(traced.template, lambda v: concrete(v, {s: s.hint for s in sizes.scope.symbols}))
    if traced.only_for:
        raise DuographError("the function changes one of its arguments that is no Tensor")
    return traced


def _depends(value: object, symbol: Dim) -> bool:
    """Return whether an expression contains the symbol of an axis."""
    return linear(symbol)[0] in _atoms(value)


def _atoms(value: Value) -> set[Atom]:
    """Return the symbols in an expression."""
    found: set[Atom] = set()
    if type(value) is Dim:
        for product in value.terms:
            for atom in product:
                found |= {atom} if atom.parts is None else set().union(*map(_atoms, atom.parts))
    elif hasattr(value, "parts"):
        found = set().union(*map(_atoms, value.parts))
    return found
