"""Settings of datasets: the seed, parallel workers, prefetching, damaged rows and debugging.

User code calls the functions; the steps of pipelines read `settings`. A setting that has no effect
in duograph is recorded, and warns once. The module must not import other modules of the package
`dataset`, because they import it.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import multiprocessing
import os
import pathlib
import random
import threading
from collections.abc import Callable, Sequence

import numpy as np

from .. import random_state
from ..errors import ArgumentError, ArgumentValueError, DuographError
from ..option_checks import warn_moot

__all__ = [
    "ErrorSamplesMode", "load", "random_numbers",
    "get_auto_num_workers", "set_auto_num_workers", "get_auto_offload", "set_auto_offload",
    "get_autotune_interval", "set_autotune_interval", "get_callback_timeout",
    "set_callback_timeout", "get_debug_mode", "set_debug_mode", "get_dynamic_shape",
    "set_dynamic_shape", "get_enable_autotune", "set_enable_autotune", "get_enable_shared_mem",
    "set_enable_shared_mem", "get_enable_watchdog", "set_enable_watchdog",
    "get_error_samples_mode", "set_error_samples_mode", "get_fast_recovery", "set_fast_recovery",
    "get_iterator_mode", "set_iterator_mode", "get_monitor_sampling_interval",
    "set_monitor_sampling_interval", "get_multiprocessing_start_method",
    "set_multiprocessing_start_method", "get_multiprocessing_timeout_interval",
    "set_multiprocessing_timeout_interval", "get_num_parallel_workers",
    "set_num_parallel_workers", "get_numa_enable", "set_numa_enable", "get_prefetch_size",
    "set_prefetch_size", "get_seed", "set_seed", "set_sending_batches", "get_video_backend",
    "set_video_backend",
]  # fmt: skip


class ErrorSamplesMode(enum.IntEnum):
    """What `map` does with a row whose operation raises an exception (`mindspore.dataset.config`).

    RETURN raises the error, REPLACE repeats the last good row in its place, SKIP omits the row.
    """

    RETURN = 0
    REPLACE = 1
    SKIP = 2


@dataclasses.dataclass
class Settings:
    """The dataset settings of this process.

    `passes` counts the passes over datasets that used random numbers since the seed was set.
    """

    seed: int | None = None
    workers: int = 1
    prefetch: int = 16
    passes: int = 0
    errors: ErrorSamplesMode = ErrorSamplesMode.RETURN
    copies: bool = False
    convert: bool = False
    debug: bool = False
    hooks: tuple[Callable[..., object], ...] = ()
    start_method: str = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    callback_timeout: int = 60
    watchdog: bool = True
    timeout: int = 300
    auto_workers: bool = False
    auto_offload: bool = False
    autotune: bool = False
    autotune_interval: int = 0
    dynamic_shape: bool = False
    shared_memory: bool = True
    fast_recovery: bool = True
    monitor_interval: int = 1000
    numa: bool = False


settings = Settings()


# ---- random numbers -----------------------------------------------------------------------------


def _integer(owner: str, value: object, low: int, high: int = 2**31 - 1) -> int:
    """Return `value` if it is an int in [low, high], else raise an error that names `owner`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentError(f"dataset.config.{owner}: got {value!r}; wanted an int")
    if not low <= value <= high:
        raise ArgumentValueError(f"dataset.config.{owner}: got {value}; wanted {low} to {high}")
    return value


def _flag(owner: str, value: object) -> bool:
    """Return `value` if it is a bool, else raise an error that names `owner`."""
    if not isinstance(value, bool):
        raise ArgumentError(f"dataset.config.{owner}: got {value!r}; wanted True or False")
    return value


def set_seed(seed: int) -> None:
    """Set the seed of shuffling and random transforms (`mindspore.dataset.config.set_seed`).

    Also seeds the global generators of Python and NumPy, which the user's functions may use.

    Raises:
        TypeError: `seed` is not a non-negative int.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ArgumentError(f"dataset.config.set_seed: got {seed!r}; wanted an int of 0 or more")
    settings.seed, settings.passes = seed, 0
    random.seed(seed)
    np.random.seed(seed % 2**32)


def get_seed() -> int:
    """Return the seed of datasets: that of `set_seed`, else `mindspore.set_seed`'s, else 5489."""
    if settings.seed is not None:
        return settings.seed
    found = _global_seed()
    return 5489 if found is None else found


def _global_seed() -> int | None:
    found = random_state.get_seed()
    return None if found is None else int(found)


def _on_global_seed(_: int) -> None:
    """Clear the seed of datasets when `mindspore.set_seed` is called, so that its seed is used."""
    settings.seed, settings.passes = None, 0


random_state.on_seed.append(_on_global_seed)


def new_key() -> int:
    """Return a new key, from which the random numbers of the next pass are derived.

    It depends on the seed and on the number of keys created since the seed was set. Without any
    seed it is random, from the operating system.
    """
    settings.passes += 1
    if settings.seed is None and _global_seed() is None:
        return int.from_bytes(os.urandom(16), "little")
    return get_seed() % 2**64 + (settings.passes << 64)


def key_of_shards(number: int) -> int:
    """Return the key of pass `number` of a dataset in shards, which all ranks must draw alike.

    It depends on the seed alone: without one, and after other passes on one rank, it is the same.
    """
    return get_seed() % 2**64 + (number << 64)


def generator(key: int, row: int = 0) -> np.random.Generator:
    """Return the random generator of row number `row` in the pass with the given key."""
    words = [key % 2**64, key >> 64]
    return np.random.Generator(np.random.Philox(key=words, counter=[0, 0, 0, row]))


class _Row(threading.local):
    """The row that the current thread computes: key of the pass and number of the row.

    `random` is the row's random generator, which is created at its first use.
    """

    key: int | None = None
    number: int = 0
    random: np.random.Generator | None = None


_row = _Row()


class row_random:
    """Context manager inside which `random_numbers` returns the random generator of a given row.

    The row is given by the `key` of the pass and its `number` in the pass. The random numbers do
    not depend on the thread or process that computes the row.
    """

    def __init__(self, key: int, number: int) -> None:
        self._new: tuple[int, int] = (key, number)

    def __enter__(self) -> None:
        self._old = (_row.key, _row.number, _row.random)
        _row.key, _row.number, _row.random = *self._new, None

    def __exit__(self, *_: object) -> None:
        _row.key, _row.number, _row.random = self._old


def random_numbers() -> np.random.Generator:
    """Return the random generator of the row that the current thread is computing.

    If the thread is computing no row, each call returns a new generator. It depends on the seed and
    on the number of keys created since the seed was set; without any seed it is seeded at random.
    """
    if _row.key is None:
        return generator(new_key())
    if _row.random is None:
        _row.random = generator(_row.key, _row.number)
    return _row.random


# ---- workers ------------------------------------------------------------------------------------


def set_num_parallel_workers(num: int) -> None:
    """Set the default number of worker threads of a step (initially 1).

    Raises:
        ValueError: the number is below 1.
    """
    settings.workers = _integer("set_num_parallel_workers", num, 1)


def get_num_parallel_workers() -> int:
    """Return the default number of workers of a step.

    Examples:
        >>> from duograph import dataset
        >>> dataset.config.get_num_parallel_workers()
        1
    """
    return settings.workers


def set_prefetch_size(size: int) -> None:
    """Set how many rows a step with several workers computes ahead (initially 16)."""
    settings.prefetch = _integer("set_prefetch_size", size, 1)


def get_prefetch_size() -> int:
    """Return how many rows a step with several workers computes ahead."""
    return settings.prefetch


def set_auto_num_workers(enable: bool) -> None:
    """Set whether steps use one worker per processor by default."""
    settings.auto_workers = _flag("set_auto_num_workers", enable)


def get_auto_num_workers() -> bool:
    """Return whether steps use one worker per processor by default."""
    return settings.auto_workers


def workers(asked: int | None) -> int:
    """Return the number of workers of a step, from its argument `num_parallel_workers`.

    `asked` is that argument; None means the default that the settings define. In debug mode the
    result is always 1, and `asked` is not checked.

    Raises:
        ArgumentError: `asked` is not an int.
        ArgumentValueError: `asked` is below 1.
    """
    if settings.debug:
        return 1
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int):
            raise ArgumentError(f"num_parallel_workers: got {asked!r}; wanted an int")
        if asked < 1:
            raise ArgumentValueError(f"num_parallel_workers: got {asked}; wanted 1 or more")
        return asked
    return (os.cpu_count() or 1) if settings.auto_workers else settings.workers


def set_multiprocessing_start_method(start_method: str = "fork") -> None:
    """Set how worker processes start: ``"fork"`` or ``"spawn"``.

    Raises:
        ValueError: the method is unknown, or not available on this system.
    """
    known = [m for m in multiprocessing.get_all_start_methods() if m in ("fork", "spawn")]
    if start_method not in known:
        raise ArgumentValueError(
            f"dataset.config.set_multiprocessing_start_method: got {start_method!r}; wanted one of "
            f"{known}"
        )
    settings.start_method = start_method


def get_multiprocessing_start_method() -> str:
    """Return how worker processes start."""
    return settings.start_method


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Set after how many seconds without a row a worker process causes a warning, at first 300."""
    settings.timeout = _integer("set_multiprocessing_timeout_interval", interval, 1)


def get_multiprocessing_timeout_interval() -> int:
    """Return after how many seconds without a row a worker process causes a warning."""
    return settings.timeout


def set_enable_watchdog(enable: bool) -> None:
    """Set whether a worker process that computes a row for too long causes a warning."""
    settings.watchdog = _flag("set_enable_watchdog", enable)


def get_enable_watchdog() -> bool:
    """Return whether a worker process that computes a row for too long causes a warning."""
    return settings.watchdog


# ---- rows ---------------------------------------------------------------------------------------


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """Set what `map` does with a row whose operation raises an exception.

    Raises:
        TypeError: the mode is not an `ErrorSamplesMode`.
    """
    if not isinstance(error_samples_mode, ErrorSamplesMode):
        raise ArgumentError(
            f"dataset.config.set_error_samples_mode: got {error_samples_mode!r}; wanted an "
            "ErrorSamplesMode"
        )
    settings.errors = error_samples_mode


def get_error_samples_mode() -> ErrorSamplesMode:
    """Return what `map` does with a row whose operation raises an exception."""
    return settings.errors


def set_iterator_mode(do_copy: bool = False, parallel_convert: bool = False) -> None:
    """Set whether iterators copy the arrays that they return; `parallel_convert` only warns once.

    Raises:
        TypeError: an argument is not a bool.
    """
    settings.copies = _flag("set_iterator_mode", do_copy)
    settings.convert = _flag("set_iterator_mode", parallel_convert)
    if parallel_convert:
        warn_moot("dataset.config.set_iterator_mode")


def get_iterator_mode() -> dict[str, bool]:
    """Return the arguments of the last `set_iterator_mode`."""
    return {"do_copy": settings.copies, "parallel_convert": settings.convert}


def set_debug_mode(
    debug_mode_flag: bool, debug_hook_list: Sequence[Callable[..., object]] | None = None
) -> None:
    """Set whether steps run in the calling thread and hooks are called around each operation.

    Args:
        debug_mode_flag: whether to debug pipelines.
        debug_hook_list: functions that `map` calls with its columns before its first operation and
            after each operation; their results are passed on to the next operation.

    Raises:
        TypeError: the flag is not a bool, or a hook is not a function.
    """
    _flag("set_debug_mode", debug_mode_flag)
    hooks = tuple(debug_hook_list or ())
    for hook in hooks:
        if not callable(hook):
            raise ArgumentError(
                f"dataset.config.set_debug_mode: got {type(hook).__name__} in debug_hook_list; "
                "wanted functions"
            )
    settings.debug, settings.hooks = debug_mode_flag, hooks if debug_mode_flag else ()


def get_debug_mode() -> bool:
    """Return whether debugging is on: every step runs in the calling thread."""
    return settings.debug


def set_callback_timeout(timeout: int) -> None:
    """Set for how many seconds `sync_wait` waits for an update (initially 60)."""
    settings.callback_timeout = _integer("set_callback_timeout", timeout, 1)


def get_callback_timeout() -> int:
    """Return for how many seconds `sync_wait` waits for an update."""
    return settings.callback_timeout


# ---- settings that are only recorded ------------------------------------------------------------


def set_auto_offload(offload: bool) -> None:
    """Record a flag without effect, and warn once: transforms always run on the CPU."""
    settings.auto_offload = _flag("set_auto_offload", offload)
    if offload:
        warn_moot("dataset.config.set_auto_offload")


def get_auto_offload() -> bool:
    """Return the flag recorded by `set_auto_offload`."""
    return settings.auto_offload


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Record a flag without effect, and warn once: the number of workers is never tuned.

    Raises:
        ValueError: `filepath_prefix` is given; there is no result that could be written.
    """
    settings.autotune = _flag("set_enable_autotune", enable)
    if filepath_prefix is not None:
        raise ArgumentValueError(
            f"dataset.config.set_enable_autotune: got filepath_prefix={filepath_prefix!r}; there "
            "is no tuning whose result could be written"
        )
    if enable:
        warn_moot("dataset.config.set_enable_autotune")


def get_enable_autotune() -> bool:
    """Return the flag recorded by `set_enable_autotune`."""
    return settings.autotune


def set_autotune_interval(interval: int) -> None:
    """Record an interval without effect, and warn once: the number of workers is never tuned."""
    settings.autotune_interval = _integer("set_autotune_interval", interval, 0)
    warn_moot("dataset.config.set_autotune_interval")


def get_autotune_interval() -> int:
    """Return the interval recorded by `set_autotune_interval`."""
    return settings.autotune_interval


def set_dynamic_shape(is_dynamic: bool) -> None:
    """Record a flag without effect, and warn once: rows may always differ in shape."""
    settings.dynamic_shape = _flag("set_dynamic_shape", is_dynamic)
    if is_dynamic:
        warn_moot("dataset.config.set_dynamic_shape")


def get_dynamic_shape() -> bool:
    """Return the flag recorded by `set_dynamic_shape`."""
    return settings.dynamic_shape


def set_enable_shared_mem(enable: bool) -> None:
    """Record a flag without effect, and warn once: worker processes send rows through pipes."""
    settings.shared_memory = _flag("set_enable_shared_mem", enable)
    if enable:
        warn_moot("dataset.config.set_enable_shared_mem")


def get_enable_shared_mem() -> bool:
    """Return the flag recorded by `set_enable_shared_mem`."""
    return settings.shared_memory


def set_fast_recovery(fast_recovery: bool) -> None:
    """Record a flag without effect, and warn once.

    In MindSpore, the flag allows a pipeline that resumes at a later step to skip rows without
    applying its operations to them; duograph always skips rows in this way.
    """
    settings.fast_recovery = _flag("set_fast_recovery", fast_recovery)
    warn_moot("dataset.config.set_fast_recovery")


def get_fast_recovery() -> bool:
    """Return the flag recorded by `set_fast_recovery`."""
    return settings.fast_recovery


def set_monitor_sampling_interval(interval: int) -> None:
    """Record an interval without effect, and warn once: pipelines have no monitor."""
    settings.monitor_interval = _integer("set_monitor_sampling_interval", interval, 1)
    warn_moot("dataset.config.set_monitor_sampling_interval")


def get_monitor_sampling_interval() -> int:
    """Return the interval recorded by `set_monitor_sampling_interval`."""
    return settings.monitor_interval


def set_numa_enable(numa_enable: bool) -> None:
    """Record a flag without effect, and warn once: threads are not bound to memory nodes."""
    settings.numa = _flag("set_numa_enable", numa_enable)
    if numa_enable:
        warn_moot("dataset.config.set_numa_enable")


def get_numa_enable() -> bool:
    """Return the flag recorded by `set_numa_enable`."""
    return settings.numa


def set_sending_batches(batch_num: int) -> None:
    """Check `batch_num` and warn once that it has no effect: batches are fed one by one."""
    _integer("set_sending_batches", batch_num, 0)
    warn_moot("dataset.config.set_sending_batches")


_VIDEO_BACKENDS = ("CPU",)


def set_video_backend(backend: str) -> None:
    """Check that `backend` is ``"CPU"``, the only device for decoding videos; do nothing else.

    Raises:
        ValueError: `backend` is not ``"CPU"``.
    """
    if backend not in _VIDEO_BACKENDS:
        raise ArgumentValueError(
            f"dataset.config.set_video_backend: got {backend!r}; wanted 'CPU', which decodes videos"
        )


def get_video_backend() -> str:
    """Return the device that decodes videos, always ``"CPU"``."""
    return _VIDEO_BACKENDS[0]


_FILE: dict[str, Callable[..., None]] = {
    "num_parallel_workers": set_num_parallel_workers,
    "prefetch_size": set_prefetch_size,
    "seed": set_seed,
    "monitor_sampling_interval": set_monitor_sampling_interval,
    "fast_recovery": set_fast_recovery,
}


def load(file: str | os.PathLike[str]) -> None:
    """Read settings from a JSON file, under the names of `mindspore.dataset.config.load`.

    Raises:
        ValueError: the file does not exist, holds no JSON object, or has an unknown setting.

    Examples:
        >>> import pathlib, tempfile
        >>> from duograph import dataset
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "settings.json"
        >>> _ = path.write_text('{"prefetch_size": 16}')
        >>> dataset.config.load(str(path))
    """
    try:
        found = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentValueError(f"dataset.config.load: cannot read {file!s} ({error})") from None
    if not isinstance(found, dict) or not set(found) <= set(_FILE):
        raise ArgumentValueError(
            f"dataset.config.load: {file!s} holds {found!r}; wanted an object of {sorted(_FILE)}"
        )
    for name, value in found.items():
        try:
            _FILE[name](value)
        except DuographError as error:
            raise ArgumentValueError(f"dataset.config.load: {file!s}: {error}") from None
