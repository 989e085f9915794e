"""One symbolic program: the graph of a function with symbols for sizes, and programs made from it.

`symbolic.py` evaluates a function with symbols and makes a `SymbolicProgram` of its graph. For the
sizes of a call, a `SymbolicProgram` makes a `CompiledProgram`: the symbols become numbers. Where
possible, the passes and the lowering run once for many sizes. Such a program must compute what a
program compiled for the exact sizes computes.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..backend import registry
from ..context import settings
from ..dims import Dim, linear, text_of
from ..execution.lower import Optimised, optimise
from ..frontend.types import Value
from ..ir.substitution import Substitution, check_substitutable
from ..placement import commit
from ..polynomials import Atom
from ..scopes import Scope, SizeNeeded
from ..size_code import evaluator
from ..types import TensorType
from .compiled_program import CompiledProgram
from .evaluate import Traced
from .guards import Guard as CaptureGuard
from .results import Out, substituted

__all__ = ["MOST_FAILURES", "MOST_PROGRAMS", "Shapes", "SymbolicProgram"]

Shapes = tuple[tuple[int, ...], ...]

# The most symbolic programs of a family, the calls of one function whose arguments have equal ranks
# and dtypes; they differ in guards.
MOST_PROGRAMS = 4
# The most programs lowered from one graph for many sizes; they differ in what lowering compared.
MOST_SIZED = 16
# The most failed evaluations with symbols of a family; one failure may be due to a single call.
MOST_FAILURES = 3


class _Sized(NamedTuple):
    """A program lowered for all sizes that fit the guards of its scope.

    Attributes:
        scope: copies of the symbols, and the guards that the lowering added.
        program: the lowered program, whose graph has symbolic sizes.
        shapes: function from the values of the symbols to the shapes of the tensors among the
            outputs of the graph.
    """

    scope: Scope
    program: CompiledProgram
    shapes: Callable[..., list[list[int]]]


class Variant:
    """The graph of a symbolic program after the passes, valid for some of its sizes.

    Attributes:
        scope: copies of the program's symbols, and the guards on sizes that the passes added.
        optimised: the graph after the passes; None if the passes cannot handle symbols.
        problem: why the passes cannot handle symbols; "" if they can.
        sized: programs lowered from the graph, which differ in the guards that lowering added.
        not_sized: why no more programs for all sizes are lowered; "" if they are.
        failures: how many times lowering one has failed.
    """

    def __init__(self, scope: Scope, optimised: Optimised | None, problem: str = "") -> None:
        self.scope, self.optimised, self.problem = scope, optimised, problem
        self.sized: list[_Sized] = []
        self.not_sized = ""
        self.failures = 0

    def fits(self, sizes: Sequence[int]) -> bool:
        """Return whether the graph may be used for given values of the symbols, in order."""
        return self.optimised is not None and self.scope.holds(dict(zip(self.scope.symbols, sizes)))

    def optimised_for(self, sizes: Sequence[Any]) -> Optimised:
        """Return the graph after the passes for given values, or other Dims, of the symbols."""
        assert self.optimised is not None
        replace = Substitution(dict(zip(self.scope.symbols, sizes)))
        return self.optimised._replace(graph=replace.graph(self.optimised.graph))


def _optimised(traced: Traced, symbols: Mapping[Atom, Dim]) -> Variant:
    """Run the graph passes on a copy of a traced graph with symbols; return the result.

    `symbols` maps each symbol of the graph to its copy, so that conditions on sizes that the passes
    add do not apply to the symbolic program.
    """
    written = {id(v) for kind, v, _ in traced.writes if kind == "state"}
    state = [
        k for k, (kind, v) in enumerate(traced.inputs)
        if kind == "state" and id(v) not in written
    ]  # fmt: skip
    scope = next(iter(symbols.values())).scope
    graph = Substitution(symbols).graph(traced.graph)
    try:
        found = optimise(graph, traced.device, None, traced.level, state)
        scope.closed = True
        check_substitutable(found.graph)
    except Exception as error:  # noqa: BLE001  (a pass that handles numbers only may raise any)
        return Variant(scope, None, f"{type(error).__name__}: {error}")
    if scope.pinned:
        return Variant(scope, None, ", ".join(map(str, scope.pinned)))
    return Variant(scope, found)


class SymbolicProgram:
    """A function evaluated once for all sizes that fit its shapes and guards.

    Attributes:
        scope: the symbols and the guards on them.
        shapes: the shape of each tensor argument, with symbols.
        traced: the graph and what else a program is made of.
        specialised: number of programs that were made from this one.
        lowered: how many of these were lowered for their sizes.
        variants: the graphs after the passes, which may add further guards on the sizes.
    """

    def __init__(self, scope: Scope, shapes: Sequence[tuple[Value, ...]], traced: Traced) -> None:
        self.scope = scope
        self.shapes = shapes
        self.traced = traced
        self.specialised = 0
        self.lowered = 0
        self.variants: list[Variant] = []
        self.guard = CaptureGuard(traced.evaluation.captures)

    def is_current(self) -> bool:
        """Return whether captured values, and types of state tensors, are those of the evaluation.

        State tensors, such as Parameters, are those that the graph reads and that are no arguments.
        Those without a device are moved to the device of the program.
        """
        traced = self.traced
        written = {id(v) for kind, v, _ in traced.writes if kind == "state"}
        for k, (kind, v) in enumerate(traced.inputs):
            if kind != "state":
                continue
            commit(v, traced.device, own=id(v) in written)
            if v._type.plain is not traced.graph.types[k] or v._type.device is not traced.device:
                return False
        return self.guard.unchanged()

    def values(self, shapes: Shapes) -> dict[Atom, int] | None:
        """Return the value of each symbol for given argument shapes.

        The result is None if the shapes do not have the form of the program's shapes, or violate a
        guard (a condition on the sizes).
        """
        found: dict[Atom, int] = {}
        for pattern, shape in zip(self.shapes, shapes, strict=True):
            for want, n in zip(pattern, shape, strict=True):
                if type(want) is not Dim:
                    if want != n:
                        return None
                    continue
                symbol, factor, rest = linear(want)
                value = (n - rest) // factor
                if n != value * factor + rest or found.setdefault(symbol, value) != value:
                    return None
        return found if self.scope.holds(found) else None

    def program(self, values: Mapping[Atom, int]) -> CompiledProgram:
        """Return the program for given values of the symbols.

        If possible, it is made from a program that was lowered for all sizes, by computing the
        numbers that differ. Otherwise the graph is lowered for these sizes.
        """
        start = time.perf_counter()
        sizes = [values[s] for s in self.scope.symbols]
        variant = None if settings.debug else self._variant_for(sizes)
        program = None if variant is None else self._resized(variant, sizes)
        if program is None:
            optimised = None if variant is None else variant.optimised_for(sizes)
            program = self._traced_for(sizes).program(optimised)
            self.lowered += 1
        program.seconds = time.perf_counter() - start
        program.symbolic = self
        self.specialised += 1
        return program

    def _traced_for(self, sizes: Sequence[Any]) -> Traced:
        """Return the evaluated function with given values, or other Dims, for its symbols."""
        replace = Substitution(dict(zip(self.scope.symbols, sizes)))
        traced = self.traced
        return dataclasses.replace(
            traced,
            graph=replace.graph(traced.graph),
            template=substituted(traced.template, replace.value),
        )

    def _variant_for(self, sizes: Sequence[int]) -> Variant | None:
        """Return the graph after the passes for given sizes, or None if the passes must run again.

        The passes run on a graph with symbols. If they compare sizes, the results become conditions
        under which that graph may be used again.
        """
        found = next((v for v in self.variants if v.fits(sizes)), None)
        if found is None and len(self.variants) < MOST_PROGRAMS:
            values = dict(zip(self.scope.symbols, sizes))
            self.variants.append(_optimised(self.traced, self.scope.of_copy(values)))
            found = self.variants[-1] if self.variants[-1].fits(sizes) else None
        return found

    def _resized(self, variant: Variant, sizes: Sequence[int]) -> CompiledProgram | None:
        """Return a program for given sizes without lowering it, or None if that is impossible."""
        found = None
        for each in variant.sized:
            if each.scope.holds(dict(zip(each.scope.symbols, sizes))):
                found = each
        if found is None:
            if variant.not_sized or settings.save_graphs:
                return None
            made = self._sized(variant, sizes)
            if made is None:
                return None
            variant.sized.append(found := made)
        device, kinds = self.traced.device, found.program.result_types
        shapes = iter(found.shapes(*sizes))
        types = [
            None if t is None else TensorType.of(tuple(next(shapes)), t.dtype).on(device)
            for t in kinds
        ]
        template = self.traced.template
        if not isinstance(template, Out):
            replace = Substitution(dict(zip(self.scope.symbols, sizes)))
            template = substituted(template, replace.value)
        return found.program.at(
            sizes,
            lambda: self._traced_for(sizes).graph,
            lambda: variant.optimised_for(sizes),
            types,
            template,
        )

    def _sized(self, variant: Variant, sizes: Sequence[int]) -> _Sized | None:
        """Lower the graph for all sizes like the given ones; return None if that fails.

        If it would fail for other sizes too, the reason is stored, and nothing is tried again. A
        size that equals another number by chance, as in ``n - 1 == 1``, is no such reason.
        """
        found = self._lowered(variant, sizes)
        if isinstance(found, _Sized):
            return found
        reason, by_chance = found
        variant.failures += 1
        if not by_chance or variant.failures >= MOST_FAILURES:
            variant.not_sized = reason
        return None

    def _lowered(self, variant: Variant, sizes: Sequence[int]) -> _Sized | tuple[str, bool]:
        """Lower the graph for all sizes like the given ones.

        If it fails, the result is (reason, whether only some sizes are the cause).
        """
        device = self.traced.device
        if self.traced.level == "O0":
            return "level O0 makes no native programs", False
        if not registry.backend(device.name).symbolic_sizes:
            return f"the {device.name} backend prepares kernels for each shape", False
        if len(variant.sized) >= MOST_SIZED:
            return f"kernels distinguish {MOST_SIZED} ranges of sizes already", False
        copies = list(variant.scope.of_copy(dict(zip(variant.scope.symbols, sizes))).values())
        scope = copies[0].scope
        scope.write, scope.refuses = text_of, True
        try:
            program = self._traced_for(copies).program(variant.optimised_for(copies))
            scope.closed = True
        except SizeNeeded as error:
            return str(error), bool(scope.pinned)
        except Exception as error:  # noqa: BLE001  (a kernel builder that expects ints may raise any)
            return f"{type(error).__name__}: {error}", False
        if scope.pinned:
            return f"the number {text_of(scope.pinned[0].left)} is needed", True
        if not program.serves_sizes:
            return (program.notes or ["it has no native program"])[-1], False
        shapes = [list(t.shape) for t in program.result_types if t is not None]
        return _Sized(scope, program, evaluator(scope.symbols, shapes))

    def description(self) -> str:
        """Return the shapes, symbols and guards as text."""
        shapes = ", ".join(f"({', '.join(map(text_of, shape))})" for shape in self.shapes)
        symbols = ", ".join(map(str, self.scope.symbols))
        guards = ", ".join(map(str, self.scope.guards.values())) or "none"
        return f"one program for shapes {shapes} with {symbols}; guards: {guards}"

    def __str__(self) -> str:
        text = self.description()
        for variant in self.variants:
            if variant.optimised is None:
                text += f"; passes run for each shape: {variant.problem}"
            elif variant.scope.guards:
                text += f"; passes for {', '.join(map(str, variant.scope.guards.values()))}"
            if variant.not_sized:
                text += f"; lowered for each shape: {variant.not_sized}"
        return f"{text}; used for {self.specialised} shapes, lowered {self.lowered} times"
