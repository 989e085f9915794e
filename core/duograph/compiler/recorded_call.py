"""Runs a compiled program while a gradient tape records: as one node of the tape, or op by op.

`compiler.function` calls `RecordedProgram.call` if a tape records an input of the program. Inside a
derivative of a derivative, every op of the graph is recorded on its own. The module never compiles
Python source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import passes
from ..autodiff.node_plans import GraphPlan
from ..autodiff.tape import Node, Output, edge_of
from ..backend.prepared import Handle
from ..execution.executable import Executable
from ..execution.lower import lower_program
from ..frontend.types import Value
from ..ir.optimizer import Watch
from ..tensor import Tensor
from ..types import TensorType
from .compiled_program import CompiledProgram
from .inputs import read_input
from .interpret import interpret

__all__ = ["RecordedProgram"]


class _Forward(NamedTuple):
    """A program's forward graph, lowered to return also the values that its backward graph needs.

    Attributes:
        plan: the gradient plan, from which the tape node computes its gradients.
        executable: from handles of the inputs to handles of the results and of the residuals.
        residuals: positions of the values that the backward graph needs, among the inputs followed
            by the outputs of the executable.
    """

    plan: GraphPlan
    executable: Executable
    residuals: list[int]


class RecordedProgram:
    """Runs a compiled program while a gradient tape records, and adds it to the tape.

    The object stores one lowered forward graph per set of inputs that a tape records.
    """

    def __init__(self, program: CompiledProgram) -> None:
        self.program = program
        self._forwards: dict[tuple[bool, ...], _Forward] = {}

    def is_recorded(self, leaves: Sequence[Tensor]) -> bool:
        """Return whether a gradient tape records a tensor argument or a state tensor.

        `leaves` are the tensors among the arguments. State tensors are those that the program
        reads although they are no arguments.
        """
        return any(x._type.level for x in leaves) or any(x._type.level for x in self.program.state)

    def call(
        self, leaves: Sequence[Tensor], numbers: Sequence[object], containers: Sequence[object]
    ) -> Value:
        """Run a compiled program, record it on the tape and return the function's result.

        The parameters are those of `CompiledProgram.call`.
        """
        program = self.program
        sources: list[Tensor | None] = [
            leaves[v] if kind == "arg" else v if kind == "state" else None
            for kind, v in program.inputs
        ]
        handles = [
            read_input(source, leaves, numbers, containers, program.device)
            for source in program.inputs
        ]
        if max(x._type.level for x in sources if x is not None) > 1:
            values: Sequence[Value] = self._interpreted(sources, handles)
        else:
            values = self._as_one_node(sources, handles)
        return program.finish(values, leaves, containers)

    def _as_one_node(
        self, sources: Sequence[Tensor | None], handles: Sequence[Handle]
    ) -> list[Value]:
        """Run a program's forward executable and record it as one tape node; return the results.

        Args:
            sources: the Tensor for each input of the program; None for an input that is not a
                tensor.
            handles: what to pass for each input.
        """
        program = self.program
        wanted = tuple([x is not None and x._type.level > 0 for x in sources])
        forward = self._forward(wanted)
        # before the call, because Python code that the graph calls may replace the tensors' buffers
        edges = tuple(
            [edge_of(x) if x is not None and w else None for x, w in zip(sources, wanted)]
        )
        try:
            found = forward.executable.form.run(*handles)
        except Exception as error:
            program.locate(error, handles)
            raise
        kept = (*handles, *found)
        node = Node(forward.plan, edges, tuple([kept[i] for i in forward.residuals]), False)
        values: list[Value] = []
        for i, t in enumerate(program.result_types):
            if t is None:
                values.append(found[i])
            elif t.dtype.kind not in "fciub":
                values.append(Tensor._make(t, found[i]))
            elif (source := program.graph.outputs[i]) < len(edges):  # an input is returned as it is
                edge = edges[source]
                made = Tensor._make(t.on(program.device, int(edge is not None)), found[i])
                if edge is not None:
                    made._edge = edge
                values.append(made)
            else:
                made = Tensor._make(t.on(program.device, 1), found[i])
                made._edge = Output(node, i)
                values.append(made)
        return values

    def _forward(self, wanted: tuple[bool, ...]) -> _Forward:
        made = self._forwards.get(wanted)
        if made is None:
            program = self.program
            graph, level = program.graph, program.level
            plan = GraphPlan(graph, wanted, program.device, program.name, level, True)
            linearized = plan.full
            watch: Watch | None = None
            if program.dump is not None:
                watch = program.dump.watch("forward")
                # for the dump alone: the tape lowers the backward at its first use
                context = passes.PassContext(watch=program.dump.watch("backward"))
                passes.run(linearized.backward, context)
            executable = lower_program(linearized.forward, program.device, watch, level)
            n = graph.n_params
            outputs = linearized.forward.outputs
            positions = {i: n + k for k, i in reversed(list(enumerate(outputs)))}
            residuals = [i if i < n else positions[i] for i in linearized.residuals]
            made = self._forwards[wanted] = _Forward(plan, executable, residuals)
        return made

    def _interpreted(
        self, sources: Sequence[Tensor | None], handles: Sequence[Handle]
    ) -> tuple[Value, ...]:
        """Run a program's graph op by op, so that the tape records each op; return its outputs.

        The parameters are those of `_as_one_node`.
        """
        program = self.program
        values = []
        for x, h, t in zip(sources, handles, program.graph.types):
            if x is not None:
                made = Tensor._make(x._type, x._buf)
                if x._type.level:
                    made._edge = edge_of(x)
                values.append(made)
            else:
                values.append(
                    Tensor._make(t.on(program.device), h) if isinstance(t, TensorType) else h
                )
        return interpret(program.graph, values, program.device)
