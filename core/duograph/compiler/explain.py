"""The result of `JitFunction.explain`: what a program does, and why it was compiled.

`facts_of` collects the facts about one compiled call as plain data. `Explanation` prints them as
text; `compiler.program_facts` and `pages` show the same object as an HTML page. Nothing here
compiles or runs a program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from ..frontend.libraries import is_framework, is_user_function
from ..frontend.state.captures import Capture
from ..frontend.state.journal import MISSING
from ..ir.control import host_call
from ..ir.graph import Graph, GraphNode
from ..pages import Page, notebook
from ..tensor import Tensor
from .compiled_program import CompiledProgram
from .key import JitKey

__all__ = [
    "CaptureFact", "Explanation", "Facts", "argument_name", "facts_of", "input_names",
    "programs_html", "tensor_name",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class CaptureFact:
    """A value from outside that a program took as constant, and how a call checks it.

    Attributes:
        name: the name for messages.
        value: the value as text.
        guard: what is compared before a call, as a sentence.
        exact: whether a change always compiles the function again, whatever the user's setting
            `stale_captures` says.
    """

    name: str
    value: str
    guard: str
    exact: bool


@dataclasses.dataclass(frozen=True)
class Facts:
    """What is known about a function compiled for one signature, as plain data.

    Attributes:
        name: the name of the function.
        arguments: the types and constants that it was compiled for.
        device, level: the device and the jit level; "" if the function runs uncompiled, line by
            line.
        seconds: how long compiling took.
        line_by_line: why the function runs line by line; "" if it is compiled.
        kernels: at levels above O0, which parts of the graph were compiled to kernels, and why
            others were not.
        reads: names of Parameters and tensors from outside whose values are inputs.
        writes: names of the Parameters, tensors, arguments and attributes that are written.
        effects: kinds of side effects, such as "io" and "random".
        host_calls: the calls of Python code that the program makes each time, with their lines.
        captures: what the program treats as constant.
        reasons: why the function was compiled again or runs line by line, oldest first. A reason
            names, for example, the part of the cache key that differed.
        divided: layouts and communication of a program that is divided among ranks.
        sizes: lines about the programs that serve many sizes of the arguments, and about why other
            sizes were compiled separately; empty if there are no such lines.
    """

    name: str
    arguments: str
    device: str = ""
    level: str = ""
    seconds: float = 0.0
    line_by_line: str = ""
    kernels: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    host_calls: tuple[str, ...] = ()
    captures: tuple[CaptureFact, ...] = ()
    reasons: tuple[str, ...] = ()
    divided: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()


# Kind of a capture -> what its guard compares.
GUARDS = {
    "item": "the global variable or dict item holds the same value",
    "attribute": "the attribute has the same value",
    "cell": "the closure variable has the same value",
    "function": "the function has the same code and defaults",
    "method": "the class defines the same method",
    "class": "the object has the same class",
    "bases": "the class has the same base classes",
    "code": "the function has the same code",
    "form": "the tensor has the same shape and dtype",
    "entries": "the container has the same items",
    "contents": "the array or tensor has the same contents",
    "members": "the Cell has the same Parameters, children and options",
    "hooks": "the Cell has the same hooks",
    "tensor hooks": "the Tensor or Parameter has the same gradient hooks",
    "type": "the location holds a value of the same type",
    "answer": "asking again gives the same answer",
}


def facts_of(
    name: str,
    key: JitKey,
    program: CompiledProgram | None,
    reason: str,
    reasons: list[str],
    sizes: Sequence[str] = (),
    names: Sequence[str] = (),
) -> Facts:
    """Return the facts about a cache entry: about its program, or the `reason` why it has none.

    `reasons` and `sizes` become the attributes of `Facts` with these names. `names` are those of
    the tensor arguments, as `JitKey.tensor_names` returns them.
    """
    arguments = repr(key.arguments) + (f" {key.keywords!r}" if key.keywords else "")
    if program is None:
        return Facts(name, arguments, line_by_line=reason, reasons=tuple(reasons))
    reads: list[str] = []
    for kind, v in program.inputs:
        if kind == "state":
            reads.append(tensor_name(v))
        elif kind in ("attribute", "item", "cell"):
            reads.append(str(v[1]))
    writes = [
        tensor_name(v) if kind == "state" else argument_name(names, v)
        for kind, v, _ in program.writes
    ]
    host_calls = list(_host_calls(program.graph, set()))
    names = [str(node.attributes["run"].name) for node in host_calls]
    set_names = [name[4:] for name in names if name.startswith("set ")]
    writes += [n for n in dict.fromkeys(set_names) if n not in writes]
    return Facts(
        name,
        arguments,
        repr(program.device),
        program.level,
        program.seconds,
        kernels=tuple(program.notes),
        reads=tuple(reads),
        writes=tuple(writes),
        effects=tuple(sorted({type(e).__name__.lower() for e in program.graph.effects})),
        host_calls=tuple(
            name if node.span is None else f"{name} ({node.span})"
            for name, node in zip(names, host_calls, strict=True)
            if name != "tensor object"  # makes a Tensor for one of the other calls
        ),
        captures=tuple(map(_capture_fact, _of_user(program))),
        reasons=tuple(reasons),
        divided=_divided(program, names),
        sizes=tuple(sizes),
    )


def argument_name(names: Sequence[str], v: int) -> str:
    """Return the name of the tensor argument with number `v`; `names` may be incomplete."""
    return names[v] if v < len(names) else f"tensor {v} among the arguments"


def input_names(program: CompiledProgram, names: Sequence[str]) -> list[str]:
    """Return how messages call each input of a program; `names` are those of tensor arguments."""
    return [
        argument_name(names, v) if kind == "arg" else tensor_name(v) if kind == "state" else kind
        for kind, v in program.inputs
    ]


def _divided(program: CompiledProgram, names: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of `explain` on how a program is divided among ranks; () if it is not."""
    return () if program.divided is None else program.divided.report(input_names(program, names))


def _of_user(program: CompiledProgram) -> list[Capture]:
    """Return the captures of a program that a report names: those of what the user wrote.

    Guards also compare the function's own code, and the methods of this framework's classes that
    the function uses, because a program may replace them.
    """
    return [c for c in program.captures.items.values() if not (c.kind == "code" or _is_ours(c))]


def _is_ours(c: Capture) -> bool:
    """Return whether a capture is what a class of this framework defines under a name, or lacks."""
    if c.kind != "method" or not is_framework(c.owner.__module__):
        return False
    return c.value is MISSING or not is_user_function(getattr(c.value, "fget", c.value))


def _capture_fact(c: Capture) -> CaptureFact:
    guard = GUARDS[c.kind] + (", and is the same object" if c.by_identity else "")
    return CaptureFact(c.label, _short(c.value), guard, c.exact)


class Explanation:
    """A report on a function compiled for one signature; `str()` formats its main facts.

    `details()` returns everything that the page of `show` has, as text.

    Attributes:
        facts: the contents of all other attributes as plain data.
        key: the types and settings that the function was compiled for.
        captures: (name, value) of what the program treats as constant.
        reads, writes, effects, host_calls, reasons, line_by_line, level, kernels, seconds: see
            `Facts`.
        divided, sizes: see `Facts`.
        graph: the graph before optimisation; None if the function runs uncompiled.
    """

    def __init__(
        self,
        facts: Facts,
        key: JitKey,
        program: CompiledProgram | None,
        page: Callable[[], Page],
    ) -> None:
        self.facts = facts
        self._page = page
        self.key = key
        self.name = facts.name
        self.line_by_line = facts.line_by_line
        self.reasons = list(facts.reasons)
        self.reads = list(facts.reads)
        self.writes = list(facts.writes)
        self.effects = list(facts.effects)
        self.host_calls = list(facts.host_calls)
        self.seconds = facts.seconds
        self.divided = list(facts.divided)
        self.sizes = list(facts.sizes)
        self.level = facts.level
        self.kernels = list(facts.kernels)
        self.graph = None if program is None else program.graph
        self.captures: list[tuple[str, object]] = []
        if program is not None:
            self.captures = [(c.label, c.value) for c in _of_user(program)]

    def details(self) -> str:
        """Return all that the page of `show` says, as text.

        That is the source, the graph before and after the passes with types, effects and source
        lines, what each pass changed, the guard of each capture, why nodes were fused or not, the
        generated kernels, the memory plan, the time of each node if the function has no side
        effects, and the graphs of the gradient.

        Examples:
            >>> import duograph as ms
            >>> @ms.jit
            ... def double(x):
            ...     return x + x
            >>> print(double.explain(ms.Tensor([1.0, 2.0])).details().splitlines()[0])
            double, compiled for (float32[2]@CPU:0,)
        """
        return self._page().text()

    def __str__(self) -> str:
        facts = self.facts
        lines = [f"{facts.name}:"]
        if facts.line_by_line:
            lines.append(f"  runs line by line: {facts.line_by_line}")
        lines.append(f"  compiled for: {facts.arguments}")
        lines.append(f"  compiling took {facts.seconds * 1000:.1f} ms")
        if facts.level:
            lines.append(f"  level {facts.level}: " + ("; ".join(facts.kernels) or "op by op"))
        for what, items in (
            ("reads", facts.reads),
            ("writes", facts.writes),
            ("effects", facts.effects),
            ("calls of Python", facts.host_calls),
            ("captures", [f"{c.name} = {c.value}" for c in facts.captures]),
            ("compilations", facts.reasons),
            ("sizes", facts.sizes),
        ):
            if items or what != "sizes":
                lines.append(f"  {what}: " + (", ".join(items) if items else "nothing"))
        lines += [f"  {line}" for line in facts.divided]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = notebook.pre(str(self))
        if self.graph is not None:
            shown += notebook.unfolding("graph before optimisation", notebook.pre(str(self.graph)))
        return shown


def programs_html(name: str, programs: Sequence[Facts]) -> str:
    """Return the HTML that a notebook shows for a compiled function: a table of its programs."""
    title = notebook.heading(f"compiled function {name}")
    if not programs:
        return title + notebook.line("no program yet: it is compiled at the first call")
    rows = [
        (
            facts.arguments,
            facts.level or "line by line",
            "; ".join(facts.kernels) or facts.line_by_line or "op by op",
            f"{facts.seconds * 1000:.1f} ms",
        )
        for facts in programs
    ]
    head = ("arguments", "level", "how it runs", "compiling took")
    return title + notebook.table(head, rows, 3)


def _host_calls(graph: Graph, seen: set[int]) -> Iterator[GraphNode]:
    """Yield the nodes of a graph and its sub-graphs that call Python code, in program order.

    `seen` holds the ids of graphs already visited.
    """
    if id(graph) in seen:
        return
    seen.add(id(graph))
    for node in graph.nodes:
        if node.op is host_call:
            yield node
        for inner in node.graphs:
            yield from _host_calls(inner, seen)
        target = node.attributes.get("target")
        if target is not None and target.graph is not None:
            yield from _host_calls(target.graph, seen)


def tensor_name(value: Tensor) -> str:
    """Return the name of a Parameter, or a description of another tensor."""
    return str(getattr(value, "name", None) or f"a Tensor of shape {value.shape}")


def _short(value: object) -> str:
    text = f"module {value.__name__}" if isinstance(value, ModuleType) else repr(value)
    text = " ".join(text.split())  # the text of a Cell has several lines
    return text if len(text) < 40 else text[:37] + "..."
