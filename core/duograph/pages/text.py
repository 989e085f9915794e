"""The text form of the page about a compiled function: its data, printed for a terminal.

`Page.text` calls `page_text`. The text has all that the page shows except the pictures. The module
must not import the compiler: it only formats the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["page_text"]

# Data of the page, which `compiler.program_facts.page_facts` describes.
Data = Mapping[str, Any]
# Positions in a head and in a node; see `compiler.graph_facts`.
OP, ATTRIBUTES, TYPES, FILE, LINE, EFFECTS, CALLED = range(7)
HEAD, OPERANDS, RESULTS, INNER = range(4)
# Names of a function's facts that the report lists, and its headings for them.
LISTS = {
    "reads": "reads",
    "writes": "writes",
    "effects": "effects",
    "host_calls": "calls of Python",
    "reasons": "compilations",
    "sizes": "sizes",
    "divided": "divided among ranks",
}


def page_text(data: Data) -> str:
    """Return the text form of a page's data; see `pages.render`."""
    return "\n".join(
        [*_facts(data["facts"]), *_sources(data["sources"]), *_programs(data), *_gradient(data)]
    )


def _facts(facts: Data) -> Iterator[str]:
    yield f"{facts['name']}, compiled for {facts['arguments']}"
    if facts["line_by_line"]:
        yield f"runs line by line: {facts['line_by_line']}"
    if facts["level"]:
        yield f"on {facts['device']} at level {facts['level']}, compiled in {_ms(facts['seconds'])}"
    for name, title in LISTS.items():
        yield from _section(title, facts[name])
    guards = [
        f"{c['name']} = {c['value']}: {c['guard']}"
        + ("; a change always compiles again" if c["exact"] else "")
        for c in facts["captures"]
    ]
    yield from _section("captures and their guards", guards)


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield a heading and indented lines; nothing if there are no lines."""
    if lines:
        yield f"\n{title}:"
        yield from (f"  {line}" for line in lines)


def _sources(sources: Sequence[Data]) -> Iterator[str]:
    for part in sources:
        lines = [f"{k:4d}  {line}" for k, line in enumerate(part["lines"], part["first"])]
        yield from _section(f"source, {part['name']}", lines)


def _programs(data: Data) -> Iterator[str]:
    for program in data["programs"]:
        yield f"\n=== {program['title']} ==="
        yield from program["notes"]
        first, *others = program["stages"]
        last = others[-1] if others else first
        times = None if others else program["times"]  # they belong to the last graph
        yield from _section(f"graph, {first['pass']}", list(_graph(first["graph"], data, times)))
        yield from _section("passes that changed it", [_changed(stage) for stage in others])
        if others:
            after = list(_graph(last["graph"], data, program["times"]))
            yield from _section("graph after the passes", after)
        yield from _section("fusion", [_decision(each) for each in last.get("fusion", ())])
        for k, kernel in enumerate(program["kernels"], 1):
            yield from _kernel(k, kernel)
        if program["memory"] is not None:
            yield from _section("memory plan", list(_memory(program["memory"])))
    for name, graph in data["named"].items():
        if graph is not None:
            yield from _section(f"function {name}", list(_graph(graph, data)))


def _graph(graph: Data, data: Data, times: Mapping[str, float] | None = None) -> Iterator[str]:
    """Yield the lines of a graph's listing; `times` maps positions of nodes to seconds."""
    for k, (type_, name, kind) in enumerate(graph["p"]):
        yield f"%{k}: {type_}" + (f" = {kind} {name}" if name else "")
    for at, node in enumerate(graph["n"]):
        yield from _node(node, data, (times or {}).get(str(at)))
    yield "return " + ", ".join(f"%{i}" for i in graph["o"])


def _node(node: Sequence[Any], data: Data, seconds: float | None) -> Iterator[str]:
    head = data["heads"][node[HEAD]]
    operands = ["none" if i is None else f"%{i}" for i in node[OPERANDS]]
    given = ", ".join([*operands, *([head[ATTRIBUTES]] if head[ATTRIBUTES] else [])])
    line = f"{head[OP]}{' ' + head[CALLED] if head[CALLED] else ''}({given})"
    if node[RESULTS]:
        line = f"{', '.join(f'%{i}' for i in node[RESULTS])} = {line} : {', '.join(head[TYPES])}"
    notes = [head[EFFECTS]] if head[EFFECTS] else []
    if head[FILE] >= 0:
        notes.append(f"{data['files'][head[FILE]]}:{head[LINE]}")
    if seconds is not None:
        notes.append(f"{seconds * 1e6:.1f} us")
    yield line + (f"  # {', '.join(notes)}" if notes else "")
    for title, inner in node[INNER] if len(node) > INNER else ():
        yield f"  {title}:"
        yield from (f"    {each}" for each in _graph(inner, data))


def _changed(stage: Data) -> str:
    found = stage["changes"]
    counts = [("new", "new"), ("rewired", "with other operands"), ("gone", "gone")]
    parts = [f"{len(found[key])} {words}" for key, words in counts if found[key]]
    if found["inner"]:
        parts.append(f"{len(found['inner'])} changed inside")
    return f"{stage['pass']}: nodes {', '.join(parts) or 'in another order'}"


def _decision(entry: Data) -> str:
    where = "" if entry["kernel"] is None else f" in kernel {entry['kernel'] + 1}"
    value = f" %{entry['id']}" if entry["id"] >= 0 else ""
    line = f", line {entry['line']}" if entry["line"] else ""
    apart = "".join(f"; apart from %{i}: {why}" for i, why in entry["apart"])
    return f"{entry['op']}{value}{line}{where}: {entry['why']}{apart}"


def _kernel(number: int, kernel: Data) -> Iterator[str]:
    built = "" if kernel["built"] else "; not compiled, runs op by op"
    yield from _section(
        f"kernel {number}: {', '.join(kernel['ops'])}; reads {kernel['reads']} bytes, writes "
        f"{kernel['writes']} bytes{built}",
        (kernel["source"] or kernel["graph"]).splitlines(),
    )


def _memory(memory: Data) -> Iterator[str]:
    yield (
        f"an arena of {memory['arena']} bytes for values of {memory['total']} bytes, "
        f"{memory['results']} bytes of new memory for results, {memory['donations']} results in "
        "the memory of Parameters"
    )
    steps = memory["steps"]
    for block in memory["blocks"]:
        uses = [f"{k} ({steps[k][0]})" for k in (block["first"], block["last"]) if k < len(steps)]
        yield (
            f"bytes {block['offset']} to {block['offset'] + block['bytes']}: {block['op']} "
            f"{block['type']}, steps {' to '.join(uses)}"
        )


def _gradient(data: Data) -> Iterator[str]:
    if data["gradient"]:
        yield f"\nno graph of the gradient: {data['gradient']}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
