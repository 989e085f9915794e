"""Writes graphs of compiled functions to files (`set_context(save_graphs=...)`, `DUOGRAPH_DUMP`).

Each compilation has a folder `<path>/<function>_<number>`. Its files are numbered in the order in
which the graphs were made: the graph as evaluated, then the graph after each pass, then the graphs
of derivatives. `duograph.ir.text.parse` reads them back. `compiler` calls this module, which must
not change any graph.
"""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Callable

from ..context import settings
from .graph import Graph, GraphNode, NamedGraph
from .text import node_text, to_text

__all__ = ["Dump", "dump_of", "to_dot"]


class Dump:
    """Writer of the graphs of one compilation to numbered files in a folder.

    Attributes:
        folder: the folder.
        level: 1 writes the graph before the passes and the graph that runs; 2 also writes the graph
            after every pass; 3 also writes drawings for Graphviz.
        count: number of graphs written so far.
    """

    def __init__(self, folder: pathlib.Path, level: int) -> None:
        self.folder = folder
        self.level = level
        self.count = 0

    def watch(self, form: str = "") -> Callable[[str, Graph], None]:
        """Return a callback of (pass name, graph) that writes the graph to a numbered file.

        `form` is a prefix of the file names, such as "backward". At level 1 the callback writes
        only the first and the final graph.
        """
        name = f"{form}_" if form else ""

        def write(what: str, graph: Graph) -> None:
            wanted = what in ("read", "done") if self.level == 1 else what != "done"
            if wanted:
                self.write(f"{name}{what}", graph)

        return write

    def write(self, what: str, graph: Graph) -> None:
        """Write a graph to the next numbered text file; at level 3 also to a Graphviz file.

        `what` becomes part of the file name.
        """
        name = f"{self.count:02d}_{re.sub(r'[^A-Za-z0-9_.]+', '_', what)}"
        self.count += 1
        (self.folder / f"{name}.ir").write_text(to_text(graph) + "\n", encoding="utf-8")
        if self.level > 2:
            (self.folder / f"{name}.dot").write_text(to_dot(graph) + "\n", encoding="utf-8")


def dump_of(name: str) -> Dump | None:
    """Create a folder for the graphs of one compilation, and return the writer for it.

    `name` is the function's name. Returns None if `settings.save_graphs` is off.
    """
    if not settings.save_graphs:
        return None
    base = re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_.")[:80] or "function"
    root = pathlib.Path(settings.save_graphs_path)
    root.mkdir(parents=True, exist_ok=True)
    for number in itertools.count():
        folder = root / f"{base}_{number}"
        try:
            folder.mkdir()
        except FileExistsError:  # from an earlier compilation or another process
            continue
        return Dump(folder, settings.save_graphs)
    raise AssertionError


def to_dot(graph: Graph) -> str:
    """Return a graph as Graphviz text with a nested box for each sub-graph."""
    lines = ["digraph {", '  node [shape=box, fontname="monospace"];']
    number = itertools.count()
    named: dict[int, str] = {}

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def draw(inner: Graph, pad: str, title: str) -> str:
        """Append the boxes of a graph to the Graphviz text; return the name of its `return` box."""
        own = next(number)
        makers: dict[int, str] = {}
        lines.append(f"{pad}subgraph cluster_{own} {{")
        lines.append(f"{pad}  label={quoted(title)};")
        for i in range(inner.n_params):
            makers[i] = f"p{own}_{i}"
            lines.append(
                f"{pad}  {makers[i]} [label={quoted(f'%{i}: {inner.types[i]}')}, style=rounded];"
            )
        for node in inner.nodes:
            box = f"n{next(number)}"
            lines.append(f"{pad}  {box} [label={quoted(node_text(inner, node))}];")
            lines.extend(f"{pad}  {makers[i]} -> {box};" for i in node.operands if i is not None)
            makers.update(dict.fromkeys(node.results, box))
            inside(node, box, pad + "  ")
        end = f"r{own}"
        lines.append(f"{pad}  {end} [label=return, style=rounded];")
        lines.extend(f"{pad}  {makers[i]} -> {end};" for i in inner.outputs)
        lines.append(f"{pad}}}")
        return end

    def inside(node: GraphNode, box: str, pad: str) -> None:
        for k, inner in enumerate(node.graphs):
            end = draw(inner, pad, f"{node.op.name} {k}")
            lines.append(f"{pad}{end} -> {box} [style=dashed];")
        for value in node.attributes.values():
            if isinstance(value, NamedGraph) and value.graph is not None:
                if id(value) not in named:
                    named[id(value)] = ""  # it may call itself
                    named[id(value)] = draw(value.graph, pad, repr(value))
                if named[id(value)]:
                    lines.append(f"{pad}{named[id(value)]} -> {box} [style=dashed];")

    draw(graph, "  ", "graph")
    return "\n".join([*lines, "}"])
