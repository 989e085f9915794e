"""Defines a graph pass (`Pass`), and the facts about program and backend that it may use.

`passes/__init__.py` lists the passes and builds the `PassContext` with these facts, which a pass
only reads. A pass must use neither the registry of backends nor a backend itself, so that it can be
tested without a backend.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import TypeAlias

from ..backend.costs import DEFAULT_COSTS, Costs
from ..ir.graph import Attributes, Graph
from ..ir.optimizer import Watch
from ..op import Op
from ..types import TensorType

__all__ = ["PLAIN", "Added", "Claims", "Decomposition", "Pass", "PassContext", "PluginPass"]

# A graph pass of a plugin; it receives the graph and no context.
PluginPass: TypeAlias = Callable[[Graph], Graph]

# Function that tells whether the backend has its own kernel for an op on operands of these types.
Claims: TypeAlias = Callable[[Op, tuple[TensorType | None, ...], Attributes], bool]
# Function that returns the provider of a kernel that a plugin has added for an op on operands of
# these types, or None if there is none that takes precedence over the backend's own.
Added: TypeAlias = Callable[[Op, tuple[TensorType | None, ...], Attributes], str | None]
# Function that returns the cleaned-up decomposition of an op on operands of these types, or None.
Decomposition: TypeAlias = Callable[[Op, tuple[TensorType | None, ...], Attributes], Graph | None]


def _claims_nothing(op: Op, types: tuple[TensorType | None, ...], attributes: Attributes) -> bool:
    return False


@dataclasses.dataclass(frozen=True)
class PassContext:
    """Facts about the program and its backend that graph passes depend on.

    Attributes:
        level: the jit level, "O0" to "O2".
        claims: function that returns whether the backend has a kernel of its own for an op.
        added: function that returns the name of the plugin whose kernel computes an op, if any;
            None if no plugin added kernels.
        decomposition: function that returns the graph of an op's decomposition; None at level O0,
            where no pass decomposes.
        decomposes: names of the ops for which the backend has its own decompositions.
        epilogues: names of the ops, such as matmul, whose kernel on this backend can also compute
            elementwise code on its result. The op and that code together are one fused region.
        decomposed: names of the ops that are decomposed although the backend has kernels for them,
            because fusing their bodies is faster.
        costs: costs and limits of the backend.
        passes: the backend's own passes as (name of the backend, pass).
        state: indices of the graph parameters that receive Parameters which the graph does not
            write. Their values rarely change from call to call.
        notes: list to which passes append lines for the user about what they did or declined; None
            if nobody reads such lines.
        watch: function that is called with each pass's name and the graph after it, or None.
    """

    level: str = "O0"
    claims: Claims = _claims_nothing
    added: Added | None = None
    decomposition: Decomposition | None = None
    decomposes: frozenset[str] = frozenset()
    epilogues: frozenset[str] = frozenset()
    decomposed: frozenset[str] = frozenset()
    costs: Costs = DEFAULT_COSTS
    passes: tuple[tuple[str, PluginPass], ...] = ()
    state: frozenset[int] = frozenset()
    notes: list[str] | None = None
    watch: Watch | None = None


# The context without backend and state, which is enough for the passes of level O0.
PLAIN = PassContext()


@dataclasses.dataclass(frozen=True)
class Pass:
    """A graph pass of the pipeline: its function and the conditions under which it runs.

    Attributes:
        name: its name in graph dumps.
        function: the pass itself, from (graph, context) to graph.
        level: the lowest jit level at which it runs.
        after: name of another pass; this pass runs only if that one changed the graph. "" if there
            is no such condition.
        concerns: ops that the pass rewrites; it is skipped on graphs that have none of them. None
            if it is never skipped for that reason.
    """

    name: str
    function: Callable[[Graph, PassContext], Graph]
    level: str = "O0"
    after: str = ""
    concerns: Collection[Op] | None = None
