"""Says which kernel call raised an error that the backend interface does not foresee.

The functions that call kernels come here from their exception handlers, which cost nothing while no
error is raised (Python 3.11 and later). The error keeps its class and its message; it gets a note
such as ``while MyDevice:0 computed exp(float32[3])``. Errors of duograph, IndexError and
MemoryError are left alone: kernels raise them on purpose, with messages that name the op.

In debug mode `kernel_checks` replaces the error by a BackendError instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..backend.plugin_checks import call_text
from ..backend.program import Step
from ..error_notes import add_note
from ..errors import DuographError
from ..ir.graph import Graph
from ..types import Device
from .control import CONTROL_OPS
from .source_spans import mark_source, source_of

if TYPE_CHECKING:
    from ..ir.graph import Attributes

__all__ = ["name_graph", "name_step"]

_HEAD = "  while "
# Ops of a graph that a note lists.
_MAX_OPS = 6


def name_step(error: Exception, step: Step, device: Device) -> None:
    """Add a note with the kernel call, and the user's source line, to an error of a step.

    The error is not changed if a kernel inside the step has been named already, or if it is one of
    Python code inside a graph, which is the user's own.

    Args:
        error: what the step raised.
        step: the step.
        device: the device of the kernel.
    """
    if not _is_unnamed(error):
        return
    if step.name in CONTROL_OPS:
        bodies = _graphs_in(step.attributes)
        if not bodies or any(_runs_python(body) for body in bodies):
            return
        text = f"{step.name} with {' or '.join(map(_op_names, bodies))}"
    elif step.name == "region":
        text = f"a fused region of {_op_names(step.attributes['body'])}"
    else:
        types = step.types[: len(step.operands)]
        text = call_text(step.name, types) if types else step.name or "a copy"
    owner = f" by the kernel of {step.call.owner}" if step.call.owner else ""
    add_note(error, f"{_HEAD}{device} computed {text}{owner}")
    if step.spans:
        mark_source(error, step.spans[-1:])


def name_graph(error: Exception, graph: Graph, device: Device, of: str = "") -> None:
    """Add a note with the ops of a graph to an error of a call that runs it as one kernel.

    The error is not changed if a step of the graph has been named already, or if the graph runs
    control flow or Python code, whose errors may be the user's own.

    Args:
        error: what the call raised.
        graph: the graph before it was lowered.
        device: the device that ran it.
        of: the op or function whose gradient the graph computes; "" if it computes no gradient.
    """
    nodes = [n for n in graph.nodes if n.operands and not n.op.alias] or graph.nodes
    if not _is_unnamed(error) or _runs_python(graph):
        return
    if len(nodes) == 1:
        types = [None if i is None else graph.types[i] for i in nodes[0].operands]
        text = call_text(nodes[0].op.name, types)
    else:
        text = _op_names(graph)
    text += f", for the gradient of {of}" if of else ""
    add_note(error, f"{_HEAD}{device} computed {text}")
    spans = [n.span for n in nodes if n.span is not None]
    if len({(s.file, s.line) for s in spans}) == 1:
        mark_source(error, spans[-1:])


def _is_unnamed(error: Exception) -> bool:
    """Return whether an error may be named here and has no note or source line yet."""
    if isinstance(error, (DuographError, IndexError, MemoryError)) or source_of(error) is not None:
        return False
    return not any(str(note).startswith(_HEAD) for note in getattr(error, "__notes__", ()))


def _graphs_in(attributes: Attributes) -> list[Graph]:
    """Return the graphs among the attributes of a step of control flow."""
    found = []
    for value in attributes.values():
        each = value if isinstance(value, (tuple, list)) else (value,)
        found += [g for g in each if isinstance(g, Graph)]
    return found


def _runs_python(graph: Graph) -> bool:
    """Return whether a graph has control flow, Python code or Python numbers."""
    return any(n.op.name in CONTROL_OPS for n in graph.nodes)


def _op_names(graph: Graph) -> str:
    """Return the names of a graph's ops, each once, as a list in words."""
    found = list(dict.fromkeys([n.op.name for n in graph.nodes if n.operands]))
    more = [f"{len(found) - _MAX_OPS} more"] if len(found) > _MAX_OPS else []
    *first, last = [*found[:_MAX_OPS], *more] or ["a constant"]
    return f"{', '.join(first)} and {last}" if first else last
