"""The graph builder of evaluated source: a sub-graph takes what it uses of the graphs around it as
parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtype import DType
from ..errors import GraphError
from ..ir.builder import GraphBuilder, GraphTensor
from ..ir.graph import Graph, GraphNode
from ..ir.values import HostValue
from ..tensor import Tensor
from ..types import ValueType

if TYPE_CHECKING:
    from .trace import Trace

__all__ = ["StagedBuilder"]


class StagedBuilder(GraphBuilder):
    """Builds the graph of a function, or of a branch or loop body in it.

    Attributes:
        parent: builder of the graph around this one, None for the function's own.
        trace: the evaluation that it belongs to.
        outer: ids of values of the graph around that are used here, with the ids that they have
            here.
    """

    staged = True

    def __init__(self, trace: Trace, parent: StagedBuilder | None) -> None:
        super().__init__()
        self.trace = trace
        self.parent = parent
        # of branches, this one included; tensors made in it are not known outside
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.params: list[int] = []
        self.outer: dict[int, int] = {}
        self._inner: dict[tuple[int, int], int] = {}
        self._made: dict[int, int] = {}
        self._alive: list[Any] = []  # builders whose id is a key above
        if parent is not None:
            self.span = parent.span

    # ---- values -------------------------------------------------------------------------------

    def parameter(self, type_: ValueType) -> Any:
        made = self._value(type_)
        self.params.append(made._id)
        return made

    def bring(self, value: Any) -> Any:
        """A value of this graph, or of one around it, as a value of this graph."""
        builder = value._builder
        if builder is self:
            return value
        key = (id(builder), value._id)
        found = self._inner.get(key)
        if found is None:
            if self.parent is None:
                raise GraphError(
                    f"got {value!r}, which was computed inside a branch or a loop that has ended"
                )
            outer = self.parent.bring(value)
            found = self.outer.get(outer._id)
            if found is None:
                found = self.outer[outer._id] = self._value(outer._type)._id
            self._inner[key] = found
            self._alive.append(builder)
        return self.tensor(found)

    def host(self, value: Any) -> Any:
        if isinstance(value, HostValue):
            return self.bring(value)
        return super().host(value)

    def operand(self, value: Any, like: DType | None) -> Any:
        if isinstance(value, GraphTensor):
            return self.bring(value)
        if isinstance(value, Tensor):
            if id(value) in self.trace.fresh and id(value) not in self.trace.slots:
                return self._fresh(value)
            return self.bring(self.trace.state_value(value))
        if isinstance(value, np.ndarray) and id(value) in self.trace.live_arrays:
            return self.bring(self.trace.array_value(value))
        return super().operand(value, like)

    def _fresh(self, value: Tensor) -> Any:
        """A tensor that was made while compiling, as a constant of this graph."""
        found = self._made.get(id(value))
        if found is None:
            found = self._made[id(value)] = self.constant(value)._id
        return self.tensor(found)

    # ---- state --------------------------------------------------------------------------------

    def rebind(self, target: GraphTensor, value: GraphTensor) -> None:
        from .aliases import check_alone
        from .host import written

        check_alone(self.trace, target)
        self.trace.touch("tensor", target)
        super().rebind(target, value)
        written(self.trace, target)

    def write_state(self, target: Tensor, value: Tensor) -> None:
        """`target`, a tensor from outside or a graph tensor, stands for `value` from here on."""
        found = self.operand(value, None)
        if isinstance(target, GraphTensor):
            self.rebind(target, found)
        else:
            self.trace.write_slot(target, found)

    def look_at(self, value: Tensor) -> None:
        """Some code wants the data of an eager tensor while compiling."""
        self.trace.look_at(value)

    def made(self, value: Tensor) -> None:
        """An eager tensor was made while compiling: it is a constant."""
        self.trace.fresh[id(value)] = value
        self.trace.born[id(value)] = self.depth

    # ---- taking back --------------------------------------------------------------------------

    def mark(self) -> Any:
        """How far the graph is."""
        return len(self.nodes), len(self.types), dict(self._constants)

    def rewind(self, mark: Any) -> None:
        """Forget what was added since `mark`."""
        n_nodes, n_types, constants = mark
        del self.nodes[n_nodes:]
        del self.types[n_types:]
        self._constants = constants
        self._made = {k: i for k, i in self._made.items() if i < n_types}
        self._inner = {k: i for k, i in self._inner.items() if i < n_types}
        self.outer = {o: i for o, i in self.outer.items() if i < n_types}
        objects = self.trace.objects
        for key, (_, made) in list(objects.items()):
            if made._builder is self and made._id >= n_types:
                del objects[key]
        if self.parent is None:
            self.trace.forget_inputs(n_types)
        self.params = [p for p in self.params if p < n_types]

    # ---- sub-graphs ---------------------------------------------------------------------------

    def closed(self, outputs: Sequence[Any], outer: Sequence[int]) -> Graph:
        """The graph with its own parameters, then one for each of `outer`, in that order.

        Args:
            outputs: values of this graph.
            outer: ids of the graph around; those that this one does not use become unused
                parameters.
        """
        params = list(self.params)
        for i in outer:
            found = self.outer.get(i)
            if found is None:
                assert self.parent is not None
                found = self._value(self.parent.types[i])._id
            params.append(found)
        return self._numbered(params, [v._id for v in outputs])

    def whole(self, outputs: Sequence[Any]) -> Graph:
        """The function's own graph: all its parameters in the order in which they were made."""
        return self._numbered(self.params, [v._id for v in outputs])

    def _numbered(self, params: Sequence[int], outputs: Sequence[int]) -> Graph:
        number: dict[int, int] = {}
        types: list[ValueType] = []

        def define(i: int) -> int:
            number[i] = len(types)
            types.append(self.types[i])
            return number[i]

        for i in params:
            define(i)
        nodes: list[GraphNode] = []
        for node in self.nodes:
            operands = tuple([None if i is None else number[i] for i in node.operands])
            results = tuple([define(i) for i in node.results])
            nodes.append(dataclasses.replace(node, operands=operands, results=results))
        return Graph(len(params), types, nodes, tuple(number[i] for i in outputs), False)
