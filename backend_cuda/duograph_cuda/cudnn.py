"""Computes convolution and attention with NVIDIA's library cuDNN, if it is installed.

`cudnn_operations` describes a call as an `Operation`: a method of cuDNN's graph, its operands and
results with their strides, and settings. `Cuda.prepare` passes an `Operation` to `Library.call`,
which returns a prepared call. If cuDNN fails, our own kernels must compute the result.

DUOGRAPH_CUDA_CUDNN    `0` disables the library
"""

from __future__ import annotations

import atexit
import dataclasses
import gc
import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from duograph.backend.protocol import Call
from duograph.dtype import DType, bfloat16, float16, float32

if TYPE_CHECKING:
    from .device import CudaDevice, Memory

__all__ = ["Buffer", "Library", "Operation", "find"]

TYPES = {float32: "FLOAT", float16: "HALF", bfloat16: "BFLOAT16"}
# Temporary memory of a call, at most; allocated from the pool for the time of the call.
WORKSPACE = 1 << 30
# Plans among which the fastest is looked for, at most.
MOST_PLANS = 12
# cuDNN 9: attention with a deterministic gradient.
OLDEST = 90000


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A tensor that a cuDNN call reads or writes.

    Attributes:
        place: number of the buffer handle, counted over the op's operands and then its results.
        dtype: dtype of the elements.
        shape: lengths of the axes, in cuDNN's order.
        steps: strides along the axes, in elements.
        first: offset of the tensor in the buffer, in elements.
    """

    place: int
    dtype: DType
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    first: int = 0


@dataclasses.dataclass(frozen=True)
class Operation:
    """A call of one method of a cuDNN graph; equal operations use the same built graph.

    Attributes:
        method: name of the method.
        operands: names and values of its tensor arguments.
        results: the tensors that it returns.
        settings: names and values of its other arguments; "a.b" is member b of cuDNN's enum a.
        forbidden: cuDNN's numerical notes (such as "TENSOR_CORE") that disqualify an algorithm.
    """

    method: str
    operands: tuple[tuple[str, Buffer], ...]
    results: tuple[Buffer, ...]
    settings: tuple[tuple[str, object], ...]
    forbidden: tuple[str, ...] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All tensors of the call; a tensor's number in cuDNN's graph is its position plus 1."""
        return (*[buffer for _, buffer in self.operands], *self.results)


def find(stream: int) -> Library | str:
    """Open cuDNN for the current CUDA context and a stream.

    Returns the library, or a text with the reason why it is not used.
    """
    if os.environ.get("DUOGRAPH_CUDA_CUDNN", "1") == "0":
        return "DUOGRAPH_CUDA_CUDNN=0"
    try:
        _load_runtime()
        library = Library(importlib.import_module("cudnn"), stream)
        atexit.register(library.close)
        return library
    except ImportError as error:
        return (
            f"it is not installed ({_line(error)}); "
            "pip install nvidia-cudnn-frontend nvidia-cudnn-cu13"
        )
    except (AttributeError, OSError, RuntimeError) as error:
        return _line(error)


def _load_runtime() -> None:
    """Load the CUDA runtime library into the process, where the package `cudnn` expects it."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    load_nvidia_dynamic_lib("cudart")


def _line(error: Exception) -> str:
    """Return the first line of an exception's message."""
    return (str(error) or type(error).__name__).splitlines()[0]


class _Plan:
    """A cuDNN graph with one execution plan built; `Library.close` sets `graph` to None."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph


class Library:
    """cuDNN, loaded and initialised for one CUDA context and stream.

    Args:
        module: the Python package `cudnn`.
        stream: address of the CUDA stream on which all calls run.

    Raises:
        AttributeError, RuntimeError: cuDNN does not start, or is too old.
    """

    def __init__(self, module: Any, stream: int) -> None:
        self.module = module
        if module.backend_version() < OLDEST:
            raise RuntimeError(
                f"cuDNN is version {module.backend_version()}; wanted {OLDEST} or later"
            )
        self.version = str(module.backend_version_string())
        self.handle = module.create_handle()
        module.set_stream(self.handle, stream)
        self.failures = (RuntimeError, module.cudnnGraphNotSupportedError)
        self.refusals = (*self.failures, ValueError)
        self._plans: dict[tuple[Operation, str | None], _Plan | None] = {}

    def close(self) -> None:
        """Free all graphs and the library's handle.

        Without this call, cuDNN prints errors about objects that remain at exit.
        """
        for plan in self._plans.values():
            if plan is not None:
                plan.graph = None
        self._plans.clear()
        self.handle = None
        gc.collect()  # a graph and its tensors refer to each other

    def call(
        self,
        device: CudaDevice,
        name: str,
        operation: Operation,
        sizes: tuple[int, ...],
        own: Callable[[], Call | None],
        plan: str | None = None,
    ) -> Call | None:
        """Return the prepared call of an operation, or None if cuDNN has no algorithm for it.

        Args:
            device: the device that runs the call.
            name: the op's name, for messages.
            operation: description of what is computed.
            sizes: size in bytes of each result of the op.
            own: function that returns the prepared call of our own kernels, which takes over if
                cuDNN fails.
            plan: name of the algorithm; None means the one that cuDNN selects.
        """
        built = self._built(device, operation, plan)
        if built is None:
            return None
        return self._prepared(device, name, operation, sizes, own, built)

    def plans(
        self,
        device: CudaDevice,
        name: str,
        operation: Operation,
        sizes: tuple[int, ...],
        own: Callable[[], Call | None],
    ) -> Iterator[tuple[str, Call]]:
        """Yield (name, prepared call) of cuDNN's algorithms for an operation, cuDNN's choice first.

        At most MOST_PLANS are yielded. All calls use the same cuDNN graph, so a call becomes
        invalid when the next one is requested. The parameters are those of `call`.
        """
        found: set[str] = set()
        with device.inside:  # no other thread may capture meanwhile
            try:
                graph = self._described(operation)
            except self.refusals:
                return
            for index in range(graph.get_execution_plan_count()):
                plan = graph.get_plan_name_at_index(index)
                if plan not in found and self._builds(graph, index):
                    found.add(plan)
                    built = _Plan(graph)
                    yield plan, self._prepared(device, name, operation, sizes, own, built)
                if len(found) == MOST_PLANS:
                    return

    def _prepared(
        self,
        device: CudaDevice,
        name: str,
        operation: Operation,
        sizes: tuple[int, ...],
        own: Callable[[], Call | None],
        built: _Plan,
    ) -> Call:
        """Return the prepared call that runs the plan `built`.

        The other parameters are those of `call`.
        """
        workspace = int(built.graph.get_workspace_size())
        places = [
            (k + 1, b.place, b.first * b.dtype.itemsize) for k, b in enumerate(operation.buffers)
        ]
        single = len(sizes) == 1
        instead: list[Call | None] = []

        def run(*operands: Memory) -> Memory | tuple[Memory, ...]:
            if not instead:
                made = [device.allocate(nbytes, name) for nbytes in sizes]
                room = device.allocate(workspace, name)
                handles: list[Memory] = [*operands, *made]
                with device.on_main, device.inside:
                    pointers = {k: handles[place].pointer + first for k, place, first in places}
                    try:
                        built.graph.execute(pointers, room.pointer, handle=self.handle)
                        device.counts["launches"] += 1
                        return made[0] if single else tuple(made)
                    except self.failures as error:
                        failure = error
                instead.append(self._replacement(name, failure, own))
            found = instead[0]
            assert found is not None
            return found(*operands)

        return run

    def _replacement(
        self, name: str, error: Exception, own: Callable[[], Call | None]
    ) -> Call | None:
        """Warn that a cuDNN call failed; return the prepared call of our own kernels, never None.

        `own` returns that call. If it returns None, `error` is raised instead.
        """
        found = own()
        if found is None:
            raise error
        warnings.warn(
            f"{name}: cuDNN failed ({_line(error)}); our own kernels compute it from now on",
            RuntimeWarning,
            stacklevel=4,
        )
        return found

    def _built(self, device: CudaDevice, operation: Operation, plan: str | None) -> _Plan | None:
        """Return a cuDNN graph of an operation with one plan built, from the cache if possible.

        `plan` is the plan's name; None means the first plan that cuDNN can build. Returns None if
        cuDNN cannot compute the operation.
        """
        key = operation, plan
        with device.inside:
            if key not in self._plans:
                self._plans[key] = None
                try:
                    graph = self._described(operation)
                except self.refusals:
                    return None
                for index in range(graph.get_execution_plan_count()):
                    named = plan is None or graph.get_plan_name_at_index(index) == plan
                    if named and self._builds(graph, index):
                        self._plans[key] = _Plan(graph)
                        break
            return self._plans[key]

    def _builds(self, graph: Any, index: int) -> bool:
        """Build and select plan number `index` of a graph; return whether that was possible."""
        try:
            graph.build_plan_at_index(index)
        except self.refusals:
            return False
        return True

    def _described(self, operation: Operation) -> Any:
        """Return the cuDNN graph of an operation, with its possible plans but none built."""
        module = self.module
        types = module.data_type
        graph = module.pygraph(
            io_data_type=getattr(types, TYPES[operation.buffers[0].dtype]),
            intermediate_data_type=types.FLOAT,
            compute_data_type=types.FLOAT,
            handle=self.handle,
        )
        arguments: dict[str, object] = {}
        for number, (name, b) in enumerate(operation.operands, 1):
            dtype = getattr(types, TYPES[b.dtype])
            arguments[name] = graph.tensor(
                name=name, dim=list(b.shape), stride=list(b.steps), data_type=dtype, uid=number
            )
        for name, value in operation.settings:
            if isinstance(value, str):
                kind, member = value.split(".")
                value = getattr(getattr(module, kind), member)
            arguments[name] = list(value) if isinstance(value, tuple) else value
        made = getattr(graph, operation.method)(**arguments)
        made = [made] if len(operation.results) == 1 else made
        for number, (b, tensor) in enumerate(
            zip(operation.results, made, strict=True), len(operation.operands) + 1
        ):
            tensor.set_output(True).set_data_type(getattr(types, TYPES[b.dtype])).set_uid(number)
            tensor.set_dim(list(b.shape)).set_stride(list(b.steps))
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([module.heur_mode.A, module.heur_mode.FALLBACK])
        graph.deselect_numeric_notes(
            [getattr(module.numerical_note, note) for note in operation.forbidden]
        )
        graph.deselect_workspace_greater_than(WORKSPACE)
        graph.check_support()
        return graph
