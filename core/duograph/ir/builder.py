"""The graph builder: op calls on graph tensors append typed nodes. Rules and composite bodies are traced with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..dtype import DType, promote_scalar, scalar_dtype
from ..errors import ArgumentError
from ..op import Op, thread_state
from ..tensor import Tensor
from ..types import TensorType
from .graph import FrozenArray, Graph, GraphNode

__all__ = ["GraphTensor", "GraphBuilder", "trace", "expand"]


class GraphTensor(Tensor):
    """A value of a graph under construction: Tensor's own methods, a type, no data."""

    __slots__ = ("_builder", "_id")

    _builder: GraphBuilder
    _id: int

    def asnumpy(self) -> Any:
        raise ArgumentError(
            "asnumpy: got a value of a graph that is being built; it has a shape and a dtype "
            "but no data. A gradient rule or a composite op may not look at values"
        )

    numpy = asnumpy

    def _rebind(self, other: Tensor) -> None:
        """Stand for another value of the graph from now on: what `x[i] = v` and in-place methods do."""
        value = self._builder.operand(other, None)
        assert value is not None
        self._type = value._type
        self._id = value._id

    def __repr__(self) -> str:
        return f"GraphTensor(%{self._id}: {self._type})"

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise ArgumentError("pickle: a value of a graph that is being built cannot be pickled")


class GraphBuilder:
    """Appends nodes to a graph. While it is the thread's current builder every op call reaches it."""

    def __init__(self) -> None:
        self.types: list[TensorType] = []
        self.nodes: list[GraphNode] = []
        self.n_params = 0
        self._constants: dict[Any, int] = {}

    # ---- values -------------------------------------------------------------------------------

    def parameter(self, type_: TensorType) -> GraphTensor:
        """The next parameter of the graph; all parameters come before the first node."""
        assert not self.nodes
        self.n_params += 1
        return self._value(type_)

    def _value(self, type_: TensorType) -> GraphTensor:
        self.types.append(type_)
        return self.tensor(len(self.types) - 1)

    def tensor(self, id_: int) -> GraphTensor:
        """The graph tensor of a value id."""
        made = object.__new__(GraphTensor)
        made._type = self.types[id_]
        made._builder = self
        made._id = id_
        made._buf = None
        return made

    def constant(self, value: Any, dtype: DType | None = None) -> GraphTensor:
        """A number, array or eager tensor as a value of the graph."""
        from ..ops.creation import constant, fill  # the two ops that make constants

        if isinstance(value, (bool, int, float, complex, np.generic)):
            number = value.item() if isinstance(value, np.generic) else value
            target = dtype or scalar_dtype(number)
            key = (repr(number), target)
            found = self._constants.get(key)
            if found is None:
                made = self.append(fill, (), {"shape": (), "value": number, "dtype": target})
                found = self._constants[key] = made._id
            return self.tensor(found)
        array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
        return self.append(constant, (), {"value": FrozenArray(array)})

    def operand(self, value: Any, like: DType | None) -> GraphTensor | None:
        """Whatever was given for an operand as a value of this graph; a number takes the dtype `like`, weakly."""
        if value is None:
            return None
        if isinstance(value, GraphTensor):
            if value._builder is not self:
                raise ArgumentError(
                    f"graph: got {value!r} of another graph; a value may not leave its graph"
                )
            return value
        if isinstance(value, (bool, int, float, complex, np.generic)):
            dtype = scalar_dtype(value) if like is None else promote_scalar(like, value)
            return self.constant(value, dtype)
        if isinstance(value, (list, tuple)):
            value = Tensor(value)
        return self.constant(value)

    # ---- nodes --------------------------------------------------------------------------------

    def apply(self, op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        first = op.promote_from  # operands before it, such as a condition, lend numbers no dtype
        like = next((x._type.dtype for x in operands[first:] if isinstance(x, Tensor)), None)
        values = [self.operand(x, like if i >= first else None) for i, x in enumerate(operands)]
        target = op.promoted_dtype([None if v is None else v._type for v in values])
        if target is not None:
            from ..ops.creation import cast_to

            for i in range(op.promote_from, len(values)):
                v = values[i]
                if v is not None and v._type.dtype is not target:
                    values[i] = self.append(cast_to, (v,), {"dtype": target})
        return self.append(op, tuple(values), attributes)

    def append(
        self, op: Op, values: tuple[GraphTensor | None, ...], attributes: Mapping[str, Any]
    ) -> Any:
        """One node on operands that are promoted already."""
        types = tuple(None if v is None else v._type for v in values)
        op.check_dtypes(types)
        found = op.result_types(types, attributes)
        single = not isinstance(found, tuple)
        kinds: tuple[TensorType, ...] = (found,) if isinstance(found, TensorType) else tuple(found)
        first = len(self.types)
        self.types.extend(kinds)
        ids = tuple(range(first, first + len(kinds)))
        self.nodes.append(
            GraphNode(
                op,
                tuple(None if v is None else v._id for v in values),
                dict(attributes),
                ids,
                single,
            )
        )
        made = [self.tensor(i) for i in ids]
        return made[0] if single else tuple(made)

    def inline(self, graph: Graph, values: Sequence[GraphTensor | None]) -> list[GraphTensor]:
        """Append the nodes of another graph on these values; its outputs."""
        env: dict[int, GraphTensor | None] = dict(enumerate(values))
        for node in graph.nodes:
            out = self.append(
                node.op,
                tuple(None if i is None else env[i] for i in node.operands),
                node.attributes,
            )
            for i, v in zip(node.results, (out,) if node.single else out, strict=True):
                env[i] = v
        return [self.tensor(env[i]._id) for i in graph.outputs]  # type: ignore[union-attr]

    def finish(self, result: Any) -> Graph:
        """The graph that returns `result`, a graph tensor or a tuple of them."""
        single = not isinstance(result, (tuple, list))
        outputs = (result,) if single else tuple(result)
        ids = tuple(self.operand(x, None)._id for x in outputs)  # type: ignore[union-attr]
        return Graph(self.n_params, self.types, self.nodes, ids, single)

    @contextmanager
    def current(self) -> Any:
        """Make this the thread's builder for a while."""
        before = thread_state.builder
        thread_state.builder = self
        try:
            yield self
        finally:
            thread_state.builder = before


def trace(
    function: Callable[..., Any],
    types: Sequence[TensorType | None],
    variadic: bool = False,
    attributes: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of `function` on parameters of these types; None stays None and is no parameter."""
    builder = GraphBuilder()
    values = [None if t is None else builder.parameter(t.plain) for t in types]
    with builder.current():
        arguments = (tuple(values),) if variadic else tuple(values)
        return builder.finish(function(*arguments, **(attributes or {})))


def expand(op: Op, types: tuple[TensorType | None, ...], attributes: Mapping[str, Any]) -> Graph:
    """A composite's body (or a primitive's decomposition) as a graph; kept on the op."""
    key = (types, op.key(types, attributes))
    found = op.expanded.get(key)
    if found is None:
        body = op.body or op.decompose_rule
        assert body is not None, op
        if len(op.expanded) > 4096:
            op.expanded.clear()
        found = op.expanded[key] = trace(body, types, op.variadic, attributes)
    return found
