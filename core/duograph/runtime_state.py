"""Mutable state of the process that op calls, the tape and compiled functions read.

`runtime_state` is the state of the process, `thread_state` that of the present thread. Every layer
reads them, and the layer that owns a field writes it. The module holds data alone: it must not
import any other part of the package, except locks.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ._locks import new_lock

if TYPE_CHECKING:
    from .autodiff.tape import Cotangent, LeafListener, Node
    from .backend.codegen.expression import Expr
    from .compiler.explain import Explanation
    from .nn.cell import Cell
    from .op import Op
    from .op_calls import Builder, Function
    from .pages import Page
    from .random_state import Generator
    from .ranks.world import World
    from .tensor import Tensor
    from .types import Device

__all__ = ["runtime_state", "staged_builder", "thread_state", "without_builder"]


class CellCompiler(Protocol):
    """Interface of the compiler functions that a Cell (a network layer) calls."""

    def graph_call(
        self, cell: Cell, args: tuple[object, ...], kwargs: dict[str, object], /
    ) -> Any: ...

    def compile_cell(
        self, cell: Cell, args: tuple[object, ...], kwargs: dict[str, object], /
    ) -> None: ...

    def explain_cell(
        self, cell: Cell, args: tuple[object, ...], kwargs: dict[str, object], /
    ) -> Explanation: ...

    def show_cell(
        self, cell: Cell, args: tuple[object, ...], kwargs: dict[str, object], /
    ) -> Page: ...

    @property
    def JitConfig(self) -> Any: ...

    def jit(self, function: Callable[..., object], /) -> Any: ...


class OpWatch(Protocol):
    """Interface of an observer that checks the results of eager ops and gradients for NaN.

    `autodiff.anomaly` implements it.
    """

    def watched(self, op: Op, attributes: Mapping[str, object], call: Function, /) -> Function: ...

    def gradient(
        self,
        node: Node,
        cotangents: Sequence[Cotangent | None],
        create_graph: bool,
        sums: Sequence[Cotangent | None] = (),
        /,
    ) -> Sequence[Cotangent | None]: ...


class RuntimeState:
    """Process-wide version counters, and functions that higher layers install for lower ones.

    A *version* that is an object is replaced by a new object at every change: a cache stores the
    version that it saw and compares with `is`. A version that is an int counts the changes.

    Attributes:
        settings_version: changes when a setting is written or the rules of an op are replaced.
        bindings_version: changes when an existing Tensor gets another buffer or type.
        rules_version: how many times rules of ops were replaced after their definition.
        cells_version: how many times an attribute, member or hook of a Cell, a flag of a Parameter,
            or the setting `stale_captures` was set.
        derivatives: number of derivatives that are recording now, in all threads. While it is 0,
            tensors whose type still says that they are recorded count as unrecorded.
        horizon: tape sequence number at which the first of these derivatives began. A tape edge
            with a smaller number belongs to a derivative that has ended.
        staging: number of evaluations of Python source into graphs that are running now, in all
            threads. While it is not 0, every op call goes to its thread's builder, even if all
            operands are ordinary tensors: a function that is being compiled captures such tensors
            as inputs of its graph.
        thread_worlds: number of running groups of threads that act as ranks. While it is not 0,
            compiled functions look up every program by its whole key, which contains the rank.
        watch: observer that checks the results of all eager ops and their gradients, while
            `detect_anomaly` is on; None otherwise. Ops are prepared anew when it changes.
        seed: the argument of the last call of `set_seed` or `manual_seed`; None before the first
            and after `seed()`.
        eager_builder: builder that runs ops immediately; installed by `execution.eager`.
        prepare_call: function that gets a public function, and the arguments and result of a call
            of it that has run. It returns a faster function for calls with the same types of
            tensors and equal other arguments, or None; installed by `execution.eager`.
        expand_body: function that traces the body of a composite op to a graph; installed by
            `ir.builder`.
        scalar_of_body: function that runs the body of an element-wise composite op on symbolic
            scalars; installed by `backend.codegen`.
        load_compiler: function that returns the package `duograph.compiler`, which is imported when
            a Cell is first compiled; installed by the package itself.
        check_device: function that validates a `device_target`; installed by `backend.registry`.
        default_device: function that returns the name of the device on which an op would run now;
            installed by `backend.registry`.
    """

    __slots__ = (
        "settings_version", "bindings_version", "rules_version", "cells_version", "derivatives",
        "horizon", "staging", "thread_worlds", "watch", "seed", "eager_builder", "prepare_call",
        "expand_body", "scalar_of_body", "load_compiler", "check_device", "default_device", "_lock",
    )  # fmt: skip

    settings_version: object
    bindings_version: object
    rules_version: int
    cells_version: int
    derivatives: int
    horizon: int
    staging: int
    thread_worlds: int
    watch: OpWatch | None
    seed: int | None
    eager_builder: Builder
    prepare_call: Callable[..., Function | None]
    expand_body: Callable[..., Any]
    scalar_of_body: Callable[..., Expr]
    load_compiler: Callable[[], CellCompiler]
    check_device: Callable[[str], str] | None
    default_device: Callable[[], str] | None

    def __init__(self) -> None:
        self.settings_version = object()
        self.bindings_version = object()
        self.rules_version = self.cells_version = 0
        self.derivatives = self.horizon = self.staging = self.thread_worlds = 0
        self.watch = None
        self.seed = None
        self.check_device = None
        self.default_device = None
        self._lock = new_lock()

    def enter_derivative(self, next_sequence: Callable[[], int]) -> None:
        """Increase the number of running derivatives by one; the first one sets `horizon`.

        `next_sequence` returns the next sequence number of the tape.
        """
        with self._lock:
            if not self.derivatives:
                self.horizon = next_sequence()
            self.derivatives += 1

    def leave_derivative(self) -> None:
        """Decrease the number of running derivatives by one."""
        with self._lock:
            self.derivatives -= 1

    def enter_staging(self) -> None:
        """Add one to `staging`, the number of functions being traced, in all threads."""
        with self._lock:
            self.staging += 1

    def leave_staging(self) -> None:
        """Take one from `staging`, the number of functions being traced, in all threads."""
        with self._lock:
            self.staging -= 1

    def enter_thread_world(self) -> None:
        """Increase the number of groups of threads that act as ranks by one."""
        with self._lock:
            self.thread_worlds += 1
            self.settings_version = object()

    def leave_thread_world(self) -> None:
        """Decrease the number of groups of threads that act as ranks by one."""
        with self._lock:
            self.thread_worlds -= 1
            self.settings_version = object()


runtime_state = RuntimeState()


class _ThreadState(threading.local):
    """Per-thread state: the receiver of op calls, nesting depths, device, world and generator.

    Attributes:
        builder: graph builder that receives the thread's op calls; None runs them eagerly.
        call_depth: nesting of running calls of named graphs.
        derivative_depth: number of derivatives that this thread is inside of.
        device: the device of the thread's ops on host data; None means that of the settings.
        world: the ranks of which this thread is one (`ranks.World`); None in threads that belong to
            the world of the process.
        generator: the thread's own random generator; None means that of the process.
        leaf_listener: `autodiff.tape.LeafListener` to which the thread's next backward pass reports
            each gradient as soon as it is complete; None for no reports.
        recorded_writes: tensors, by id, to which a recorded value was written in place. The end of
            the thread's outermost derivative detaches them from the tape.
    """

    builder: Builder | None = None
    call_depth: int = 0
    derivative_depth: int = 0
    device: Device | None = None
    world: World | None = None
    generator: Generator | None = None
    leaf_listener: LeafListener | None = None

    def __init__(self) -> None:
        self.recorded_writes: dict[int, weakref.ref[Tensor]] = {}


thread_state = _ThreadState()


def staged_builder() -> Any:
    """Return the graph builder if this thread is compiling a function's source, else None."""
    if not runtime_state.staging:
        return None
    builder: Any = thread_state.builder
    return builder if builder is not None and builder.staged else None


@contextmanager
def without_builder() -> Iterator[None]:
    """Return a context manager that runs this thread's ops eagerly, even while it compiles."""
    before, thread_state.builder = thread_state.builder, None
    try:
        yield
    finally:
        thread_state.builder = before
