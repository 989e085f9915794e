"""The `duograph bench` command: a few measurements of the speed of this machine.

`cli.main` runs it; it takes some seconds. Comparisons with other frameworks are in `benchmarks/` in
the source tree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import nn, ops
from ..autodiff.transforms import value_and_grad
from ..backend import registry
from ..backend.checked_calls import wait_for
from ..compiler import jit
from ..errors import DuographError
from ..placement import device_of, thread_device
from ..status_line import counted, status_line
from ..tensor import Tensor
from .command import Commands, UsageError, as_table, command, print_json

__all__ = ["add", "measure"]


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "bench",
        _run,
        "measure this machine: small ops, a fused chain, matmul, a training step",
        "duograph bench\nduograph bench --device OpenCL:0 --json",
        json=True,
    )
    made.add_argument("--device", metavar="NAME", help="the device (default: the default device)")
    made.add_argument(
        "--seconds",
        type=float,
        default=0.4,
        metavar="S",
        help="time for each measurement (default: 0.4)",
    )


def _run(options: argparse.Namespace) -> int:
    if not 0 < options.seconds <= 3600:
        raise UsageError(f"--seconds: got {options.seconds}; wanted a number above 0, up to 3600")
    try:
        device = device_of(options.device) if options.device else registry.current_device()
        registry.backend(device.name)
    except DuographError as error:
        raise UsageError(error) from None
    with thread_device(device):
        rows = measure(options.seconds)
    if options.json:
        print_json({"device": repr(device), "results": [row._asdict() for row in rows]})
        return 0
    table = as_table(
        ("measurement", "time", "rate"),
        [(row.name, _time_text(row.seconds), f"{row.rate:.4g} {row.unit}") for row in rows],
    )
    sys.stdout.write(f"{device}\n\n{table}\n")
    return 0


class Result(NamedTuple):
    """The result of one measurement.

    Attributes:
        name: what was measured.
        seconds: the median time of a call.
        rate: amount of work per second, in `unit`.
        unit: unit of `rate`, such as "GFLOP/s".
    """

    name: str
    seconds: float
    rate: float
    unit: str


def measure(seconds: float) -> list[Result]:
    """Run all measurements on the current device, each for about `seconds`."""
    random = np.random.default_rng(0)

    def tensor(*shape: int) -> Tensor:
        return Tensor(random.standard_normal(shape).astype(np.float32))

    small, large = tensor(3), tensor(4 << 20)
    square = tensor(1024, 1024)

    def chain(x: Tensor) -> Tensor:
        return ops.tanh(x * 2.0 + 1.0) * x

    fused = jit(chain)
    net = nn.SequentialCell(
        nn.Dense(64, 256), nn.ReLU(), nn.Dense(256, 256), nn.ReLU(), nn.Dense(256, 10)
    )
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    loss_fn = nn.CrossEntropyLoss()
    step = value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
    x, y = tensor(64, 64), Tensor(random.integers(0, 10, 64).astype(np.int32))

    def train(x: Tensor, y: Tensor) -> Tensor:
        loss, gradients = step(x, y)
        optimizer(gradients)
        return loss

    compiled = jit(train)
    megabytes = large.nbytes / 1e6
    rows: list[tuple[str, Callable[[], Tensor], float, str]] = [
        ("a + b of 3 floats", lambda: small + small, 1.0, "calls/s"),
        ("chain of 4 ops on 4M floats, eager", lambda: chain(large), 2e-3 * megabytes, "GB/s"),
        ("chain of 4 ops on 4M floats, compiled", lambda: fused(large), 2e-3 * megabytes, "GB/s"),
        ("matmul 1024 x 1024 x 1024", lambda: ops.matmul(square, square), 2.147483648, "GFLOP/s"),
        ("training step of an MLP, eager", lambda: train(x, y), 1.0, "steps/s"),
        ("training step of an MLP, compiled", lambda: compiled(x, y), 1.0, "steps/s"),
    ]
    found = []
    with status_line("measuring", len(rows), "measurements") as line:
        for name, call, work, unit in counted(rows, line):
            line.doing = f"measuring {name}"
            each = _median(call, seconds)
            found.append(Result(name, each, work / each, unit))
    return found


def _median(call: Callable[[], Tensor], seconds: float) -> float:
    """Return the median time of `call` in seconds, of calls during about `seconds` seconds.

    Short calls are timed in groups; the time of a call is then that of its group divided by the
    number of calls.
    """
    for _ in range(3):
        _finish(call())
    begin = time.perf_counter()
    _finish(call())
    once = max(time.perf_counter() - begin, 1e-9)
    count = max(1, int(seconds / 15 / once))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times:
        begin = time.perf_counter()
        for _ in range(count):
            found = call()
        _finish(found)
        times.append((time.perf_counter() - begin) / count)
    return statistics.median(times)


def _finish(value: Tensor) -> None:
    """Wait until the current device has finished all its work, including that for `value`."""
    device = registry.current_device()
    wait_for(registry.backend(device.name), device.index)


def _time_text(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
