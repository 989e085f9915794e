"""Python functions for graph nodes that no backend runs: control flow and Python values.

`execution.lowering` calls `control_call` for every such node. A branch or a loop body is lowered
like any graph; a switch or a loop is one step of the program that contains it. The functions take
and return buffer handles and Python values, never Tensors.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .._locks import new_lock
from ..backend.checked_calls import from_device, to_device
from ..backend.prepared import HandleFunction
from ..backend.protocol import Backend
from ..context import settings
from ..dtype import DType, float32, float64
from ..errors import ArgumentValueError, GraphError, RecursionDepthError
from ..ir.control import SCALAR_FUNCTIONS, HostCall
from ..ir.graph import Graph, NamedGraph
from ..ops.split_collectives import start
from ..placement import commit
from ..ranks.buckets import Started
from ..ranks.on_device import operand, result
from ..ranks.world import world
from ..runtime_state import thread_state
from ..tensor import Tensor
from ..types import BOOL, FLOAT, INT, Device, HostType, TensorType, ValueType
from .source_spans import mark_source

if TYPE_CHECKING:
    from ..backend.prepared import Handle
    from ..host_arrays import Array
    from ..ir.graph import Attributes

__all__ = [
    "CONTROL_OPS",
    "ControlNode",
    "control_call",
    "draw_call",
    "with_source_span",
]

LowerSubgraph: TypeAlias = Callable[[Graph, Device], HandleFunction]

# The most Python frames that one call of a named graph needs: two for the call, and two for each
# switch or loop that encloses the next call.
FRAMES = 16
_PYTHON: dict[HostType, Callable[[Any], bool | int | float]] = {INT: int, FLOAT: float, BOOL: bool}


class ControlNode(NamedTuple):
    """Facts about a control-flow or Python-value node, from which its Python function is built.

    Attributes:
        backend: the device's backend.
        types: types of the operands.
        attributes: the op's attributes.
        device: the device of the graph's tensors.
        lower_subgraph: function that lowers a graph among the attributes to a function on buffer
            handles.
    """

    backend: Backend
    types: Sequence[ValueType | None]
    attributes: Attributes
    device: Device
    lower_subgraph: LowerSubgraph

    @property
    def copy_in(self) -> Callable[..., Handle]:
        """The backend's `copy_in`, with checks and reports to observers."""
        return functools.partial(to_device, self.backend)

    @property
    def copy_out(self) -> Callable[..., Array]:
        """The backend's `copy_out`, with checks and reports to observers."""
        return functools.partial(from_device, self.backend)

    def closed(self, graph: Graph) -> HandleFunction:
        """Lower a subgraph to a function of buffer handles that returns a tuple of handles.

        A single result is returned as a tuple as well.
        """
        whole = dataclasses.replace(graph, single=False) if graph.single else graph
        return self.lower_subgraph(whole, self.device)

    def int_reader(self, type_: ValueType | None) -> Callable[[Handle], int]:
        """Return a function that converts the run-time value of an operand to a Python int.

        `type_` is the type of the operand, which must be present: the value is the buffer handle of
        a 0-d tensor if it is a tensor type, or a Python number if it is a host type.
        """
        if isinstance(type_, HostType):
            return int
        assert type_ is not None
        index, np_dtype = self.device.index, type_.dtype.np
        copy_out = self.copy_out

        def read(handle: object) -> int:
            return int(copy_out(handle, (), np_dtype, index)[()])

        return read


Rule: TypeAlias = Callable[[ControlNode], HandleFunction]
_RULES: dict[str, Rule] = {}


def _rule(name: str) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        _RULES[name] = rule
        return rule

    return enter


def control_call(name: str, node: ControlNode) -> HandleFunction:
    """Return the Python function that runs one control-flow or Python-value op of a graph."""
    return _RULES[name](node)


def with_source_span(call: HandleFunction, span: object) -> HandleFunction:
    """Return a function that calls `call` and attaches the source location `span` to exceptions."""

    def run(*values: object) -> object:
        try:
            return call(*values)
        except Exception as error:
            mark_source(error, (span,))
            raise

    return run


# ---- control flow -------------------------------------------------------------------------------


@_rule("switch")
def _switch(node: ControlNode) -> HandleFunction:
    read = node.int_reader(node.types[0])
    branches = [node.closed(g) for g in node.attributes["branches"]]
    last = len(branches) - 1
    if last == 1:
        other, then = branches

        def choose(index: object, *xs: object) -> object:
            return then(*xs) if read(index) else other(*xs)

        return choose

    def run(index: object, *xs: object) -> object:
        return branches[min(max(read(index), 0), last)](*xs)

    return run


@_rule("while_loop")
def _while(node: ControlNode) -> HandleFunction:
    read = node.int_reader(node.types[0])
    body = node.closed(node.attributes["body"])
    n = node.attributes["n_carry"]

    def run(predicate: object, *xs: object) -> object:
        carries, rest = xs[:n], xs[n:]
        while read(predicate):
            found = body(*carries, *rest)
            predicate, carries = found[0], found[1:]
        return carries

    return run


@_rule("custom_call")
def _custom(node: ControlNode) -> HandleFunction:
    return node.closed(node.attributes["graph"])


@_rule("call")
def _call(node: ControlNode) -> HandleFunction:
    target: NamedGraph = node.attributes["target"]
    key = (node.device.name, node.device.index)

    def run(*xs: object) -> object:
        program = target.lowered.get(key)
        if program is None:  # at the first call: the graph may call itself
            assert target.graph is not None
            program = target.lowered[key] = node.closed(target.graph)
        depth = thread_state.call_depth
        if depth == 0:
            return _outermost(target.name, program, xs)
        if depth >= settings.max_call_depth:
            raise _too_deep(target.name)
        thread_state.call_depth = depth + 1
        try:
            return program(*xs)
        finally:
            thread_state.call_depth = depth

    return run


def _too_deep(name: str) -> RecursionDepthError:
    return RecursionDepthError(
        f"Exceed function call depth limit {settings.max_call_depth}: {name} calls itself too "
        "deep; wanted a loop, a condition that ends the recursion, or set_context(max_call_depth=)"
    )


class _RecursionLimit:
    """Context manager that raises Python's recursion limit while recursive graphs run.

    Several threads may be inside at the same time; the last one to leave restores the limit.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._before = 0
        self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(self._before + FRAMES * settings.max_call_depth)
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                sys.setrecursionlimit(self._before)


_raised_limit = _RecursionLimit()


def _outermost(name: str, program: HandleFunction, xs: Sequence[object]) -> object:
    """Run the outermost call of a recursive graph under a raised Python recursion limit.

    `xs` are the arguments, `name` the graph's name for messages.

    Raises:
        RecursionDepthError: the graph calls itself too deep.
    """
    with _raised_limit:
        thread_state.call_depth = 1
        try:
            return program(*xs)
        except RecursionError as error:
            if isinstance(error, RecursionDepthError):
                raise
            raise _too_deep(name) from None
        finally:
            thread_state.call_depth = 0


# ---- stacks: linked lists (below, values), the empty one is None --------------------------------


@_rule("stack_new")
def _stack_new(node: ControlNode) -> HandleFunction:
    return lambda: None


@_rule("stack_push")
def _stack_push(node: ControlNode) -> HandleFunction:
    return lambda stack, *values: (stack, values)


@_rule("stack_pop")
def _stack_pop(node: ControlNode) -> HandleFunction:
    def run(stack: tuple[object, tuple[object, ...]]) -> tuple[object, ...]:
        below, values = stack
        return below, below is not None, *values

    return run


@_rule("stack_holds")
def _stack_holds(node: ControlNode) -> HandleFunction:
    return lambda stack: stack is not None


# ---- host values --------------------------------------------------------------------------------


@_rule("scalar")
def _scalar(node: ControlNode) -> HandleFunction:
    if node.attributes["function"] == "pow" and FLOAT not in node.types:
        return _integer_power
    return SCALAR_FUNCTIONS[node.attributes["function"]]


def _integer_power(x: int, y: int) -> int:
    """Return ``x ** y`` of two Python ints as an int.

    Raises:
        ArgumentValueError: the exponent is negative, so that Python would return a float.
    """
    if y < 0:
        raise ArgumentValueError(
            f"{x} ** {y}: got a negative exponent for a host int, which makes a float of it in "
            "Python; "
            "wanted float(x) ** y"
        )
    power: int = x**y
    return power


@_rule("host_constant")
def _host_constant(node: ControlNode) -> HandleFunction:
    value = node.attributes["value"].value
    return lambda: value


@_rule("to_host")
def _to_host(node: ControlNode) -> HandleFunction:
    (type_,) = node.types
    assert isinstance(type_, TensorType)
    python = _PYTHON[node.attributes["kind"]]
    shape, np_dtype, index = type_.shape, type_.dtype.np, node.device.index
    copy_out = node.copy_out

    def run(handle: object) -> object:
        return python(copy_out(handle, shape, np_dtype, index).reshape(())[()])

    return run


@_rule("to_tensor")
def _to_tensor(node: ControlNode) -> HandleFunction:
    dtype: DType = node.attributes["dtype"]
    bits = (1 << (8 * dtype.itemsize)) - 1
    np_dtype, index, copy_in = dtype.np, node.device.index, node.copy_in
    # class of numbers that NumPy converts directly; for a float dtype, an int becomes int64 first,
    # so that it is rounded once, as in an op
    kind = int if dtype.is_integer else float
    low, high = _plain_range(dtype)

    def run(value: complex) -> object:
        if value.__class__ is kind and low <= value <= high:
            array = np.array(value, np_dtype)
        elif dtype.is_integer and isinstance(value, int):  # wraps, as in ops
            array = np.array(int(value) & bits, np.uint64).astype(np_dtype)
        else:
            with np.errstate(all="ignore"):
                array = np.array(value).astype(np_dtype)
        return copy_in(array, index)

    return run


def _plain_range(dtype: DType) -> tuple[float, float]:
    """Return the range (least, greatest) of Python numbers that NumPy converts to a dtype directly.

    Other numbers must be wrapped or rounded by separate code. The range is empty for dtypes other
    than integers, float32 and float64.
    """
    if dtype.is_integer:
        info = np.iinfo(dtype.np)
        return int(info.min), int(info.max)
    return (-3e38, 3e38) if dtype in (float32, float64) else (1.0, 0.0)


@_rule("host_call")
def _host_call(node: ControlNode) -> HandleFunction:
    device = node.device
    host = node.attributes["run"]
    function = host.function
    result_types: Sequence[ValueType] = node.attributes["types"]
    given = [t.on(device) if isinstance(t, TensorType) else None for t in node.types]
    make = Tensor._make

    def run(*values: object) -> tuple[object, ...]:
        arguments = [v if t is None else make(t, v) for v, t in zip(values, given, strict=True)]
        before = thread_state.builder
        thread_state.builder = None
        try:
            found = function(*arguments)
        finally:
            thread_state.builder = before
        if not result_types:
            return ()
        return tuple(
            [_host_result(v, t, device, host) for v, t in zip(found, result_types, strict=True)]
        )

    return run


def _host_result(value: object, type_: ValueType, device: Device, host: object) -> object:
    """Check what a Python function called by a graph returned; return the Tensor's buffer handle.

    If `type_`, the type declared in the graph, is not a tensor type, the value is returned
    unchanged. A Tensor that is still on the host is copied to `device` first. `host` is the Python
    function's wrapper, whose name appears in messages.

    Raises:
        GraphError: the value does not have the tensor type and device that the graph was compiled
            for.
    """
    if not isinstance(type_, TensorType):
        return value
    if not isinstance(value, Tensor):
        raise GraphError(f"{host}: returned {type(value).__name__}; wanted a Tensor {type_}")
    if value._type.device is None:
        commit(value, device)
    if value._type.plain is not type_ or value._type.device is not device:
        raise GraphError(f"{host}: returned a Tensor {value._type}; wanted {type_} on {device}")
    return value._buf


@_rule("random_state")
def _random(node: ControlNode) -> HandleFunction:
    return draw_call(node.attributes["take"], node.copy_in, node.device.index)


def draw_call(take: HostCall, copy_in: Callable[..., Handle], index: int) -> Callable[[], Handle]:
    """Return a function that advances the random generator and returns a handle of its state."""
    advance = take.function
    return lambda: copy_in(np.array(advance()), index)


# ---- collectives ---------------------------------------------------------------------------------


@_rule("start_collective")
def _start_collective(node: ControlNode) -> HandleFunction:
    name, options, group = (node.attributes[k] for k in ("collective", "options", "group"))
    types = [t for t in node.types if isinstance(t, TensorType)]
    place = node.device.name, node.device.index

    def run(*handles: object) -> object:
        found = world().group(name, group)
        arrays = [operand(found, place, h, t) for h, t in zip(handles, types, strict=True)]
        return start(name, options, group, arrays)

    return run


@_rule("finish_collective")
def _finish_collective(node: ControlNode) -> HandleFunction:
    place = node.device.name, node.device.index

    def run(started: Started) -> object:
        return tuple([result(place, array) for array in started.finish()])

    return run


# The names of the ops that run in Python.
CONTROL_OPS = frozenset(_RULES)
