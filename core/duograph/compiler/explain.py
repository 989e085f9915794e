"""The result of `JitFunction.explain`: what a program does, and why it was compiled.

An `Explanation` reads a finished program and never compiles or runs one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Graph
from ..tensor import Tensor
from .compiled_program import CompiledProgram
from .key import JitKey

__all__ = ["Explanation"]


class Explanation:
    """A report on a function compiled for one signature; `str()` formats it for people.

    Attributes:
        key: the types and settings that the function was compiled for.
        captures: (name, value) of what the program treats as constant.
        reads: names of Parameters and tensors from outside whose values are inputs.
        writes: names of the Parameters, tensors, arguments and attributes that are written.
        effects: such as "io" and "random".
        reasons: per compilation of the function, the field of the key that differed.
        graph: before optimisation; None when the function runs line by line.
        line_by_line: why the function runs line by line; "" if it is compiled.
        level: "O0", "O1" or "O2".
        kernels: what was compiled above O0, and reasons why something was not.
    """

    def __init__(
        self,
        name: str,
        key: JitKey,
        program: CompiledProgram | None,
        reason: str,
        reasons: list[str],
    ) -> None:
        self.name = name
        self.key = key
        self.line_by_line = reason
        self.reasons = reasons
        self.graph = None if program is None else program.graph
        self.captures: list[tuple[str, object]] = []
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.effects: list[str] = []
        self.seconds = 0.0
        self.level = ""
        self.kernels: list[str] = []
        if program is None:
            return
        self.seconds = program.seconds
        self.level = program.level
        self.kernels = list(program.notes)
        self.captures = [(c.label, c.value) for c in program.captures.items.values()]
        for kind, v in program.inputs:
            if kind == "state":
                self.reads.append(_name(v))
            elif kind in ("attribute", "item", "cell"):
                self.reads.append(str(v[1]))
        for kind, v, _ in program.writes:
            self.writes.append(_name(v) if kind == "state" else f"argument {v}")
        self.effects = [type(e).__name__.lower() for e in program.graph.effects]
        self.writes += [
            name for name in _set_names(program.graph, set()) if name not in self.writes
        ]
        self.effects = sorted(set(self.effects))

    def __str__(self) -> str:
        lines = [f"{self.name}:"]
        if self.line_by_line:
            lines.append(f"  runs line by line: {self.line_by_line}")
        lines.append(
            f"  compiled for: {self.key.arguments!r}"
            + (f" {self.key.keywords!r}" if self.key.keywords else "")
        )
        lines.append(f"  compiling took {self.seconds * 1000:.1f} ms")
        if self.level:
            lines.append(f"  level {self.level}: " + ("; ".join(self.kernels) or "op by op"))
        for what, items in (
            ("reads", self.reads),
            ("writes", self.writes),
            ("effects", self.effects),
            ("captures", [f"{n} = {_short(v)}" for n, v in self.captures]),
            ("compilations", self.reasons),
        ):
            lines.append(f"  {what}: " + (", ".join(items) if items else "nothing"))
        return "\n".join(lines)

    __repr__ = __str__


def _set_names(graph: Graph, seen: set[int]) -> Iterator[str]:
    """Yield the names of Python attributes and items that a graph's host calls set.

    Includes sub-graphs; `seen` holds the ids of graphs already visited.
    """
    if id(graph) in seen:
        return
    seen.add(id(graph))
    for node in graph.nodes:
        run = node.attributes.get("run")
        if run is not None and run.name.startswith("set "):
            yield run.name[4:]
        for inner in node.graphs:
            yield from _set_names(inner, seen)
        target = node.attributes.get("target")
        if target is not None and target.graph is not None:
            yield from _set_names(target.graph, seen)


def _name(value: Tensor) -> str:
    return str(getattr(value, "name", None) or f"a Tensor of shape {value.shape}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 40 else text[:37] + "..."
