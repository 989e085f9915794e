"""Observers: objects that are notified of every kernel, copy and compilation, on every device.

A profiler, or a plugin that forwards events to another tool, is an `Observer`; `add` and `remove`
switch it on and off. The core reports on behalf of all backends. While there is no observer, op
calls and compiled functions contain no trace of this module: the first `add` makes every kernel
call be prepared again in a form that reports. `on_change` lists functions of the caches that keep
both forms and switch between them. This module must not change what runs.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from .._locks import new_lock
from ..errors import ArgumentError
from ..runtime_state import runtime_state

if TYPE_CHECKING:
    from ..host_arrays import Array
    from ..ir.graph import SourceSpan
    from ..op import Op
    from .prepared import Handle, HandleFunction

__all__ = [
    "KINDS",
    "CompiledForm",
    "DeviceTimer",
    "Event",
    "EventLog",
    "Observer",
    "Report",
    "State",
    "Work",
    "active",
    "add",
    "line_at",
    "remove",
    "reporting",
    "user_frame",
]

# What an event can be. A "python" event is Python code that a compiled function calls. A
# "communication" lasts from the start of a collective or message to its end, while kernels may run;
# a "wait" is the time in which the program waited for one.
KINDS = ("kernel", "copy", "compile", "cache", "python", "communication", "wait")

# The clock of all events: nanoseconds, and the clock of CLOCK_MONOTONIC in C on Linux.
clock = time.perf_counter_ns
_thread = threading.get_ident


@dataclasses.dataclass(eq=False)
class Work:
    """Description of a kernel, copy or compilation that is reported to observers.

    A kernel call that is run several times reports the same object each time.

    Attributes:
        kind: one of `KINDS`.
        name: for a kernel the op's name (`region` for a fused region); for a copy "to device",
            "from device" or "between devices"; for communication the collective's name; otherwise
            what was compiled or looked up.
        device: such as ``"CPU:0"``; "" if no device takes part.
        nbytes: bytes of a kernel's operands and results, bytes copied by a copy, or bytes that a
            collective has sent to other ranks; else 0.
        op: the op of a kernel; None for other work.
        types: types of the operands, then of the results; None for an absent operand.
        n_results: number of results.
        attributes: the op's attributes; those of a region are its graph, ``body``.
        spans: source locations of a compiled kernel, several for a fused region; each has `file`
            and `line`.
        detail: further facts by name, to be shown to users.
    """

    kind: str
    name: str
    device: str = ""
    nbytes: int = 0
    op: Op | None = None
    types: tuple[Any, ...] = ()
    n_results: int = 0
    attributes: Mapping[str, object] = dataclasses.field(default_factory=dict)
    spans: tuple[SourceSpan, ...] = ()
    detail: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        # `sites`: where recorders found the user's line, as (depth of the stack, code, offset); the
        # list is always the same, because compiled code refers to it.
        # `walks`: (id of the code, offset) -> how often recorders found this line, and the code.
        self.sites: list[tuple[int, CodeType, int]] = []
        self.walks: dict[tuple[int, int], tuple[int, CodeType]] = {}


@dataclasses.dataclass(frozen=True)
class Event:
    """One kernel, copy or compilation that has run.

    Attributes:
        work: what ran.
        begin, end: times on the host, in nanoseconds of `time.perf_counter_ns`. On a device with a
            queue these are the times of the launch.
        thread: `threading.get_ident` of the thread that did the work.
        file, line: the user's source line, outside duograph; ("", 0) if there is none.
        device_times: function that waits for the device and returns when the work began and ended
            there, in the nanoseconds of `begin`; None if the device has no clock of its own.
    """

    work: Work
    begin: int
    end: int
    thread: int
    file: str = ""
    line: int = 0
    device_times: Callable[[], tuple[int, int]] | None = None


class DeviceTimer:
    """Interface of the clock of a device with a queue, which `Backend.timer` returns."""

    def mark(self) -> object:
        """Append a mark to the device queue of the calling thread; return it without waiting.

        None means that there is no mark; the kernel then has no times of the device.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no mark()")

    def elapsed(self, begin: Any, end: Any) -> int:
        """Wait until the device reaches two marks; return the nanoseconds between them."""
        raise NotImplementedError(f"{type(self).__name__}: has no elapsed()")


# The method `watched_call` of a backend: from (state, call, description, Python form) to a call.
CompiledForm: TypeAlias = "Callable[[State, HandleFunction, Work, HandleFunction], HandleFunction]"

# Marks of a device around a kernel: the timer, the mark before and the mark after.
Marks = tuple[DeviceTimer, object, object]


class Observer:
    """Base class of observers. A subclass overrides `started`, `finished` or both.

    Each event is reported once, by the thread that did the work, in the order in which the work
    ends. A kernel in a native program is reported when the program returns, with its own times. If
    a method raises, the observer is removed and a warning names it.
    """

    def started(self, work: Work) -> None:
        """Handle the start of work.

        For a kernel in a native program (one C call of many kernels), it is called directly before
        `finished`, after the program has returned. If the work raises, `finished` is called
        nevertheless.
        """

    def finished(self, event: Event) -> None:
        """Handle the end of work on the host; a device with a queue may still be running it."""

    def take(self, work: Work, begin: int, end: int, marks: Marks | None) -> None:
        """Receive one event as plain arguments; this default makes an `Event` and calls `finished`.

        An observer that needs no `Event` overrides it to save time. `begin` and `end` are as in
        `Event`; `marks` is the device's timer with its marks before and after the work, or None.
        """
        spans = work.spans
        if spans:
            file, line = spans[0].file, spans[0].line
        else:
            file, line = line_at(user_frame(sys._getframe(1)))
        times = None if marks is None else _on_device(begin, marks)
        self.finished(Event(work, begin, end, _thread(), file, line, times))

    def take_program(self, works: Sequence[Work], times: Array) -> None:
        """Receive the kernels that a native program (one C call of many kernels) has executed.

        `times` is an int64 array with a row (index in `works`, begin, end) for each kernel; the
        times are in nanoseconds.
        """
        starts = type(self).started is not Observer.started
        for index, begin, end in times.tolist():
            if starts:
                self.started(works[index])
            self.take(works[index], begin, end, None)


class EventLog(Observer, abc.ABC):
    """Base class of duograph's own observers whose events a backend's compiled code may store.

    A backend offers such code by its method `watched_call`. It stores the values that `take` would
    store, but faster, and does not call `take`.

    Attributes:
        values: seven values for each event: its `Work`, begin, end, thread, the code object and the
            byte offset of the user's line (or None and 0), and None for the marks.
        limits: two numbers: the length of `values` at which the limit of events is reached, and the
            least `end` of an event for which `sample` is called. The list is always the same.
        by_compiled_code: whether compiled code may store events.
    """

    values: list[object]
    limits: list[int]
    by_compiled_code: bool

    @abc.abstractmethod
    def walk(self, work: Work, frame: FrameType | None) -> tuple[CodeType | None, int]:
        """Return the code object and bytecode offset of the user's line, or (None, 0).

        `frame` is the innermost frame, at depth 0 of those that `work.sites` remembers.
        """

    @abc.abstractmethod
    def drop(self, count: int = 1) -> None:
        """Count events beyond the limit."""

    @abc.abstractmethod
    def sample(self, device: str) -> None:
        """Store the memory in use of a device now, and set when it is to be sampled next."""


# An EventLog, its `values` and its `limits`, as compiled code of a backend reads them.
Log: TypeAlias = tuple[EventLog, list[object], list[int]]


def _on_device(begin: int, marks: Marks) -> Callable[[], tuple[int, int]]:
    timer, first, last = marks

    def times() -> tuple[int, int]:
        return begin, begin + timer.elapsed(first, last)

    return times


class State:
    """The state that prepared calls read at each call to decide whether and how to report.

    Attributes:
        observers: the observers, in the order in which they were added.
        version: an object that is replaced whenever prepared calls switch between the form that
            reports and the form that does not.
        take, take_program: functions that pass one event, or all events of a native program, to
            every observer; None while there are no observers.
        start: function that calls `started` of the observers that override it; None if no observer
            does.
        log: the only observer, as a `Log`, if compiled code of a backend may store its events;
            else None.
        building: whether calls are now prepared in the form that reports.
    """

    __slots__ = ("observers", "version", "take", "take_program", "start", "log", "building")

    def __init__(self) -> None:
        self.observers: tuple[Observer, ...] = ()
        self.version = object()
        self.take: Callable[[Work, int, int, Marks | None], None] | None = None
        self.take_program: Callable[[Sequence[Work], Array], None] | None = None
        self.start: Callable[[Work], None] | None = None
        self.log: Log | None = None
        self.building = False


state = State()
# Called when the first observer is added or the last one is removed, since cached calls report
# events only while there are observers.
on_change: list[Callable[[], None]] = []
_lock = new_lock()


def active() -> bool:
    """Return whether there is an observer."""
    return state.take is not None


def add(observer: Observer) -> None:
    """Report every event from now on to an observer; do nothing if it was added before.

    Raises:
        ArgumentError: `observer` is not an Observer.
    """
    if not isinstance(observer, Observer):
        raise ArgumentError(f"observers.add: got {type(observer).__name__}; wanted an Observer")
    with _lock:
        if observer not in state.observers:
            _set((*state.observers, observer))


def remove(observer: Observer) -> None:
    """Stop reporting events to an observer; do nothing if it was not added."""
    with _lock:
        if observer in state.observers:
            _set(tuple([o for o in state.observers if o is not observer]))


def _set(observers: tuple[Observer, ...]) -> None:
    """Replace all observers; the caller must hold the lock."""
    state.observers = observers
    starters = tuple([o for o in observers if type(o).started is not Observer.started])
    if not observers:
        state.take = state.take_program = state.start = None
    elif len(observers) == 1:  # no need for `_all`, which costs a call
        state.take, state.take_program = _safely(observers[0])
    else:
        pairs = [_safely(o) for o in observers]
        state.take = _all([take for take, _ in pairs])
        state.take_program = _all([take for _, take in pairs])
    state.start = _all([_caught(o, o.started) for o in starters]) if starters else None
    state.log = _only_log(observers)
    if state.building is not bool(observers):
        state.building = bool(observers)
        state.version = object()
        for change in on_change:
            change()
        runtime_state.settings_version = object()


def _only_log(observers: Sequence[Observer]) -> Log | None:
    """Return `State.log` for these observers."""
    log = observers[0] if len(observers) == 1 else None
    if not isinstance(log, EventLog) or not log.by_compiled_code or not _is_own(log):
        return None
    return log, log.values, log.limits


def _is_own(observer: Observer) -> bool:
    """Return whether an observer's class is duograph's own, so that its methods do not raise."""
    return type(observer).__module__.partition(".")[0] == __name__.partition(".")[0]


def _safely(observer: Observer) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return an observer's methods `take` and `take_program`, wrapped so that they cannot raise.

    If a wrapped method raises, its observer is removed, with a warning. Only the methods of a
    plugin's observer are wrapped; those of duograph's own observers are returned unchanged.
    """
    if _is_own(observer):
        return observer.take, observer.take_program
    return _caught(observer, observer.take), _caught(observer, observer.take_program)


def _caught(observer: Observer, method: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls an observer's method and removes the observer if it raises.

    The removal is announced by a warning. The function does nothing if the thread is running a
    method of an observer already.
    """

    def call(*arguments: object) -> None:
        if _inside.now:  # the observer's own ops are not reported
            return
        _inside.now = True
        try:
            method(*arguments)
        except Exception as error:  # noqa: BLE001 (an observer may fail in any way; it is named)
            remove(observer)
            warnings.warn(
                f"the observer {type(observer).__name__} is removed: it raised "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
        finally:
            _inside.now = False

    return call


class _Inside(threading.local):
    """Thread-local flag: whether this thread is running a method of an observer."""

    now = False


_inside = _Inside()


def _all(calls: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def each(*arguments: object) -> None:
        for call in calls:
            call(*arguments)

    return each


# ---- reporting -----------------------------------------------------------------------------------


def watched(
    run: HandleFunction,
    work: Work,
    timer: DeviceTimer | None,
    count: int | None = None,
    compiled: CompiledForm | None = None,
) -> HandleFunction:
    """Return a function that runs a kernel call and reports it to the observers.

    While there are no observers the function only runs the call.

    Args:
        run: the call.
        work: the description of the call.
        timer: the clock of a device with a queue, else None.
        count: how many arguments every call passes; None if the number varies.
        compiled: the backend's method `watched_call`, or None.
    """
    if timer is not None:
        return _marked(run, work, timer)
    plain = _watcher(count)(run, work)
    return plain if compiled is None else compiled(state, run, work, plain)


# A call is faster with a parameter per handle than with `*handles`.
_WATCHER = """
def watcher(run, work):
    def call({handles}):
        take = state.take
        if take is None:
            return run({handles})
        if state.start is not None:
            state.start(work)
        begin = clock()
        try:
            found = run({handles})
        except BaseException:
            take(work, begin, clock(), None)
            raise
        take(work, begin, clock(), None)
        return found
    return call
"""


@functools.cache
def _watcher(count: int | None) -> Callable[[HandleFunction, Work], HandleFunction]:
    """Return a function (run, work) -> function that calls `run` and reports the call as `work`.

    The returned function takes `count` positional arguments, or any number if `count` is None. The
    result is cached, because generating code takes longer than many kernels.
    """
    made: dict[str, Any] = {"state": state, "clock": clock}
    handles = "*handles" if count is None else ", ".join(f"h{k}" for k in range(count))
    exec(compile(_WATCHER.format(handles=handles), __file__, "exec"), made)
    watcher: Callable[[HandleFunction, Work], HandleFunction] = made["watcher"]
    return watcher


def _marked(run: HandleFunction, work: Work, timer: DeviceTimer) -> HandleFunction:
    """Return a function that runs a kernel call and reports it with its times on the device.

    It appends marks to the device's queue before and after the call.
    """

    def call(*handles: Handle) -> Handle | tuple[Handle, ...]:
        take = state.take
        if take is None:
            return run(*handles)
        if state.start is not None:
            state.start(work)
        first = timer.mark()
        begin = clock()
        try:
            found = run(*handles)
        except BaseException:
            take(work, begin, clock(), None)
            raise
        end = clock()
        last = timer.mark()
        take(work, begin, end, None if first is None or last is None else (timer, first, last))
        return found

    return call


class Report:
    """The object that `with reporting(...)` yields, on which the block may set `happened` to False.

    If `happened` is False when the block ends, for instance because no copy was necessary, the end
    of the block is not reported.
    """

    happened = True


@contextlib.contextmanager
def reporting(
    kind: str,
    name: str,
    device: str = "",
    nbytes: int = 0,
    detail: Mapping[str, object] | None = None,
) -> Iterator[Report]:
    """Return a context manager that reports its `with` block to observers as one event.

    Without observers it costs next to nothing. Backends call it for work that the core does not
    see, such as a compilation in the background. It yields a `Report`. If the block sets the
    report's attribute `happened` to False, the observers' method `finished` is not called for the
    block; their method `started` has been called at its beginning.

    Args:
        kind: one of `KINDS`.
        name, device, nbytes, detail: attributes of the reported `Work`.
    """
    report = Report()
    if state.take is None:
        yield report
        return
    work = Work(kind, name, device, nbytes, detail={} if detail is None else detail)
    if state.start is not None:
        state.start(work)
    begin = clock()
    try:
        yield report
    finally:
        take = state.take
        if take is not None and report.happened:
            take(work, begin, clock(), None)


# ---- the user's line -----------------------------------------------------------------------------

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _OwnFiles(dict[str, bool]):
    """Table from file name to whether the file belongs to duograph; computed at first use.

    Packages with names such as duograph_cpu belong to it, as in tracebacks: backends and plugins.
    """

    def __missing__(self, file: str) -> bool:
        folders = [
            os.path.join(folder, "")
            for name, module in list(sys.modules.items())
            if name.startswith("duograph_") and "." not in name
            for folder in getattr(module, "__path__", ())
        ]
        own = file.startswith((_ROOT, *folders, "<duograph", "<frozen", contextlib.__file__))
        self[file] = own
        return own


own_files = _OwnFiles()


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost of a frame and its callers that runs code outside duograph, or None."""
    while frame is not None and own_files[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def line_at(frame: FrameType | None) -> tuple[str, int]:
    """Return the file and line that a frame executes; ("", 0) without a frame."""
    return ("", 0) if frame is None else line_of(frame.f_code, frame.f_lasti)


def line_of(code: CodeType, offset: int) -> tuple[str, int]:
    """Return the file and line of the instruction at byte offset `offset` of a code object.

    The line is the first line of the code object if the instruction has none.
    """
    for first, last, line in code.co_lines():
        if first <= offset < last and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno
