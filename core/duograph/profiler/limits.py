"""Measurement of the memory bandwidth and the arithmetic speed of a device, once per machine.

The roofline of a profile compares kernels with these limits. They are stored in the disk cache
(`backend.disk_cache`) under a key of the device's description and the number of processors.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..backend import registry
from ..backend.checked_calls import memory_of
from ..backend.disk_cache import key_of, read, store
from ..backend.protocol import SEAM_VERSION
from ..errors import DuographError
from ..ops import matmul
from ..placement import device_of
from ..status_line import status_line
from ..tensor import Tensor

__all__ = ["Limits", "device_limits", "measure_again"]

# Bytes of each array of the bandwidth test: more than a cache holds. Rows of the square matrices.
_BYTES = 64 << 20
_ROWS = 1024
_SECONDS = 0.3
_SUFFIX = ".limits"
_known: dict[str, Limits] = {}
_measured_again: set[str] = set()


class Limits(NamedTuple):
    """The measured limits of a device.

    Attributes:
        bandwidth: bytes per second that an addition of large arrays reads and writes.
        flops: operations per second of a large float32 matmul.
    """

    bandwidth: float
    flops: float


def device_limits(device: str) -> Limits:
    """Return the limits of a device, measured in about a second at first use on this machine.

    Args:
        device: name of the device, such as ``"CPU:0"``.

    Raises:
        RuntimeError: no such device.

    Examples:
        >>> from duograph.profiler.limits import device_limits
        >>> device_limits("CPU:0").bandwidth > 1e8
        True
    """
    found = _known.get(device)
    if found is None:
        key = _key(device)
        found = _stored(key)
        if found is None:
            found = _measured(device)
            store(key, _SUFFIX, json.dumps(found._asdict()).encode())
        _known[device] = found
    return found


def measure_again(device: str) -> Limits:
    """Return the limits of a device that a kernel has exceeded, measured again and stored.

    The first measurement was too low, such as on a machine that was busy with other work. Of each
    limit, the larger of both measurements counts. A process measures a device again once at most.
    """
    before = device_limits(device)
    if device in _measured_again:
        return before
    _measured_again.add(device)
    found = Limits(*map(max, before, _measured(device)))
    store(_key(device), _SUFFIX, json.dumps(found._asdict()).encode())
    _known[device] = found
    return found


def _key(device: str) -> str:
    chosen = device_of(device)
    info = next(d for d in registry.backend(chosen.name).devices() if d.index == chosen.index)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    parts = (chosen.name, info.name, info.description, info.memory_bytes, processors)
    return key_of("limits", *SEAM_VERSION, *parts)


def _stored(key: str) -> Limits | None:
    data = read(key, _SUFFIX)
    if data is None:
        return None
    try:
        found = json.loads(data)
        limits = Limits(float(found["bandwidth"]), float(found["flops"]))
    except (ValueError, KeyError, TypeError):  # written by another version: measured again
        return None
    return limits if min(limits) > 0 else None


def _measured(device: str) -> Limits:
    with status_line(f"measuring the limits of {device}"):
        return _measure(device)


def _measure(device: str) -> Limits:
    size = _BYTES // 4
    where = device_of(device)
    memory = memory_of(registry.backend(where.name), where.index)
    free = memory.get("limit", 0) - memory.get("in_use", 0)
    while size > 1 << 16 and free and 4 * 4 * size > free:
        size //= 2
    x = Tensor(np.ones(size, np.float32), device=device)
    y = Tensor(np.ones(size, np.float32), device=device)
    seconds = _best(lambda: x + y, device)
    rows = _ROWS
    try:
        a = Tensor(np.ones((rows, rows), np.float32), device=device)
        speed = 2.0 * rows**3 / _best(lambda: matmul(a, a), device)
    except DuographError:  # too little memory
        rows = 128
        a = Tensor(np.ones((rows, rows), np.float32), device=device)
        speed = 2.0 * rows**3 / _best(lambda: matmul(a, a), device)
    return Limits(3 * 4 * size / seconds, speed)


def _best(run: Callable[[], object], device: str) -> float:
    """Return the time in seconds of the fastest of several calls of `run`.

    A call's time includes the wait until the device named `device` has finished its work.
    """
    chosen = device_of(device)
    wait = registry.backend(chosen.name).synchronize
    run()
    wait(chosen.index)
    best, stop = float("inf"), time.perf_counter() + _SECONDS
    for _ in range(1000):
        begin = time.perf_counter()
        kept = run()
        wait(chosen.index)
        end = time.perf_counter()
        del kept
        best = min(best, end - begin)
        if end > stop:
            break
    return best
