"""The graph builder: while it is current, op calls append typed nodes to a graph.

The front end evaluates source code with it; `trace` uses it to record the bodies of composite ops
and gradient rules. A builder must not run a kernel, and its symbolic values have no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ..advice import operand_error
from ..backend import registry
from ..dims import text_of
from ..dtype import DType, promote_scalar, scalar_dtype, wrapped
from ..errors import ArgumentError
from ..op import Op
from ..runtime_state import runtime_state, thread_state
from ..tensor import Tensor
from ..types import Device, HostType, TensorType, ValueType
from .basic_ops import cast_to, constant, fill
from .control import HostConstant, host_constant, to_tensor
from .graph import Attributes, FrozenArray, Graph, GraphNode, SourceSpan
from .values import EXAMPLES, GraphObject, GraphScalar, HostValue, NeedsValue

__all__ = ["GraphBuilder", "GraphTensor", "GraphValue", "current_builder", "expand", "trace"]


class GraphTensor(Tensor):
    """A symbolic tensor of a graph under construction: a Tensor with a type and no data."""

    __slots__ = ("_builder", "_id")

    _builder: GraphBuilder
    _id: int

    def asnumpy(self) -> NoReturn:
        raise NeedsValue(
            "asnumpy: got a value of a graph that is being built; it has a shape and a dtype "
            "but no data. A gradient rule or a composite op may not look at values"
        )

    numpy = _values = _shared = asnumpy

    @property
    def device(self) -> str:
        """The device that the graph will run on; if that is not known, the current device."""
        found = self._builder.device
        return repr(registry.current_device() if found is None else found)

    def _rebind(self, other: Tensor) -> None:
        """Make this symbolic tensor stand for graph value `other`, as an in-place write does."""
        builder = thread_state.builder or self._builder
        assert isinstance(builder, GraphBuilder)
        value = builder.operand(other, None)
        assert value is not None
        builder.rebind(self, value)

    def _after_write(self) -> Tensor:
        builder = thread_state.builder or self._builder
        assert isinstance(builder, GraphBuilder)
        return builder.after_write(self)

    def __repr__(self) -> str:
        if getattr(thread_state.builder, "staged", False):
            raise NeedsValue("str: got a Tensor whose text is known only when the function runs")
        return f"GraphTensor(%{self._id}: {self._type})"

    __str__ = __repr__

    def __hash__(self) -> int:
        self._builder.check_hash(self)
        return id(self)

    def __reduce__(self) -> NoReturn:
        raise ArgumentError("pickle: a value of a graph that is being built cannot be pickled")


class GraphBuilder:
    """Builds a graph: while it is current, the op calls of its thread append typed nodes.

    Attributes:
        staged: whether the front end evaluates a user's Python source with this builder. If so,
            eager tensors become inputs of the graph instead of constants.
        span: the source location that new nodes get.
        device: the device that will run the graph, or None if that is not known.
        types: the type of every value so far, by id.
        nodes: the nodes so far.
        n_params: the number of parameters.
    """

    staged = False
    device: Device | None = None

    def __init__(self) -> None:
        self.types: list[ValueType] = []
        self.nodes: list[GraphNode] = []
        self.n_params = 0
        # (text of a number, dtype) -> value id of a fill
        self._constants: dict[tuple[str, DType], int] = {}
        self.span: SourceSpan | None = None

    # ---- values -------------------------------------------------------------------------------

    def parameter(self, type_: ValueType) -> Any:
        """Add a parameter to the graph, before any node is appended; return its symbolic value."""
        assert not self.nodes
        self.n_params += 1
        return self._value(type_)

    def _value(self, type_: ValueType) -> Any:
        self.types.append(type_)
        return self.tensor(len(self.types) - 1)

    def tensor(self, id_: int) -> Any:
        """Return the symbolic tensor or Python value that stands for a value id of the graph."""
        type_ = self.types[id_]
        if isinstance(type_, HostType):
            return (GraphScalar if type_ in EXAMPLES else GraphObject)(self, id_, type_)
        made = object.__new__(GraphTensor)
        made._type = type_
        made._builder = self
        made._id = id_
        made._buf = None
        return made

    def constant(self, value: object, dtype: DType | None = None) -> GraphTensor:
        """Append a node for a number, an array or an eager tensor; return the symbolic constant.

        A number becomes a 0-d tensor of `dtype`, or by default of the number's own dtype. Equal
        numbers of the same dtype have a single node.
        """
        if isinstance(value, (bool, int, float, complex, np.generic)):
            number = value.item() if isinstance(value, np.generic) else value
            target = dtype or scalar_dtype(number)
            key = (text_of(number), target)
            found = self._constants.get(key)
            if found is None:
                made = self.append(fill, (), {"shape": (), "value": number, "dtype": target})
                found = self._constants[key] = made._id
            return self.tensor(found)
        array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
        return self.append(constant, (), {"value": FrozenArray(array)})

    def rebind(self, target: GraphTensor, value: GraphTensor) -> None:
        """Make the symbolic tensor `target` refer to another value of the graph."""
        target._type = value._type
        target._id = value._id
        target._builder = value._builder

    def after_write(self, target: Tensor) -> Tensor:
        """Return the result of an in-place method that wrote to `target`, which is `target` itself.

        The front end's builder overrides this method.
        """
        return target

    def check_hash(self, tensor: GraphTensor) -> None:
        """Check whether code may hash a symbolic tensor, for example to use it as a dict key.

        This class always allows it; the front end's builder overrides this method and may raise an
        error.
        """

    def host(self, value: object) -> Any:
        """Return a symbolic Python value unchanged; append a constant node for a Python object.

        A symbolic Python value is a number or object that is known only when the graph runs.
        """
        if isinstance(value, HostValue):
            if value._builder is not self:
                raise ArgumentError(
                    f"graph: got {value!r} of another graph; a value may not leave its graph"
                )
            return value
        return self.append(host_constant, (), {"value": HostConstant(value)})

    def operand(self, value: object, like: DType | None) -> GraphTensor | None:
        """Convert an operand of an op call (tensor, number, array) to a symbolic tensor.

        A Python number gets the dtype `like` if that dtype can hold numbers of its kind, otherwise
        its default dtype. None, an absent operand, is returned as None.
        """
        if value is None:
            return None
        if isinstance(value, GraphTensor):
            if value._builder is not self:
                raise ArgumentError(
                    f"graph: got {value!r} of another graph; a value may not leave its graph"
                )
            return value
        if isinstance(value, GraphScalar):
            example = EXAMPLES[value._type]
            dtype = scalar_dtype(example) if like is None else promote_scalar(like, example)
            return self.append(to_tensor, (self.host(value),), {"dtype": dtype})
        if isinstance(value, (bool, int, float, complex, np.generic)):
            dtype = scalar_dtype(value) if like is None else promote_scalar(like, value)
            return self.constant(wrapped(value, dtype), dtype)
        if isinstance(value, GraphObject):
            raise NeedsValue(
                "got an object that only Python can compute, "
                "where a Tensor is needed while compiling"
            )
        if isinstance(value, (list, tuple)):
            value = Tensor(value)
        elif not isinstance(value, (Tensor, np.ndarray)):
            raise operand_error("", value)
        return self.constant(value)

    def value(self, value: object) -> Any:
        """Return a result of a traced function as a graph value.

        Numbers and arrays become constants.
        """
        return self.host(value) if isinstance(value, HostValue) else self.operand(value, None)

    # ---- nodes --------------------------------------------------------------------------------

    def apply(self, op: Op, operands: tuple[Any, ...], attributes: dict[str, object]) -> Any:
        """Append an op call, with the casts that type promotion requires.

        Returns the symbolic result, or a tuple of results for an op with several.
        """
        first = op.promote_from  # earlier operands, such as a condition, give numbers no dtype
        like = next((x._type.dtype for x in operands[first:] if isinstance(x, Tensor)), None)
        try:
            values = [
                x
                if isinstance(x, GraphTensor) and x._builder is self
                else self.operand(x, like if i >= first else None)
                for i, x in enumerate(operands)
            ]
        except NeedsValue:
            raise
        except ArgumentError as error:
            raise ArgumentError(f"{op.name}: {error}") from None
        if not op.has_optional and any([v is None for v in values]):
            raise operand_error(op.name, None)
        target = None
        if op.promote is not None:
            target = op.promoted_dtype([None if v is None else v._type for v in values])
        if target is not None:
            # append the cast of the last operand first: the backward sweep visits nodes in reverse,
            # and so adds the cotangents in the order of the operands
            for i in reversed(range(op.promote_from, len(values))):
                v = values[i]
                if v is not None and v._type.dtype is not target:
                    values[i] = self.append(cast_to, (v,), {"dtype": target})
        return self.append(op, tuple(values), attributes)

    def append(self, op: Op, values: tuple[GraphValue | None, ...], attributes: Attributes) -> Any:
        """Append a node that calls an op; return its symbolic result.

        No casts are added: the operands `values` must already have the promoted dtype. The result
        is a tuple for an op with several results.
        """
        # ops that only graphs have also take host types
        types: tuple[Any, ...] = tuple([None if v is None else v._type for v in values])
        operands = tuple([None if v is None else v._id for v in values])
        if op.dtypes is not None or not op.storage:
            op.check_dtypes(types)
        found = op.result_types(types, attributes)
        single = not isinstance(found, tuple)
        kinds = found if isinstance(found, tuple) else (found,)
        if not op.storage:
            for t in kinds:
                if isinstance(t, TensorType) and t.dtype.kind == "s" and not op.takes(t.dtype):
                    raise op.no_storage(t.dtype)
        first = len(self.types)
        self.types.extend(kinds)
        ids = tuple(range(first, first + len(kinds)))
        self.nodes.append(GraphNode(op, operands, dict(attributes), ids, single, self.span))
        return self.tensor(first) if single else tuple([self.tensor(i) for i in ids])

    def inline(self, graph: Graph, values: Sequence[GraphValue]) -> list[GraphValue]:
        """Append copies of the nodes of another graph, with `values` for its parameters.

        Returns the symbolic outputs.
        """
        number: dict[int | None, int] = dict(enumerate(v._id for v in values))
        types = self.types
        for node in graph.nodes:
            results = []
            for i in node.results:
                number[i] = len(types)
                results.append(len(types))
                types.append(graph.types[i])
            operands = tuple([None if i is None else number[i] for i in node.operands])
            self.nodes.append(
                GraphNode(
                    node.op,
                    operands,
                    node.attributes,
                    tuple(results),
                    node.single,
                    node.span or self.span,
                )
            )
        return [self.tensor(number[i]) for i in graph.outputs]

    def finish(self, result: object) -> Graph:
        """Return the finished graph; `result` is its output, or a tuple or list of outputs."""
        single = not isinstance(result, (tuple, list))
        outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        ids = tuple(self.value(x)._id for x in outputs)
        return Graph(self.n_params, self.types, self.nodes, ids, single)

    @contextmanager
    def current(self) -> Iterator[GraphBuilder]:
        """Return a context manager that makes this builder record the op calls of this thread."""
        before = thread_state.builder
        thread_state.builder = self
        try:
            yield self
        finally:
            thread_state.builder = before


GraphValue: TypeAlias = GraphTensor | GraphScalar | GraphObject


def current_builder() -> GraphBuilder:
    """Return the builder of the graph that this thread is building; there must be one."""
    builder = thread_state.builder
    assert isinstance(builder, GraphBuilder)
    return builder


def trace(
    function: Callable[..., object],
    types: Sequence[TensorType | None],
    variadic: bool = False,
    attributes: Attributes | None = None,
) -> Graph:
    """Run a Python function on symbolic tensors and return the graph of its op calls.

    Args:
        function: the function; it may only call ops. No kernel runs.
        types: a type for each parameter of the graph; for None, the function receives None.
        variadic: whether the function receives the tensors as one tuple instead of as separate
            arguments.
        attributes: keyword arguments of the function.
    """
    builder = GraphBuilder()
    values = [None if t is None else builder.parameter(t.plain) for t in types]
    with builder.current():
        arguments = (tuple(values),) if variadic else tuple(values)
        return builder.finish(function(*arguments, **(attributes or {})))


def expand(
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Attributes,
    rule: Callable[..., object] | None = None,
) -> Graph:
    """Return the graph of a composite op's body, or of a primitive's decomposition rule.

    The graph is cached on the op by operand types and attributes. If `rule` is given, this
    decomposition function is traced in place of the op's own.
    """
    key = (types, op.key(types, attributes), rule)
    found = op.expanded.get(key)
    if found is None:
        body = rule or op.body or op.decompose_rule
        assert body is not None, op
        if len(op.expanded) > 4096:
            op.expanded.clear()
        found = op.expanded[key] = trace(body, types, op.variadic, attributes)
    return found


runtime_state.expand_body = expand
