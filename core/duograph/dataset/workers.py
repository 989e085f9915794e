"""Parallel computation of rows, by threads or worker processes, in the order of the tasks.

Sources and steps call `in_order`. The results, random numbers included, must not depend on the
number of workers or on their speed. No worker outlives the iteration that started it.
"""

from __future__ import annotations

import collections
import multiprocessing
import multiprocessing.connection
import pickle
import random
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar, cast

import numpy as np

from . import config
from .places import name_step
from .rows import DatasetError

__all__ = ["in_order"]

T = TypeVar("T")
R = TypeVar("R")


def in_order(
    function: Callable[[T], R], tasks: Iterable[T], workers: int, processes: bool
) -> Iterator[R]:
    """Yield `function(task)` for each task in order, computed by a number of workers.

    Args:
        function: function to call for each task; in it, `config.random_numbers` depends on the
            number of the task.
        tasks: the tasks; the calling thread iterates over them, ahead of the results that it
            yields.
        workers: number of workers; with 1, everything runs in the calling thread.
        processes: whether the workers are processes, which get copies of the tasks, or threads.

    Raises:
        DatasetError: a worker process ended without a result.
        Exception: any exception that `function` raises.
    """
    key = config.new_key()
    run = _Run(function, key)
    numbered = enumerate(tasks)
    if workers == 1:
        return map(run, numbered)
    if processes:
        return _by_processes(run, numbered, workers, key)
    return _by_threads(run, numbered, workers)


class _Run(Generic[T, R]):
    """Callable that runs a function on a numbered task, with random numbers for that number.

    Results therefore do not depend on which worker runs a task.
    """

    def __init__(self, function: Callable[[T], R], key: int) -> None:
        self.function, self.key = function, key

    def __call__(self, numbered: tuple[int, T]) -> R:
        number, task = numbered
        with config.row_random(self.key, number):
            return self.function(task)


def _by_threads(
    run: Callable[[tuple[int, T]], R], tasks: Iterator[tuple[int, T]], workers: int
) -> Iterator[R]:
    """Run tasks in threads, some ahead of the consumer; yield the results in task order."""
    ahead = max(workers, config.settings.prefetch)
    waiting: collections.deque[Future[R]] = collections.deque()
    pool = ThreadPoolExecutor(workers, "duograph-dataset")
    try:
        for task in tasks:
            waiting.append(pool.submit(run, task))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# ---- processes ----------------------------------------------------------------------------------


class _Failure:
    """An exception of a worker process, pickled if possible, and its traceback as text."""

    def __init__(self, error: Exception) -> None:
        name_step(error)  # here, because its traceback is lost on the way
        self.text = "".join(traceback.format_exception(error)).rstrip()
        try:
            self.pickled: bytes | None = pickle.dumps(error)
            pickle.loads(self.pickled)  # the bytes were made by this process on the line above
        except Exception:  # noqa: BLE001 (whatever the user's exception class raises)
            self.pickled = None

    def raise_again(self, worker: int) -> None:
        """Raise the exception of worker number `worker` in this process, with its traceback."""
        cause = DatasetError(f"dataset worker process {worker} failed:\n{self.text}")
        if self.pickled is None:
            raise cause
        raise pickle.loads(self.pickled) from cause  # sent by our own child process


def _seed_libraries(key: int, worker: int) -> None:
    """Seed the global generators of Python and NumPy, which the user's functions may use.

    The seeds depend on the pass's `key` and the worker's number.
    """
    seeds = np.random.SeedSequence([key % 2**64, key >> 64, worker]).generate_state(2)
    random.seed(int(seeds[0]))
    np.random.seed(int(seeds[1]))


def _serve(
    connection: multiprocessing.connection.Connection,
    run: Callable[..., object],
    key: int,
    worker: int,
) -> None:
    """Main function of a worker process: run the tasks that arrive through the pipe `connection`.

    It sends each result, or a `_Failure`, back through the pipe, and returns when the pipe closes
    or delivers None.
    """
    _seed_libraries(key, worker)
    while True:
        try:
            task = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if task is None:
            return
        try:
            found = pickle.dumps(run(task), pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # noqa: BLE001 (the parent raises it again)
            found = pickle.dumps(_Failure(error))
        try:
            connection.send_bytes(found)
        except (BrokenPipeError, KeyboardInterrupt):
            return


class _Process:
    """A worker process and the pipe to it, which holds at most one task or result at a time."""

    def __init__(self, run: Callable[..., object], key: int, number: int) -> None:
        context: Any = multiprocessing.get_context(config.settings.start_method)
        self.number = number
        self._idle = True
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, run, key, number), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forks of processes with threads. Our own locks are freed in the child.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()

    def send(self, task: object) -> None:
        """Send a task to the worker, which must be idle."""
        self._idle = False
        try:
            self.pipe.send(task)
        except BrokenPipeError:
            self._ended()

    def receive(self) -> object:
        """Wait for the worker's result and return it.

        If the watchdog of `config` is on, a warning is given each time that the timeout of `config`
        passes without a result.

        Raises:
            DatasetError: the process ended without a result.
            Exception: the exception that the task raised.
        """
        began = time.monotonic()
        while config.settings.watchdog and not self.pipe.poll(config.settings.timeout):
            warnings.warn(
                f"dataset: worker process {self.process.pid} has been computing a row for "
                f"{time.monotonic() - began:.0f} s",
                RuntimeWarning,
                stacklevel=2,
            )
        try:
            found = pickle.loads(self.pipe.recv_bytes())  # sent by our own child process
        except (EOFError, ConnectionResetError):
            self._ended()
        self._idle = True
        if isinstance(found, _Failure):
            found.raise_again(self.number)
        return found

    def _ended(self) -> None:
        """Raise DatasetError about a worker process that ended unexpectedly."""
        self.process.join(5)
        raise DatasetError(
            f"dataset: worker process {self.process.pid} ended with exit code "
            f"{self.process.exitcode} and without a result; it may have run out of memory"
        ) from None

    def stop(self) -> None:
        """End the worker process: by a message if it is idle, else by terminating it.

        Closing the pipe would not end the worker, because other workers hold copies of its end.
        """
        if self._idle and self.process.is_alive():
            self.send(None)
            self.process.join(5)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()
        self.pipe.close()


def _by_processes(
    run: Callable[[tuple[int, T]], R], tasks: Iterator[tuple[int, T]], workers: int, key: int
) -> Iterator[R]:
    """Run tasks in worker processes; yield the results in task order.

    Task i is run by worker i % `workers`; `key` seeds the workers (see `_seed_libraries`). A worker
    gets its next task only after its result was read, so that neither side of a pipe can wait for
    the other to read.
    """
    started = [_Process(run, key, i) for i in range(workers)]
    try:
        busy: collections.deque[_Process] = collections.deque()
        done: collections.deque[R] = collections.deque()
        idle = collections.deque(started)
        limit = max(1, config.settings.prefetch)
        more = True
        while True:
            while more and idle and len(done) < limit:
                try:
                    task = next(tasks)
                except StopIteration:
                    more = False
                    break
                idle[0].send(task)
                busy.append(idle.popleft())
            while busy and (not done or (len(done) < limit and busy[0].pipe.poll())):
                done.append(cast("R", busy[0].receive()))
                idle.append(busy.popleft())
                if more:
                    break  # give the idle worker its next task first
            if done and (not idle or not more or len(done) >= limit):
                yield done.popleft()
            elif not done and not busy and not more:
                return
    finally:
        for process in started:
            process.stop()
