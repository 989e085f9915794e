"""How the executor runs what no backend sees: control flow, calls, residual stacks, host values and
host calls.

A host value is a Python object in its slot. A sub-graph is lowered like any graph; a switch or a
loop is one step that calls it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._locks import new_lock
from ..backend.protocol import Backend
from ..dtype import DType, float32, float64
from ..errors import ArgumentValueError, GraphError, RecursionDepthError
from ..ir.control import SCALAR_FUNCTIONS
from ..ir.graph import Graph
from ..runtime_state import thread_state
from ..tensor import Tensor, commit
from ..types import BOOL, FLOAT, INT, Device, HostType, TensorType
from .source_spans import mark_source

__all__ = ["CALL_DEPTH", "control_call", "may_raise", "with_source_span"]

Lower = Callable[[Any, Device], Callable[..., Any]]
Make = Callable[[Backend, tuple[Any, ...], Mapping[str, Any], Device, Lower], Callable[..., Any]]

# Calls of named graphs inside each other.
CALL_DEPTH = 1000
# Python frames that one of them may take: two for the call, two for each switch or loop around the
# next one.
FRAMES = 16
# Python's limit before the first call, then an item for each call that runs; see _outermost.
_limits: list[int] = []
_lock = new_lock()
_PYTHON: dict[HostType, Callable[[Any], Any]] = {INT: int, FLOAT: float, BOOL: bool}
# Functions of numbers that not every number has.
_PARTIAL = {"truediv", "floordiv", "mod", "pow", "lshift", "rshift", "int", "float", "round"}
_TABLE: dict[str, Make] = {}


def control_call(
    backend: Backend,
    name: str,
    types: tuple[Any, ...],
    attributes: Mapping[str, Any],
    device: Device,
    lower: Lower,
) -> Callable[..., Any] | None:
    """The call for an op of `ir.control`, None for any other op."""
    make = _TABLE.get(name)
    return None if make is None else make(backend, types, attributes, device, lower)


def may_raise(name: str, attributes: Mapping[str, Any]) -> bool:
    """Whether what the op computes on the host may raise an error of Python, such as
    ZeroDivisionError.
    """
    return name in ("to_host", "to_tensor") or attributes.get("function") in _PARTIAL


def with_source_span(call: Callable[..., Any], span: Any) -> Callable[..., Any]:
    """Return a call whose errors carry the source span of the node that raised them."""

    def run(*values: Any) -> Any:
        try:
            return call(*values)
        except Exception as error:
            mark_source(error, (span,))
            raise

    return run


def _runs(name: str) -> Callable[[Make], Make]:
    def enter(make: Make) -> Make:
        _TABLE[name] = make
        return make

    return enter


def _number(backend: Backend, type_: Any, device: Device) -> Callable[[Any], int]:
    """How to read an index or a predicate."""
    if isinstance(type_, HostType):
        return int
    index, np_dtype = device.index, type_.dtype.np
    copy_out = backend.copy_out

    def read(handle: Any) -> int:
        return int(copy_out(handle, (), np_dtype, index)[()])

    return read


def _closed(lower: Lower, graph: Graph, device: Device) -> Callable[..., Any]:
    """A sub-graph lowered so that it returns a tuple, as the ops that run it do."""
    return lower(dataclasses.replace(graph, single=False) if graph.single else graph, device)


@_runs("switch")
def _switch(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    read = _number(backend, types[0], device)
    branches = [_closed(lower, g, device) for g in attributes["branches"]]
    last = len(branches) - 1
    if last == 1:
        other, then = branches

        def choose(index: Any, *xs: Any) -> Any:
            return then(*xs) if read(index) else other(*xs)

        return choose

    def run(index: Any, *xs: Any) -> Any:
        return branches[min(max(read(index), 0), last)](*xs)

    return run


@_runs("while_loop")
def _while(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    read = _number(backend, types[0], device)
    body = _closed(lower, attributes["body"], device)
    n = attributes["n_carry"]

    def run(predicate: Any, *xs: Any) -> Any:
        carries, rest = xs[:n], xs[n:]
        while read(predicate):
            found = body(*carries, *rest)
            predicate, carries = found[0], found[1:]
        return carries

    return run


@_runs("call")
def _call(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    target = attributes["target"]
    key = (device.name, device.index)

    def run(*xs: Any) -> Any:
        program = target.lowered.get(key)
        if program is None:  # at the first call: the graph may call itself
            program = target.lowered[key] = _closed(lower, target.graph, device)
        depth = thread_state.call_depth
        if depth == 0:
            return _outermost(target.name, program, xs)
        if depth >= CALL_DEPTH:
            raise _too_deep(target.name)
        thread_state.call_depth = depth + 1
        try:
            return program(*xs)
        finally:
            thread_state.call_depth = depth

    return run


def _too_deep(name: str) -> RecursionDepthError:
    return RecursionDepthError(
        f"Exceed function call depth limit {CALL_DEPTH}: {name} calls itself too deep; wanted a loop, "
        f"or a condition that ends the recursion"
    )


def _outermost(name: str, program: Callable[..., Any], xs: Any) -> Any:
    """A call that is in no other: Python's own limit is raised meanwhile, since one call takes
    several frames.
    """
    with _lock:
        if not _limits:
            _limits.append(sys.getrecursionlimit())
            sys.setrecursionlimit(_limits[0] + FRAMES * CALL_DEPTH)
        _limits.append(0)
    thread_state.call_depth = 1
    try:
        return program(*xs)
    except RecursionError as error:
        if isinstance(error, RecursionDepthError):
            raise
        raise _too_deep(name) from None
    finally:
        thread_state.call_depth = 0
        with _lock:
            _limits.pop()
            if len(_limits) == 1:  # no thread is in a call any more
                sys.setrecursionlimit(_limits.pop())


@_runs("custom_call")
def _custom(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    return _closed(lower, attributes["graph"], device)


# ---- stacks: linked lists (below, values), the empty one is None --------------------------------


@_runs("stack_new")
def _stack_new(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    return lambda: None


@_runs("stack_push")
def _stack_push(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    return lambda stack, *values: (stack, values)


@_runs("stack_pop")
def _stack_pop(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    def run(stack: Any) -> Any:
        below, values = stack
        return below, below is not None, *values

    return run


@_runs("stack_holds")
def _stack_holds(
    backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower
) -> Any:
    return lambda stack: stack is not None


# ---- host values --------------------------------------------------------------------------------


@_runs("scalar")
def _scalar(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    if attributes["function"] == "pow" and FLOAT not in types:
        return _integer_power
    return SCALAR_FUNCTIONS[attributes["function"]]


def _integer_power(x: int, y: int) -> int:
    """The type was fixed while compiling: a float would be another program."""
    if y < 0:
        raise ArgumentValueError(
            f"{x} ** {y}: got a negative exponent for a host int, which makes a float of it in Python; "
            f"wanted float(x) ** y"
        )
    return x**y


@_runs("host_constant")
def _host_constant(
    backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower
) -> Any:
    value = attributes["value"].value
    return lambda: value


@_runs("to_host")
def _to_host(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    (type_,) = types
    python = _PYTHON[attributes["kind"]]
    shape, np_dtype, index = type_.shape, type_.dtype.np, device.index

    def run(handle: Any) -> Any:
        return python(backend.copy_out(handle, shape, np_dtype, index).reshape(())[()])

    return run


@_runs("to_tensor")
def _to_tensor(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    dtype = attributes["dtype"]
    bits = (1 << (8 * dtype.itemsize)) - 1
    np_dtype, index, copy_in = dtype.np, device.index, backend.copy_in
    # what NumPy takes as it is; an int for a float dtype is rounded once from int64, as in an op
    kind = int if dtype.is_integer else float
    low, high = _plain_range(dtype)

    def run(value: Any) -> Any:
        if value.__class__ is kind and low <= value <= high:
            array = np.array(value, np_dtype)
        elif dtype.is_integer and isinstance(value, int):  # wraps, as a Python number in an op does
            array = np.array(int(value) & bits, np.uint64).astype(np_dtype)
        else:
            with np.errstate(all="ignore"):
                array = np.array(value).astype(np_dtype)
        return copy_in(array, index)

    return run


def _plain_range(dtype: DType) -> tuple[float, float]:
    if dtype.is_integer:
        info = np.iinfo(dtype.np)
        return int(info.min), int(info.max)
    return (-3e38, 3e38) if dtype in (float32, float64) else (1.0, 0.0)


@_runs("host_call")
def _host_call(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    function = attributes["run"].function
    wanted = attributes["types"]
    given = [t.on(device) if isinstance(t, TensorType) else None for t in types]
    make = Tensor._make

    def run(*values: Any) -> Any:
        arguments = [v if t is None else make(t, v) for v, t in zip(values, given, strict=True)]
        before = thread_state.builder
        thread_state.builder = None
        try:
            found = function(*arguments)
        finally:
            thread_state.builder = before
        if not wanted:
            return ()
        return tuple(
            [_result(v, t, device, attributes["run"]) for v, t in zip(found, wanted, strict=True)]
        )

    return run


def _result(value: Any, type_: Any, device: Device, what: Any) -> Any:
    if not isinstance(type_, TensorType):
        return value
    if not isinstance(value, Tensor):
        raise GraphError(f"{what}: returned {type(value).__name__}; wanted a Tensor {type_}")
    if value._type.device is None:
        commit(value, device)
    if value._type.plain is not type_ or value._type.device is not device:
        raise GraphError(f"{what}: returned a Tensor {value._type}; wanted {type_} on {device}")
    return value._buf


@_runs("random_state")
def _random(backend: Backend, types: Any, attributes: Any, device: Device, lower: Lower) -> Any:
    take = attributes["take"].function
    return lambda: backend.copy_in(np.array(take()), device.index)
