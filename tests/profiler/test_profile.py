"""What a profile records, in both modes and on several devices, and what it does with mistakes."""

from __future__ import annotations

import gc
import itertools
import json
import pathlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import nn
from duograph.backend import observers, registry
from duograph.errors import ArgumentError, ArgumentValueError, DuographError
from duograph.op import OPS
from duograph.profiler import ProfilerAction, limits, profile, schedule, tensorboard_trace_handler
from duograph.profiler.limits import Limits
from duograph.profiler.operations import operations
from duograph.profiler.tables import own_times

DEVICES = ("CPU", "InnerRing", "Reference", "Template", "OpenCL", "CUDA-emulated")
MODES = ("eager", "O0", "O1", "O2")
RECORD, SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
NONE, WARM_UP = ProfilerAction.NONE, ProfilerAction.WARM_UP


@pytest.fixture(autouse=True)
def _alone(restored) -> Iterator[None]:
    yield
    gc.collect()
    assert not observers.active()


def usable(device: str) -> str:
    try:
        return registry.check_target(device)
    except DuographError as error:
        pytest.skip(str(error))


def body(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
    z = x * y
    return (z + x).sum(axis=0)


FIRST = body.__code__.co_firstlineno


def at(mode: str) -> Callable[..., ms.Tensor]:
    return body if mode == "eager" else ms.jit(body, jit_level=mode)


def operand(device: str | None = None, shape: tuple[int, ...] = (4, 3)) -> ms.Tensor:
    return ms.Tensor(np.ones(shape, np.float32), device=device)


def names(p: profile, kind: str = "kernel") -> list[str]:
    return [r.work.name for r in p.records() if r.kind == kind]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", MODES)
def test_kernels_of_a_program(device: str, mode: str) -> None:
    name = usable(device)
    run, x = at(mode), operand(name)
    run(x, x)
    with ms.profile() as first:
        run(x, x)
    with ms.profile() as second:
        for _ in range(3):
            run(x, x)
    kernels = [r for r in second.records() if r.kind == "kernel"]
    assert len(kernels) == 3 * len(names(first)) > 0
    assert {r.work.device for r in kernels} == {f"{name}:0"}
    if mode in ("eager", "O0"):
        assert names(first)[:2] == ["mul", "add"]
    found = {line for r in kernels for _, line in r.lines}
    assert found <= {FIRST + 1, FIRST + 2} and FIRST + 2 in found
    assert all(file == __file__ for r in kernels for file, _ in r.lines)
    assert second.table(rows=None).count("\n") >= 3


@pytest.mark.parametrize("device", ["OpenCL", "CUDA-emulated"])
@pytest.mark.parametrize("mode", ["eager", "O1"])
def test_devices_with_a_queue_keep_their_own_times(device: str, mode: str) -> None:
    run, x = at(mode), operand(usable(device), (64, 64))
    run(x, x)
    with ms.profile() as p:
        run(x, x)
    kernels = [r for r in p.records() if r.kind == "kernel"]
    times = [r.device_time for r in kernels]
    assert all(t is not None and 0 <= t <= p.seconds * 1e9 for t in times)
    events = p.trace()["traceEvents"]
    (process,) = {e["pid"] for e in events if e["args"].get("name") == f"{device}:0"}
    own = [e for e in events if e["ph"] == "X" and e["pid"] == process]
    assert [e["name"] for e in own] == [e["name"] for e in events
                                        if e.get("cat") == "kernel" and e not in own]  # fmt: skip
    ends = [(e["ts"], e["ts"] + e["dur"]) for e in own]
    assert all(a[1] <= b[0] + 1e-3 for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize("mode", MODES)
def test_a_training_step(mode: str) -> None:
    ms.set_context(device_target="CPU")
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
    optimizer = nn.Adam(net.trainable_params())
    grad = ms.value_and_grad(lambda a: net(a).sum(), None, optimizer.parameters)

    def train(a: ms.Tensor) -> ms.Tensor:
        loss, gradients = grad(a)
        optimizer(gradients)
        return loss

    step = train if mode == "eager" else ms.jit(train, jit_level=mode)
    x = operand()
    losses = [float(step(x)) for _ in range(2)]
    with ms.profile() as p:
        losses += [float(step(x)) for _ in range(2)]
    losses.append(float(step(x)))
    assert losses == sorted(losses, reverse=True)
    counts = names(p)
    assert counts.count("adam_step") == 2 * 4
    assert len(counts) % 2 == 0 and counts[: len(counts) // 2] == counts[len(counts) // 2 :]
    assert names(p, "copy").count("from device") == 2


@pytest.mark.parametrize("mode", ["O1", "O2"])
def test_loops_report_each_iteration(mode: str) -> None:
    @ms.jit(jit_level=mode)
    def loop(a: ms.Tensor) -> ms.Tensor:
        while a.sum() < 300:
            a = a + 1
        return a

    x = operand("CPU", (1,))
    loop(x)
    with ms.profile() as p:
        loop(x)
    found = names(p)
    assert found.count("add") == 299  # more than a native program stores at a time


def test_lines_of_one_op_in_several_lines() -> None:
    x = operand("CPU")

    def inner(a: ms.Tensor) -> ms.Tensor:
        return a * 2

    with ms.profile() as p:
        for _ in range(100):
            inner(x)
            x * 2
    lines = [r.lines[0][1] for r in p.records() if r.work.name == "mul"]
    first = inner.__code__.co_firstlineno
    assert lines == [first + 1, first + 6] * 100


def test_a_layer_called_from_two_places_after_many_calls() -> None:
    """The depth of the user's frame differs; a remembered depth must not hide the inner one."""
    ms.set_context(device_target="CPU")
    relu, x = nn.ReLU(), operand()

    class Own(nn.Cell):
        def construct(self, a: ms.Tensor) -> ms.Tensor:
            return relu(a)

    layers = [nn.SequentialCell(relu), Own()]
    with ms.profile() as p:
        for _ in range(60):
            for layer in layers:
                layer(x)
    lines = [r.lines[0][1] for r in p.records() if r.work.name == "relu"]
    assert len(lines) == 120
    assert len(set(lines[0::2])) == len(set(lines[1::2])) == 1
    assert lines[1] == Own.construct.__code__.co_firstlineno + 1


@pytest.mark.parametrize("mode", ["eager", "O1"])
def test_compilations_and_copies(mode: str) -> None:
    run, x = at(mode), operand("CPU", (5, 3))
    with ms.profile() as first:
        run(x, x).asnumpy()
    with ms.profile() as second:
        run(x, x).asnumpy()
    whole = [n for n in names(first, "compile") if n == "compile body"]
    assert len(whole) == (mode != "eager")
    assert names(second, "compile") == []
    assert [r.work.nbytes for r in second.records() if r.kind == "copy"] == [12]
    assert "compilation" in first.summary() or mode == "eager"


def test_the_disk_cache() -> None:
    """A fused region that this disk has never seen, and then the same in another function."""
    if registry.backend("CPU").compiler(0) is None:
        pytest.skip("without a C compiler nothing is cached")
    x, scale = operand("CPU", (5, 3)), float(time.time_ns() % 10**9)
    found = []
    for _ in range(2):
        with ms.profile() as p:
            ms.jit(lambda a: ms.ops.tanh(a * scale) - a, jit_level="O1")(x)
        found.append((names(p, "cache"), p.summary()))
    assert "disk cache miss" in found[0][0] and "not found" in found[0][1]
    assert "disk cache miss" not in found[1][0]


@pytest.mark.parametrize("with_stack", [False, True])
def test_the_work_of_a_backend_belongs_to_the_line_of_the_user(with_stack: bool) -> None:
    """Compilations, disk cache and kernels; the frames of duograph_cpu are not the user's."""
    x, scale = operand("CPU", (5, 3)), float(time.time_ns() % 10**9)
    with ms.profile(with_stack=with_stack) as p:
        ms.jit(lambda a: ms.ops.tanh(a * scale) - a, jit_level="O1")(x)
        ms.ops.exp(x).asnumpy()
    records = p.records()
    assert {"compile", "kernel", "copy"} <= {r.kind for r in records}
    assert {file for r in records for file, _ in r.lines} == {__file__}
    assert all(bool(r.stack) == with_stack for r in records)
    assert not [f for r in records for f, _ in r.stack if "duograph_cpu" in pathlib.Path(f).parts]


def test_memory_over_time() -> None:
    x = operand("CPU", (512, 512))
    with ms.profile(profile_memory=True) as p:
        kept = []
        for _ in range(8):
            kept.append(x + 1)
            time.sleep(0.002)
    samples = [s for s in p.memory if s.device == "CPU:0"]
    assert len(samples) >= 4
    assert [s.time for s in samples] == sorted(s.time for s in samples)
    assert samples[-1].in_use - samples[0].in_use >= 6 * x.nbytes
    assert "memory: CPU:0 had up to" in p.summary()


def test_ranges_and_marks() -> None:
    mstx = ms.profiler.mstx
    assert mstx.range_start("nobody records") == 0
    with ms.profile() as p:
        outer = mstx.range_start("outer")
        inner = mstx.range_start("inner", domain="mine")
        operand("CPU") * 2
        mstx.range_end(inner)
        mstx.mark("here")
        mstx.range_end(outer)
        mstx.range_end(outer)
        mstx.range_end(0)
    assert [(r.name, r.domain) for r in p.ranges] == [
        ("inner", "mine"), ("here", "default"), ("outer", "default"),
    ]  # fmt: skip
    inner_range, here, outer_range = p.ranges
    assert outer_range.begin <= inner_range.begin <= inner_range.end <= here.begin == here.end


# ---- schedules -----------------------------------------------------------------------------------

SCHEDULES = [
    (dict(wait=1, warmup=1, active=2, repeat=1), [NONE, WARM_UP, RECORD, SAVE, NONE, NONE]),
    (dict(wait=0, active=1), [SAVE] * 4),
    (dict(wait=1, active=1, skip_first=2), [NONE, NONE, NONE, SAVE, NONE, SAVE]),
    (dict(wait=0, warmup=1, active=1, repeat=2), [WARM_UP, SAVE, WARM_UP, SAVE, NONE]),
]


@pytest.mark.parametrize("given, wanted", SCHEDULES)
def test_schedule(given: dict[str, int], wanted: list[ProfilerAction]) -> None:
    plan = schedule(**given)
    assert [plan(step) for step in range(len(wanted))] == wanted
    assert plan.to_dict() == {"warmup": 0, "repeat": 0, "skip_first": 0, **given}
    assert eval(repr(plan)).to_dict() == plan.to_dict()


@pytest.mark.parametrize("given, wanted", SCHEDULES)
def test_profile_follows_a_schedule(given: dict[str, int], wanted: list[ProfilerAction]) -> None:
    x = operand("CPU")
    windows: list[list[str]] = []
    with ms.profile(schedule=schedule(**given), on_trace_ready=lambda p: windows.append(names(p))):
        p = None
        for _ in wanted:
            x * 2
            for q in [o for o in gc.get_objects() if type(o) is profile and o._running]:
                p = q
            assert p is not None
            p.step()
    assert len(windows) >= wanted.count(SAVE)
    assert all(w == ["mul"] * given["active"] for w in windows[: wanted.count(SAVE)])


@pytest.mark.parametrize(
    "given, error, text",
    [
        (dict(wait=-1, active=1), ArgumentValueError, "wait=-1; wanted 0"),
        (dict(wait=0, active=0), ArgumentValueError, "active=0; wanted 1"),
        (dict(wait=1.5, active=1), ArgumentError, "wait=1.5; wanted an int"),
        (dict(wait=True, active=1), ArgumentError, "wait=True; wanted an int"),
    ],
)
def test_wrong_schedules(given: dict[str, int], error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        schedule(**given)


def test_a_schedule_that_returns_something_else() -> None:
    with pytest.raises(ArgumentError, match=r"schedule\(0\) returned 7; wanted a ProfilerAction"):
        ms.profile(schedule=lambda step: 7)


# ---- mistakes ------------------------------------------------------------------------------------


def test_nested_profiles_record_the_same() -> None:
    x = operand("CPU")
    with ms.profile() as outer:
        x * 2
        with ms.profile() as inner:
            x + 2
        x - 2
    assert (names(outer), names(inner)) == (["mul", "add", "sub"], ["add"])


def test_calls_out_of_order_warn_and_do_nothing() -> None:
    p = ms.profile(start_profile=False)
    with pytest.warns(RuntimeWarning, match="step: this profile does not run"):
        p.step()
    with pytest.warns(RuntimeWarning, match="stop: this profile does not run"):
        p.stop()
    p.start()
    operand("CPU") * 2
    with pytest.warns(RuntimeWarning, match="start: this profile runs already"):
        p.start()
    p.stop()
    assert names(p) == ["mul"]
    p.start()
    operand("CPU") + 2
    p.stop()
    assert names(p) == ["add"]


def test_an_exception_ends_the_profile_and_keeps_the_results() -> None:
    x = operand("CPU")
    p = ms.profile(start_profile=False)
    with pytest.raises(ValueError, match="mine"), p:
        x * 2
        raise ValueError("mine")
    assert names(p) == ["mul"]


@pytest.mark.parametrize("used", [True, False])
def test_an_empty_program(used: bool) -> None:
    with ms.profile() as p:
        pass
    assert p.records() == [] and p.rows() == []
    assert p.table() == p.summary() == "profile: no events"
    assert all(e["ph"] == "M" for e in p.trace()["traceEvents"])


def test_a_profile_that_is_dropped_stops() -> None:
    p = ms.profile()
    assert observers.active()
    del p
    gc.collect()
    assert not observers.active()


@pytest.mark.parametrize("mode", ["eager", "O1"])
def test_threads(mode: str) -> None:
    run, x = at(mode), operand("CPU")
    run(x, x)
    with ms.profile() as one:
        run(x, x)
    with ms.profile() as p:
        threads = [threading.Thread(target=lambda: [run(x, x) for _ in range(20)])
                   for _ in range(3)]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(names(p)) == 60 * len(names(one))
    assert p.dropped == 0


@pytest.mark.parametrize("mode", ["eager", "O1"])
def test_memory_is_bounded(mode: str) -> None:
    run, x = at(mode), operand("CPU")
    run(x, x)
    p = ms.profile(start_profile=False)
    p.max_events = 5
    with pytest.warns(RuntimeWarning, match="5 events are stored, and later ones"), p:
        for _ in range(10):
            run(x, x)
    with ms.profile() as all_of_it:
        for _ in range(10):
            run(x, x)
    assert len(p.records()) == 5
    assert p.dropped == len(all_of_it.records()) - 5
    assert "more events were not stored" in p.summary()


@pytest.mark.parametrize(
    "given, text",
    [
        (dict(with_stack=1), "with_stack=1; wanted True or False"),
        (dict(activities=[3]), "wanted a list of ProfilerActivity"),
        (dict(schedule=3), "got int for schedule; wanted a function"),
        (dict(on_trace_ready="f"), "got str for on_trace_ready"),
        (dict(experimental_config=1), "wanted an _ExperimentalConfig"),
    ],
)
def test_wrong_arguments(given: dict[str, object], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        ms.profile(**given)


@pytest.mark.parametrize("given", [dict(by="kind"), dict(sort="size"), dict(rows=-1),
                                   dict(rows=2.5)])  # fmt: skip
def test_wrong_tables(given: dict[str, Any]) -> None:
    with ms.profile() as p:
        operand("CPU") * 2
    with pytest.raises(ArgumentValueError, match=r"table: got .*; wanted (one of|0, a larger)"):
        p.table(**given)


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["op", "line", "kernel"])
@pytest.mark.parametrize("sort", ["time", "calls", "mean", "longest", "bytes", "flops", "name"])
def test_tables(by: str, sort: str) -> None:
    x = operand("CPU", (64, 64))
    x * 2  # copies both operands to the device
    with ms.profile() as p:
        for _ in range(3):
            x * 2
        ms.ops.matmul(x, x)
    rows = p.rows(by, sort)
    assert len(names(p)) == 4
    assert sum(r.calls for r in rows) == sum(r.kind != "cache" for r in p.records())
    assert sum(r.flops for r in rows) == 3 * 64 * 64 + 2 * 64**3
    text = p.table(by=by, sort=sort, rows=1)
    assert f"... and {len(rows) - 1} more rows" in text
    assert rows[0].name[:40] in text
    if sort == "flops":
        assert rows[0].flops == 2 * 64**3
    if sort == "calls":
        assert rows[0].calls >= 3


def test_trace_format(tmp_path: pathlib.Path) -> None:
    run, x = at("O1"), operand("CPU")
    with ms.profile(profile_memory=True, with_stack=True, record_shapes=True) as p:
        number = ms.profiler.mstx.range_start("part")
        run(x, x)
        p.step()
        body(x, x)
        ms.profiler.mstx.range_end(number)
    p.add_metadata("who", "me")
    p.add_metadata_json("what", '{"a": 1}')
    p.export_chrome_trace(tmp_path / "trace.json")
    found = json.loads((tmp_path / "trace.json").read_text())
    assert found["otherData"]["who"] == "me"
    events = found["traceEvents"]
    kinds = {e["ph"] for e in events}
    assert kinds == {"M", "X", "C"}
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for e in events:
        assert isinstance(e["name"], str) and isinstance(e["pid"], int)
        assert isinstance(e["ts"], (int, float)) and isinstance(e["tid"], int)
        if e["ph"] == "X":
            assert e["dur"] >= 0 and e["ts"] >= 0
            tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    for spans in tracks.values():  # a viewer draws spans of a track only if they nest
        for a, b in spans:
            assert not any(a < c < b < d for c, d in spans)
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert len(kernels) == len(names(p)) and all("types" in e["args"] for e in kernels)
    assert any(len(e["args"].get("stack", ())) > 1 for e in kernels)


def test_trace_handler(tmp_path: pathlib.Path) -> None:
    ready = tensorboard_trace_handler(str(tmp_path / "deep" / "er"), "w")
    plan = schedule(wait=0, active=1, repeat=2)
    x = operand("CPU")
    p = ms.profile(schedule=plan, on_trace_ready=ready)
    for _ in range(3):
        x * 2
        p.step()
    p.stop()
    files = sorted(f.name for f in (tmp_path / "deep" / "er").iterdir())
    assert len(files) == 4 and all(f.startswith("w_") for f in files)
    with pytest.raises(ArgumentError, match="got int for dir_name"):
        tensorboard_trace_handler(3)  # type: ignore[arg-type]


def test_the_older_profiler(tmp_path: pathlib.Path) -> None:
    profiler = ms.Profiler(
        output_path=str(tmp_path), profiler_level=ms.profiler.ProfilerLevel.Level0
    )
    operand("CPU") * 2
    profiler.analyse()
    assert len(list(tmp_path.iterdir())) == 2
    assert json.loads(profiler.op_analyse("Mul"))["mul"]["calls"] == 1
    with pytest.raises(ArgumentError, match="unknown options colour"):
        ms.Profiler(colour="red")


ROOFLINE = [
    (lambda x: ms.ops.matmul(x, x), 2 * 32**3, 3 * 4 * 32**2),
    (lambda x: x * x, 32**2, 3 * 4 * 32**2),
    (lambda x: x.sum(), 32**2, 4 * 32**2 + 4),
    (lambda x: x.transpose(1, 0), 0, 2 * 4 * 32**2),
    (lambda x: x.astype(ms.float16), 0, 6 * 32**2),
]


@pytest.mark.parametrize("device", ["CPU", "Reference"])
@pytest.mark.parametrize("call, flops, nbytes", ROOFLINE)
def test_operations_and_bytes(
    device: str, call: Callable[[ms.Tensor], ms.Tensor], flops: float, nbytes: int
) -> None:
    x = operand(usable(device), (32, 32))
    call(x)
    with ms.profile() as p:
        call(x)
    kernels = [r.work for r in p.records() if r.kind == "kernel"]
    assert sum(map(operations, kernels)) == flops
    assert kernels[0].nbytes == nbytes


def test_roofline_compares_with_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Limits(bandwidth=1e9, flops=1e12)
    monkeypatch.setattr("duograph.profiler.profiles.device_limits", lambda device: known)
    x = operand("CPU", (64, 64))
    with ms.profile() as p:
        x * 2
    row = next(r for r in p.rows(roofline=True) if r.name == "mul")
    assert row.bound == "memory"
    assert row.share == pytest.approx(row.nbytes / 1e9 / row.seconds)
    text = p.table(roofline=True)
    assert "% of it" in text and "memory" in text


def test_limits_that_a_kernel_exceeds_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first measurement, on a machine busy with other work, may be too low."""
    stored: list[bytes] = []
    measured = iter([Limits(2e12, 4e5), Limits(1e12, 1e15)])
    monkeypatch.setattr(limits, "_measured", lambda device: next(measured))
    monkeypatch.setattr(limits, "read", lambda key, suffix: stored[-1] if stored else None)
    monkeypatch.setattr(limits, "store", lambda key, suffix, data: stored.append(data))
    monkeypatch.setattr(limits, "_known", {})
    monkeypatch.setattr(limits, "_measured_again", set())
    x = operand("CPU", (64, 64))
    with ms.profile() as p:
        x @ x
    (row,) = [r for r in p.rows(roofline=True) if r.name == "matmul"]
    assert row.share is not None and row.share < 1
    assert len(stored) == 2 and limits.device_limits("CPU:0") == Limits(2e12, 1e15)
    limits._known.clear()  # as in a new process
    assert limits.device_limits("CPU:0") == Limits(2e12, 1e15)
    p.rows(roofline=True)
    assert len(stored) == 2


def test_own_times_leave_out_what_is_inside() -> None:
    run, x = at("O1"), operand("CPU", (7, 3))
    with ms.profile() as p:
        run(x, x)
    spans = [(r.work.name, own, r.duration) for r, own in own_times(p.records())]
    whole = next(s for s in spans if s[0] == "compile body")
    assert whole[1] < whole[2]
    assert sum(own for _, own, _ in spans) <= p.seconds * 1e9


def test_the_plain_form_comes_back() -> None:
    """After a profile, calls are the very functions of before."""
    x = operand("CPU")
    x * x
    before = dict(OPS["mul"].table)
    with ms.profile():
        x * x
        assert OPS["mul"].table != before
    assert OPS["mul"].table == before


def test_nothing_is_warned_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ms.profile() as p:
            operand("CPU") * 2
            p.step()
        p.table()
