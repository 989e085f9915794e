"""`runtime` and `hal`: streams in order, events, memory statistics, devices; refused names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import hal, nn, ops, runtime
from duograph.communication import comm_func
from duograph.compat.refused_names import REFUSED, is_refused


def test_streams_run_in_order() -> None:
    stream, x = runtime.Stream(), ms.Tensor(np.ones((64, 64), np.float32))
    before = runtime.current_stream()
    with runtime.StreamCtx(stream):
        assert runtime.current_stream() is stream
        y = x @ x
        done = stream.record_event()
    assert runtime.current_stream() == before == runtime.default_stream()
    before.wait_event(done)
    before.wait_stream(stream)
    assert (y + 1).asnumpy()[0, 0] == 65
    assert done.query()
    assert stream.query()
    assert (stream.device_name, stream.device_id) == ("CPU", 0)
    runtime.set_cur_stream(stream)
    try:
        assert ms.current_stream() == stream != runtime.Stream()
        with runtime.StreamCtx(None):
            assert runtime.current_stream() == stream
    finally:
        runtime.set_cur_stream(runtime.default_stream())


def test_events_measure_time() -> None:
    begin, end = runtime.Event(enable_timing=True), runtime.Event(enable_timing=True)
    begin.record()
    x = ms.Tensor(np.ones((256, 256), np.float32)) @ ops.ones((256, 256))
    end.record()
    end.synchronize()
    assert 0 < begin.elapsed_time(end) < 60_000
    assert x.asnumpy()[0, 0] == 256


def test_memory_statistics_agree() -> None:
    x = ops.ones((1000, 1000)) + 1
    stats = runtime.memory_stats()
    assert stats["total_allocated_memory"] == runtime.memory_allocated() >= 4_000_000
    assert stats["max_allocated_memory"] == runtime.max_memory_allocated()
    assert stats["total_reserved_memory"] == runtime.memory_reserved()
    assert hal.memory_stats("CPU") == runtime.memory_stats()
    assert runtime.max_memory_reserved() >= runtime.max_memory_allocated()
    assert "total allocated memory" in ms.memory_summary()
    assert x.shape == (1000, 1000)


def test_launch_blocking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ms.context.settings, "pynative_synchronize", False)
    runtime.launch_blocking()
    assert ms.get_context("pynative_synchronize") is True


def test_devices() -> None:
    assert hal.device_count("CPU") == len(hal._infos(None)) == 1
    assert hal.is_available("CPU")
    assert not hal.is_available("Ascend")
    assert hal.is_initialized("CPU")
    assert hal.get_device_name(0, "CPU") == hal.get_device_properties(0).name
    assert hal.get_device_capability(0) is hal.get_arch_list() is None


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "priority": (lambda: runtime.Stream(priority=1), ValueError, "priority=1; wanted 0"),
    "option": (lambda: runtime.Stream(colour=1), TypeError, "colour"),
    "no stream": (lambda: runtime.set_cur_stream(3), TypeError, "int; wanted a Stream"),
    "no event": (lambda: runtime.Stream().wait_event(3), TypeError, "wanted an Event"),
    "timing": (lambda: runtime.Event(enable_timing=1), TypeError, "wanted True or False"),
    "no time": (
        lambda: runtime.Event().elapsed_time(runtime.Event()),
        RuntimeError,
        "without a time",
    ),
    "reset": (runtime.reset_peak_memory_stats, NotImplementedError, "cannot be reset"),
    "device": (lambda: hal.device_count("Ascend"), RuntimeError, "no plugin brings it"),
    "index": (lambda: hal.get_device_name(9), IndexError, "wanted 0 to 0"),
    "group": (lambda: comm_func.all_reduce(ms.Tensor([1.0]), group="none"), ValueError, "'none'"),
    "reduction": (lambda: comm_func.all_reduce(ms.Tensor([1.0]), "half"), TypeError, "half"),
    "rank": (
        lambda: comm_func.broadcast(ms.Tensor([1.0]), 1),
        ValueError,
        "src=1; wanted 0, the ranks",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        call()


X = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "call",
    [
        lambda x: comm_func.all_reduce(x)[0],
        lambda x: comm_func.all_gather_into_tensor(x)[0],
        lambda x: comm_func.reduce_scatter_tensor(x, "max")[0],
        lambda x: comm_func.broadcast(x),
        lambda x: comm_func.reduce(x, 0),
        lambda x: comm_func.gather_into_tensor(x),
        lambda x: comm_func.scatter_tensor(x),
    ],
)
def test_one_process_is_a_group_of_one(call: Any, compiled: bool) -> None:
    run = ms.jit(call) if compiled else call
    assert run(X).asnumpy().tolist() == X.asnumpy().tolist()
    gradient = ms.grad(lambda x: (run(x) * x).sum())(X)
    assert gradient.asnumpy().tolist() == (2 * X).asnumpy().tolist()
    assert comm_func.all_reduce(X)[1] is None
    assert comm_func.all_reduce(X, async_op=True)[1].wait() is None


# ---- refused names -----------------------------------------------------------------------------

NAMES = [
    (path, name, reason)
    for path, rows in REFUSED.items()
    for reason, names in rows.items()
    for name in names.split()
]


def test_refused_names_say_why() -> None:
    """A row of a name that works, or of one that is listed twice, is superfluous."""
    assert len({(path, name) for path, name, _ in NAMES}) == len(NAMES)
    for path, name, reason in NAMES:
        owner: Any = ms
        for part in path.split(".") if path else []:
            owner = getattr(owner, part)
        found = getattr(owner, name)
        assert is_refused(found), f"{path}.{name} works: delete its row"
        with pytest.raises(NotImplementedError, match=f"^{name} {reason[:20]}"):
            found(1, key=2)
    with pytest.raises(NotImplementedError, match="cannot be a base class"):
        exec("class Mine(Base): ...", {"Base": ms.profiler.EnvProfiler})
    with pytest.raises(NotImplementedError, match="switches MindSpore's profiler"):
        ms.profiler.EnvProfiler.start()
    assert repr(ms.profiler.EnvProfiler).startswith("<refused: EnvProfiler switches")


# ---- private names -----------------------------------------------------------------------------


def test_private_names(tmp_path: Path) -> None:
    from duograph._checkparam import INC_BOTH, check_int_range
    from duograph.common.api import _cell_graph_executor, _pynative_executor
    from duograph.common.initializer import _calculate_fan_in_and_fan_out
    from duograph.nn.optim.optimizer import opt_init_args_register
    from duograph.nn.utils import no_init_parameters
    from duograph.nn.wrap.cell_wrapper import _VirtualDatasetCell
    from duograph.ops._primitive_cache import _get_cache_prim
    from duograph.parallel._utils import (
        _get_device_num,
        _get_gradients_mean,
        _get_parallel_mode,
        _is_sharding_propagation,
    )
    from duograph.train._utils import _make_directory

    assert (_get_device_num(), _get_parallel_mode()) == (1, "stand_alone")
    assert _get_gradients_mean() is _is_sharding_propagation() is False
    assert _calculate_fan_in_and_fan_out((3, 4, 5, 5)) == (100, 75)
    assert _get_cache_prim(ops.Add)() is _get_cache_prim(ops.Add)() is not ops.Add()
    assert _get_cache_prim(ops.ReduceSum)(True)(X, 0).asnumpy().tolist() == [[4.0, 6.0]]
    assert _get_cache_prim(ops.ReduceSum)(True) is not _get_cache_prim(ops.ReduceSum)(False)
    with no_init_parameters():
        net = nn.Dense(2, 1)
    assert _VirtualDatasetCell(net)(X).shape == (2, 1)
    assert _pynative_executor.sync() is None
    with pytest.raises(NotImplementedError, match="stop_gradient"):
        _pynative_executor.set_enable_grad(False)
    assert _cell_graph_executor.compile(net, X)[1] is True
    assert _cell_graph_executor(net, X).shape == (2, 1)
    folder = _make_directory(str(tmp_path / "a" / "b"))
    assert os.path.isdir(folder)
    assert check_int_range(3, 0, 3, INC_BOTH, "r", "op") == 3

    class Mine(nn.Optimizer):
        @opt_init_args_register
        def __init__(self, params: Any, learning_rate: float = 0.1, scale: int = 2) -> None:
            super().__init__(learning_rate, params)

    made = Mine(net.trainable_params(), scale=3)
    assert (made.init_learning_rate, made.init_args) == (0.1, {"scale": 3})
    assert made.init_params["params"] == net.trainable_params()


# check, arguments -> the value is returned, or an error of that kind is raised
CHECKS: list[tuple[str, tuple[Any, ...], type[Exception] | None]] = [
    ("check_value_type", ("x", 3, [int], "op"), None),
    ("check_value_type", ("x", 3, str), TypeError),
    ("check_value_type", ("x", True, [int]), TypeError),
    ("check_value_type", ("x", True, [int, bool]), None),
    ("check_positive_int", (3,), None),
    ("check_positive_int", (0, "n", "op"), ValueError),
    ("check_positive_int", (True, "n"), TypeError),
    ("check_positive_int", (1.5, "n"), TypeError),
    ("check_non_negative_int", (-1, "n"), ValueError),
    ("check_non_negative_int", (0,), None),
    ("check_positive_float", (-0.5, "n"), ValueError),
    ("check_bool", (1, "b"), TypeError),
    ("check_bool", (True, "b"), None),
    ("check_string", ("a", ["b"], "s", "op"), ValueError),
    ("check_string", ("a", ["a", "b"]), None),
    ("check_int_range", (5, 0, 3, 10, "r"), ValueError),
    ("check_float_range", (0.5, 0, 1, 7, "r"), None),
    ("check_float_range", (1.0, 0, 1, 7, "r"), ValueError),
    ("check_is_float", (1, "f"), TypeError),
    ("check_is_int", (1.0, "f"), TypeError),
    ("check_isinstance", ("x", 1, str), ValueError),
    ("check_int", (3, 4, 6, "n"), ValueError),
    ("check_int", (4, 4, 6, "n"), None),
    ("check_equal_int", (3, 4, "n"), ValueError),
    ("check_type_name", ("t", ms.float32, [ms.float16], "op"), TypeError),
]


@pytest.mark.parametrize(("name", "arguments", "error"), CHECKS)
def test_argument_checks(
    name: str, arguments: tuple[Any, ...], error: type[Exception] | None
) -> None:
    from duograph import _checkparam

    caught = pytest.raises(error) if error else contextlib.nullcontext()
    with caught:
        found = getattr(_checkparam, name)(*arguments)
        assert found == arguments[name in ("check_value_type", "check_isinstance")]
