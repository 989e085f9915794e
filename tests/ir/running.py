"""Runs graphs of tests on a backend and compares the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from duograph.backend import registry
from duograph.execution.lower import lower
from duograph.ir.graph import Graph
from duograph.ir.text import parse, to_text
from duograph.ir.verify import verify
from duograph.types import Device, TensorType
from ir.graphs import here


def execute(graph: Graph, values: Sequence[Any], name: str = "Reference") -> tuple[Any, ...]:
    """Verify, lower and run a graph on NumPy arrays and host values; return its results so."""
    verify(graph)
    device, backend = Device(name, 0), registry.backend(name)
    given = [
        backend.copy_in(np.ascontiguousarray(v), 0) if isinstance(graph.types[i], TensorType) else v
        for i, v in enumerate(values)
    ]
    found = lower(graph, device)(*given)
    out = []
    for handle, i in zip((found,) if graph.single else found, graph.outputs, strict=True):
        t = graph.types[i]
        out.append(
            backend.copy_out(handle, t.shape, t.dtype.np, 0).copy()
            if isinstance(t, TensorType)
            else handle
        )
    return tuple(out)


def again(graph: Graph) -> Graph:
    """Return the graph after a round trip through text, and check that it did not change."""
    text = to_text(graph)
    found = verify(parse(text))
    assert to_text(found) == text
    return found


def compare(graph: Graph, values: Sequence[Any], wanted: Sequence[Any], name: str) -> None:
    for each in (graph, again(graph)):
        found = execute(each, values, name)
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(f, w)
            assert isinstance(f, np.ndarray) or type(f) is type(w)


def append(op: Any, values: Sequence[Any] = (), **attributes: Any) -> Any:
    return here().append(op, tuple(values), attributes)


class Span:
    """A source location in a test."""

    file, line, text = "/home/user/model.py", 12, "y = net(x)  # ! {"
