"""`profile`: records the kernels, copies and compilations of a part of a program.

For users. While it collects, a `Recorder` is registered as an observer of the runtime. `profile`
follows a schedule of steps, and computes tables, a trace and a roofline from the recorded events
alone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._locks import new_lock
from ..backend import observers, registry
from ..errors import ArgumentError
from ..option_checks import check_options
from .communication import CommunicationStep, communication_of, communication_text
from .limits import Limits, device_limits, measure_again
from .options import ProfilerActivity, _ExperimentalConfig
from .ranges import recorders
from .recording import MemorySample, Range, Record, Recorder
from .schedules import ProfilerAction
from .tables import Row, grouped, table_text
from .traces import trace_document, write_document

if TYPE_CHECKING:
    from .traces import Trace

__all__ = ["profile"]

Schedule = Callable[[int], ProfilerAction]
_EXCEEDED = 1.05  # share of a measured limit from which on the limit is measured again
_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Record kernels, copies and compilations (`mindspore.profiler.profile`, `duograph.profile`).

    It records eager and compiled code, on every device, from its creation (or from `start`) to
    `stop`; a `with` block calls both. Several profiles may run at once. Programs without a profile
    are not slowed down.

    Args:
        activities: `ProfilerActivity` members; accepted, since host and device are always recorded.
        with_stack: also store the call stack of each event, for the trace.
        profile_memory: also sample the bytes in use of each device, for `memory` and the trace.
        start_profile: record from the creation of the object, without a call of `start`.
        record_shapes: write the types of the operands into the trace.
        schedule: function from the index of a step to a `ProfilerAction`, such as `schedule(...)`.
            None records everything until `stop`.
        on_trace_ready: function that is called with the profile when its results are complete: at
            the end of each cycle of the schedule, or by `stop`.
        experimental_config: an `_ExperimentalConfig`; it has no effect.
        data_process, parallel_strategy, hbm_ddr, pcie, sync_enable: options of MindSpore that have
            no effect in duograph; setting one warns once.

    Attributes:
        max_events: the most events that a profile stores; later events are only counted, with a
            warning. Set it on the class or on a profile that has not started. An event takes 150
            bytes of memory, or 24 in a natively executed compiled program.

    Raises:
        TypeError: an argument has a wrong type.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([1.0, 2.0, 3.0])
        >>> with ms.profile() as p:
        ...     y = x * x + x
        >>> [r.work.name for r in p.records() if r.kind == "kernel"]
        ['mul', 'add']
        >>> print(p.table(by="op").splitlines()[2].split()[:3])
        ['op', 'calls', 'ms']
    """

    max_events = 1_000_000

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        with_stack: bool = False,
        profile_memory: bool = False,
        data_process: bool = False,
        parallel_strategy: bool = False,
        start_profile: bool = True,
        hbm_ddr: bool = False,
        pcie: bool = False,
        sync_enable: bool = True,
        record_shapes: bool = False,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        experimental_config: _ExperimentalConfig | None = None,
    ) -> None:
        check_options(
            "profile",
            data_process=data_process,
            parallel_strategy=parallel_strategy,
            hbm_ddr=hbm_ddr,
            pcie=pcie,
            sync_enable=sync_enable,
        )
        _check_flags(
            with_stack=with_stack,
            profile_memory=profile_memory,
            start_profile=start_profile,
            record_shapes=record_shapes,
        )
        _check_activities(activities)
        for name, value in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if value is not None and not callable(value):
                raise ArgumentError(
                    f"profile: got {type(value).__name__} for {name}; wanted a function or None"
                )
        if not isinstance(experimental_config, (_ExperimentalConfig, type(None))):
            raise ArgumentError(
                f"profile: got {type(experimental_config).__name__} for experimental_config; "
                "wanted an _ExperimentalConfig or None"
            )
        self._with_stack = with_stack
        self._memory = profile_memory
        self._shapes = record_shapes
        self._schedule = schedule
        self._ready = on_trace_ready
        self._metadata: dict[str, object] = {}
        self._lock = new_lock()
        self._running = False
        self._step = 0
        self._step_began = 0
        self._recorder: Recorder | None = None  # that of the present window
        self._window = _Window(Recorder(self.max_events))
        if start_profile:
            self.start()

    # ---- collecting -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to record, or to follow the schedule from step 0.

        Warn if the profile runs already.
        """
        with self._lock:
            if self._running:
                _warn("start: this profile runs already")
                return
            self._running = True
            self._step = 0
            self._enter(self._action())
            self._step_began = time.perf_counter_ns()

    def stop(self) -> None:
        """End recording and call `on_trace_ready`; warn if the profile does not run."""
        with self._lock:
            if not self._running:
                _warn("stop: this profile does not run; call start() first")
                return
            recorded = self._recorder is not None and self._action() is not ProfilerAction.WARM_UP
            self._leave()
            self._running = False
        if recorded:
            self._hand_over()

    def step(self) -> None:
        """End a step and begin the next one; warn if the profile does not run."""
        with self._lock:
            if not self._running:
                _warn("step: this profile does not run, so the step has no effect")
                return
            now = time.perf_counter_ns()
            before = self._action()
            if self._recorder is not None and before is not ProfilerAction.WARM_UP:
                self._window.steps.append((self._step, self._step_began, now))
            self._step += 1
            after = self._action()
            ends = before is ProfilerAction.RECORD_AND_SAVE
            goes_on = before is after or (before is not ProfilerAction.NONE and after in _RECORDS)
            if ends or not goes_on:
                self._leave()
        if ends:
            self._hand_over()
        with self._lock:
            if self._running:  # the handler may have stopped it
                self._enter(after)
                self._step_began = time.perf_counter_ns()

    def _action(self) -> ProfilerAction:
        if self._schedule is None:
            return ProfilerAction.RECORD
        found = self._schedule(self._step)
        if not isinstance(found, ProfilerAction):
            raise ArgumentError(
                f"profile: schedule({self._step}) returned {found!r}; wanted a ProfilerAction"
            )
        return found

    def _enter(self, action: ProfilerAction) -> None:
        """Begin to store events if `action` requires it and none are being stored yet."""
        if action is ProfilerAction.NONE:
            return
        if action is ProfilerAction.WARM_UP:
            if self._recorder is None:
                self._recorder = Recorder(0, quiet=True)
                observers.add(self._recorder)
            return
        if self._recorder is not None and not self._recorder.quiet:
            return
        made = Recorder(self.max_events, self._memory, self._with_stack)
        self._window = _Window(made)
        if self._memory:
            device = repr(registry.current_device())
            made.sample(device)
        observers.add(made)  # before the other is removed, so that calls keep their form
        if self._recorder is not None:
            observers.remove(self._recorder)
        self._recorder = made
        recorders.append(made)

    def _leave(self) -> None:
        """Stop storing events."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        observers.remove(recorder)
        if recorder in recorders:
            recorders.remove(recorder)
        if not recorder.quiet:
            recorder.wait()
            self._window.end = time.perf_counter_ns()
            if self._memory:
                for device in {sample.device for sample in recorder.samples}:
                    recorder.sample(device)

    def _hand_over(self) -> None:
        if self._ready is not None:
            self._ready(self)

    def __enter__(self) -> profile:
        if not self._running:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._running:
            self.stop()

    def __del__(self) -> None:
        if getattr(self, "_recorder", None) is not None:
            self._leave()

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the metadata of the trace.

        Raises:
            TypeError: the key or the value is no string.
        """
        if not isinstance(key, str) or not isinstance(value, str):
            raise ArgumentError(f"add_metadata: got {key!r}, {value!r}; wanted two strings")
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, given as JSON text, to the metadata of the trace.

        Raises:
            TypeError: the key or the value is no string, or the value is no JSON.
        """
        try:
            found = json.loads(value)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"add_metadata_json: got {value!r}; wanted JSON") from error
        if not isinstance(key, str):
            raise ArgumentError(f"add_metadata_json: got {key!r} for a key; wanted a str")
        self._metadata[key] = found

    # ---- results --------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """Return the events of the last window that was recorded, in the order in which they began.

        A window is a cycle of the schedule, or everything from `start` to `stop`. The call waits
        for devices that measure times with their own clock.
        """
        return self._window.records()

    @property
    def ranges(self) -> list[Range]:
        """The ranges and marks that `profiler.mstx` made in the last window."""
        return list(self._window.recorder.ranges)

    @property
    def steps(self) -> list[tuple[int, float]]:
        """The index and the seconds of each step that was recorded."""
        return [(number, (end - begin) / 1e9) for number, begin, end in self._window.steps]

    @property
    def communication(self) -> list[CommunicationStep]:
        """The bytes sent to other ranks and the seconds spent waiting for them, for each step."""
        return communication_of(self._window.records(), self._window.steps)

    @property
    def memory(self) -> list[MemorySample]:
        """The bytes in use of each device over time, with `profile_memory`.

        Samples are at least 0.1 ms apart. A device without memory statistics has no samples.
        """
        return list(self._window.recorder.samples)

    @property
    def dropped(self) -> int:
        """The number of events beyond `max_events`, which were not stored."""
        return self._window.recorder.dropped

    @property
    def seconds(self) -> float:
        """The length of the last window in seconds, up to now if it has not ended."""
        return self._window.seconds

    def rows(self, by: str = "op", sort: str = "time", roofline: bool = False) -> list[Row]:
        """Return the rows of the table of events as `Row` objects; `table` returns it as text.

        Args:
            by: "op"; "line", the user's source line; or "kernel", the op with its operand types.
            sort: "time", "calls", "mean", "longest", "bytes", "flops" or "name".
            roofline: whether to set `share` and `bound` of each row from the limits of its device.
        """
        records = self.records()
        devices = {r.work.device for r in records if r.kind == "kernel"} if roofline else ()
        limits = {device: device_limits(device) for device in devices}
        kept = [r for r in records if r.kind not in ("cache", "communication")]
        found = grouped(kept, by, sort, limits)
        if not any(row.bound == "compute" and (row.share or 0) > _EXCEEDED for row in found):
            return found
        return grouped(kept, by, sort, {device: measure_again(device) for device in devices})

    def table(
        self, by: str = "op", sort: str = "time", rows: int | None = 20, roofline: bool = False
    ) -> str:
        """Return a table of the recorded events as text.

        The columns are: number of calls; total time (on the device if it has a clock, else on the
        host), its share of the window, time per call and of the longest call; bytes read and
        written; bytes and operations per second.

        Args:
            by: "op"; "line", the user's source line; or "kernel", the op with its operand types.
            sort: "time", "calls", "mean", "longest", "bytes", "flops" or "name".
            rows: how many rows to show; None shows all.
            roofline: also compare each row with the limits of the device: which limit, memory or
                compute, is nearer, and the share of it that was reached. The limits are measured
                once per machine, which takes a second.

        Raises:
            ValueError: `by` or `sort` is another string, or `rows` no number of rows.
        """
        found = self.rows(by, sort, roofline)
        text = table_text(found, self.seconds, by, rows)
        return f"{self.summary()}\n\n{text}" if found else self.summary()

    def summary(self) -> str:
        """Return a summary of the last window: its length, and the time by kind of event."""
        records, whole = self.records(), self.seconds
        parts = [f"{whole * 1e3:.3f} ms"]
        if self._window.steps:
            parts[0] += f" in {len(self._window.steps)} steps"
        for kind, word in (("kernel", "kernel"), ("copy", "copy"), ("python", "Python call"),
                           ("compile", "compilation")):  # fmt: skip
            found = [r for r in records if r.kind == kind]
            if kind == "compile":
                found = _outermost(found)
            if found:
                seconds = sum(r.duration for r in found) / 1e9
                many = word if len(found) == 1 else _plural(word)
                share = f"{seconds / whole * 100:.1f} %" if whole else "0 %"
                parts.append(f"{len(found)} {many} {seconds * 1e3:.3f} ms ({share})")
        hits = sum(r.work.name == "disk cache hit" for r in records)
        misses = sum(r.work.name == "disk cache miss" for r in records)
        if hits or misses:
            parts.append(f"disk cache: {hits} found, {misses} not found")
        lines = ["profile: " + "; ".join(parts) if records else "profile: no events"]
        if self.memory:
            peaks: dict[str, int] = {}
            for sample in self.memory:
                peaks[sample.device] = max(peaks.get(sample.device, 0), sample.in_use)
            lines += [f"memory: {d} had up to {n / 1e6:.2f} MB in use" for d, n in peaks.items()]
        sent = communication_text(records, self._window.steps, whole)
        lines += [sent] if sent else []
        if self.dropped:
            lines.append(f"{self.dropped} more events were not stored (max_events)")
        return "\n".join(lines)

    def trace(self) -> Trace:
        """Return the last window in the trace event format of Chrome, as a JSON document."""
        window = self._window
        return trace_document(
            window.records(), window.recorder.ranges, window.steps, window.recorder.samples,
            window.begin, {**self._metadata, "clock": window.begin}, self._shapes,
        )  # fmt: skip

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the last window as a file that Perfetto and chrome://tracing open.

        Raises:
            OSError: the file cannot be written.
        """
        write_document(path, self.trace)

    def limits(self) -> Mapping[str, Limits]:
        """Return the measured limits of each device in the last window.

        See `table(roofline=True)`.
        """
        devices = dict.fromkeys(r.work.device for r in self.records() if r.kind == "kernel")
        return {device: device_limits(device) for device in devices}


@dataclasses.dataclass
class _Window:
    """The events recorded in one cycle of a schedule, or between `start` and `stop`."""

    recorder: Recorder
    begin: int = dataclasses.field(default_factory=time.perf_counter_ns)
    end: int = 0
    steps: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)
    _read: tuple[int, list[Record]] = (0, [])

    @property
    def seconds(self) -> float:
        return ((self.end or time.perf_counter_ns()) - self.begin) / 1e9

    def records(self) -> list[Record]:
        count = len(self.recorder)
        if self._read[0] != count:
            self._read = count, self.recorder.records()
        return list(self._read[1])


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"profile: got {name}={value!r}; wanted True or False")


def _check_activities(activities: Iterable[ProfilerActivity] | None) -> None:
    known = activities is None or (
        isinstance(activities, (list, tuple, set, frozenset))
        and all(isinstance(a, ProfilerActivity) for a in activities)
    )
    if not known:
        raise ArgumentError(
            f"profile: got activities={activities!r}; wanted a list of ProfilerActivity members"
        )


def _outermost(records: list[Record]) -> list[Record]:
    """Return the events that are not inside another event of the same thread."""
    found: list[Record] = []
    ends: dict[int, int] = {}
    for record in records:
        if record.begin >= ends.get(record.thread, 0):
            found.append(record)
            ends[record.thread] = record.end
    return found


def _plural(word: str) -> str:
    return "copies" if word == "copy" else f"{word}s"


def _warn(text: str) -> None:
    warnings.warn(f"profile: {text}", RuntimeWarning, stacklevel=3)
