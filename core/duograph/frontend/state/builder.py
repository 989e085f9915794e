"""The graph builder for evaluated source, with nested graphs for branches and loop bodies.

While a `StagedBuilder` is the thread's current builder, every op call on graph tensors appends a
node to its graph. A nested graph receives values of the enclosing graph as parameters. The module
must not evaluate source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...dtype import DType
from ...errors import GraphError
from ...ir.builder import GraphBuilder, GraphTensor
from ...ir.graph import Graph, GraphNode
from ...ir.values import HostValue, NeedsValue
from ...runtime_state import without_builder
from ...tensor import Tensor
from ...types import Device, ValueType
from ..types import GraphValue, Value
from .ownership import base_array

if TYPE_CHECKING:
    from .evaluation import Evaluation

__all__ = ["StagedBuilder"]


class StagedBuilder(GraphBuilder):
    """Builds the graph of a compiled function, or the sub-graph of a branch or loop body.

    Attributes:
        evaluation: the evaluation that the builder belongs to.
        parent: the builder of the enclosing graph; None for the function's own graph.
        depth: the number of enclosing graphs.
        params: value ids of the graph's own parameters, without those in `outer`.
        outer: id of a value of the enclosing graph -> id of its parameter in this graph.
    """

    staged = True

    def __init__(self, evaluation: Evaluation, parent: StagedBuilder | None) -> None:
        super().__init__()
        self.evaluation = evaluation
        self.device = evaluation.device
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.params: list[int] = []
        self.outer: dict[int, int] = {}
        self._inner: dict[tuple[int, int], int] = {}  # by builder and id, for any outer graph
        self._made: dict[int, int] = {}  # constants of eager tensors made while compiling
        self._alive: list[StagedBuilder] = []  # builders whose id is a key of `_inner`
        if parent is not None:
            self.span = parent.span

    # ---- values -------------------------------------------------------------------------------

    def parameter(self, type_: ValueType) -> Value:
        """Append a parameter to the graph and return its value.

        Parameters may be added at any time; the finished graph has them before all other values.
        """
        made = self._value(type_)
        self.params.append(made._id)
        return made

    def bring(self, value: GraphValue) -> Value:
        """Return a value of this graph or of an enclosing graph as a value of this graph.

        A value of an enclosing graph becomes a parameter of this graph and of the graphs between
        the two.

        Raises:
            GraphError: the value was computed in a branch or loop that has ended.
        """
        builder = value._builder
        if builder is self:
            return value
        key = (id(builder), value._id)
        found = self._inner.get(key)
        if found is None:
            if self.parent is None:
                raise GraphError(
                    f"got a value of type {value._type}, which was computed inside a branch or a "
                    "loop that has ended"
                )
            outer = self.parent.bring(value)
            found = self.outer.get(outer._id)
            if found is None:
                found = self.outer[outer._id] = len(self.types)
                self.types.append(outer._type)
            self._inner[key] = found
            self._alive.append(builder)  # type: ignore[arg-type]
        return self.tensor(found)

    def host(self, value: Value) -> Value:
        """Return a Python constant, or a symbolic Python value, as a symbolic value of this graph.

        A symbolic Python value is a number or object that exists only at run time. A value of an
        enclosing graph becomes a parameter of this graph; a constant becomes a node.
        """
        if isinstance(value, HostValue):
            return self.bring(value)
        return super().host(value)

    def operand(self, value: Value, like: DType | None) -> Value:
        """Convert an operand of an op call to a tensor of this graph.

        Eager tensors become inputs of the function, or constants if they were made while compiling.
        A Python number gets the dtype `like` if that dtype can hold numbers of its kind, otherwise
        its default dtype.
        """
        evaluation = self.evaluation
        if isinstance(value, GraphTensor):
            if evaluation.journal.reads is not None and value._builder is not self:
                evaluation.journal.note_read("tensor", value)
            return self.bring(value)
        if isinstance(value, Tensor):
            inputs = evaluation.inputs
            if id(value) in evaluation.owned.tensors and id(value) not in inputs.slots:
                return self.made_constant(value)
            return self.present_value(value)
        if isinstance(value, np.ndarray) and (
            ("object", id(base_array(value)), None) in evaluation.outside.written
        ):
            raise NeedsValue("got the data of a NumPy array that the function changes when it runs")
        if isinstance(value, np.ndarray) and id(value) in evaluation.inputs.large_arrays:
            return self.bring(evaluation.inputs.array(value))
        return super().operand(value, like)

    def present_value(self, tensor: Tensor) -> Value:
        """Return the value of an eager tensor at this point of the program, as a graph value."""
        slot = self.evaluation.inputs.slot(tensor)
        self.evaluation.journal.note_read("slot", slot)
        return self.bring(slot.current)

    def copy_of(self, value: Tensor) -> Value:
        """Return a new graph tensor with the value that a tensor has now.

        Later in-place writes to the tensor do not change the new one.
        """
        return self.tensor(self.operand(value, None)._id)

    def made_constant(self, value: Tensor) -> Value:
        """Return a graph constant that holds the initial value of a Tensor made while compiling.

        In-place writes are traced into the graph and do not change the Tensor itself. Its data are
        therefore those from before the first write.
        """
        found = self._made.get(id(value))
        if found is None:
            with without_builder():
                data = value.asnumpy()
            found = self._made[id(value)] = self.constant(data)._id
        return self.tensor(found)

    # ---- state: called by Tensor and Parameter ------------------------------------------------

    def rebind(self, target: GraphTensor, value: GraphTensor) -> None:
        """Trace an in-place write to a graph tensor, which has the value `value` from now on.

        The undo log saves the earlier value, so that a branch can undo the write.
        """
        evaluation = self.evaluation
        evaluation.before_write(target)
        evaluation.journal.touch("tensor", target)
        super().rebind(target, value)
        evaluation.after_write(target)

    def write_state(self, target: Tensor, value: Tensor) -> None:
        """Trace an in-place write to a graph tensor, or to an eager tensor from outside."""
        found = self.operand(value, None)
        if isinstance(target, GraphTensor):
            self.rebind(target, found)
        else:
            self.evaluation.write_slot(target, found)

    def after_write(self, target: Tensor) -> Tensor:
        """Return the result of an in-place method that wrote to `target`.

        It is `target` itself, unless `target` is an argument that is a Parameter. Then it is a new
        graph tensor with the written value, because a method of a Parameter returns a new Tensor.
        """
        if id(target) not in self.evaluation.inputs.parameters:
            return target
        assert isinstance(target, GraphTensor)
        written: Tensor = self.tensor(self.bring(target)._id)
        return written

    def check_hash(self, tensor: GraphTensor) -> None:
        """Raise if a graph tensor to be hashed may be a Tensor from outside the function."""
        self.evaluation.check_hash(tensor)

    def look_at(self, value: Tensor) -> None:
        """Make an eager tensor's data a constant of the program: compile-time code reads them."""
        self.evaluation.require_data(value)

    def made(self, value: Tensor) -> None:
        """Record that an eager tensor was made while compiling, so that it becomes a constant."""
        owned = self.evaluation.owned
        owned.tensors[id(value)] = value
        owned.depths[id(value)] = self.depth

    def check_device(self, device: Device) -> None:
        """Raise StrictDeviceError if `device` is not the device on which the program will run.

        It is called when traced code moves a tensor to `device`.
        """
        self.evaluation.check_device(device, "a move of a Tensor to")

    # ---- undoing ------------------------------------------------------------------------------

    def rewind(self, n_nodes: int, n_types: int) -> None:
        """Undo additions: remove all but the first `n_nodes` nodes and the first `n_types` values.

        The inputs, constants and cache entries that refer to removed values are also removed.
        """
        del self.nodes[n_nodes:]
        del self.types[n_types:]
        self._constants = {k: i for k, i in self._constants.items() if i < n_types}
        self._made = {k: i for k, i in self._made.items() if i < n_types}
        self._inner = {k: i for k, i in self._inner.items() if i < n_types}
        self.outer = {o: i for o, i in self.outer.items() if i < n_types}
        objects = self.evaluation.host_objects
        for key, (_, made) in list(objects.items()):
            if made._builder is self and made._id >= n_types:
                del objects[key]
        if self.parent is None:
            self.evaluation.inputs.forget(n_types)
        self.params = [p for p in self.params if p < n_types]

    # ---- finished graphs ------------------------------------------------------------------------

    def closed(self, outputs: Sequence[GraphValue], outer: Sequence[int]) -> Graph:
        """Return the finished sub-graph, in which nodes use only its parameters and each other.

        Its parameters are those added by `parameter`, then one for each id in `outer`.

        Args:
            outputs: values of this graph.
            outer: ids of values of the enclosing graph; an id that this graph does not use becomes
                an unused parameter.
        """
        params = list(self.params)
        for i in outer:
            found = self.outer.get(i)
            if found is None:
                assert self.parent is not None
                found = len(self.types)
                self.types.append(self.parent.types[i])
            params.append(found)
        return self.renumbered(params, [v._id for v in outputs])

    def whole(self, outputs: Sequence[GraphValue]) -> Graph:
        """Return the finished root graph of a function, with parameters in order of creation."""
        return self.renumbered(self.params, [v._id for v in outputs])

    def renumbered(self, params: Sequence[int], outputs: Sequence[int]) -> Graph:
        """Return a Graph of the builder's nodes with new value numbers, parameters first.

        Args:
            params, outputs: ids of the parameters and outputs in this builder.
        """
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
            nodes.append(
                GraphNode(node.op, operands, node.attributes, results, node.single, node.span)
            )
        return Graph(len(params), types, nodes, tuple(number[i] for i in outputs), False)
