"""Execution of collectives: in order within a group, with deadlines, checked to match over ranks.

Ranks of a group call the same collectives in the same order. Before each one they compare a digest
of 16 bytes of its kind, dtype, shape and options, so that a difference becomes an error that names
the calls, and not a hang or wrong numbers.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..backend import observers
from ..backend.collectives import DeviceRequest, Request
from ..errors import CommunicationError
from .transfers import Steps, gathered

if TYPE_CHECKING:
    from .world import Group

__all__ = ["Operation", "Queue", "user_line"]


class _Place(NamedTuple):
    """A line of the user's source."""

    file: str
    line: int


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SLICE = 5e-4  # seconds for which one operation is advanced while others run beside it
_TEXT = 1024  # bytes of the description that ranks exchange if their calls differ


def _user_place() -> _Place | None:
    """Return the line of the innermost stack frame outside duograph, or None."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    return _Place(frame.f_code.co_filename, frame.f_lineno)


def user_line() -> str:
    """Return " at FILE:LINE" for the innermost stack frame outside duograph, or "" without one."""
    place = _user_place()
    return "" if place is None else f" at {place.file}:{place.line}"


class Operation:
    """A collective or message that this rank has called.

    Attributes:
        text: description, such as ``AllReduce(sum) of float32 (3,)``; for a collective it is equal
            on all ranks.
        queue: the operations that run one after the other with this one.
        line: the line of the user's code that called it, in the form of `user_line`.
        done: whether it is complete; then `result` or `error` is set.
        transfers: number of transfers that it has started.

    Args:
        group, text, steps, queue: the group, description, generator and queue.
        compared: whether the ranks first compare their descriptions.
        peer: position in the group of the only rank that a message waits for; None for a
            collective, which waits for all.
    """

    def __init__(
        self,
        group: Group,
        text: str,
        steps: Steps,
        queue: Queue,
        compared: bool = True,
        peer: int | None = None,
    ) -> None:
        self.group = group
        self._awaited = group.ranks if peer is None else (group.ranks[peer],)
        self.queue = queue
        self.text = text
        self._place = _user_place()
        self.line = "" if self._place is None else f" at {self._place.file}:{self._place.line}"
        self._begin, self._sent = observers.clock(), 0
        self.done = False
        self.result: object = None
        self.error: CommunicationError | None = None
        self._steps = self._checked(steps) if compared else steps
        self._request: Request | None = None
        self.transfers = 0

    def _checked(self, steps: Steps) -> Steps:
        """Return a generator that compares the ranks' descriptions and then runs `steps`.

        `steps` is the generator of a collective; its return value becomes that of the returned
        generator. The returned generator, like `steps`, yields each transfer request that it
        starts, and is resumed when that request is complete. It first exchanges a digest of the
        operation's `text` with all ranks.

        Raises:
            CommunicationError: the descriptions differ.
        """
        own = hashlib.blake2b(self.text.encode(), digest_size=16).digest()
        found = yield from gathered(self.group.comm, np.frombuffer(own, np.uint8))
        if (found != found[0]).any():
            said = f"{self.text}{self.line}".encode()[:_TEXT].ljust(_TEXT)
            texts = yield from gathered(self.group.comm, np.frombuffer(said, np.uint8))
            raise self._mismatch([t.tobytes().decode(errors="replace").strip() for t in texts])
        return (yield from steps)

    def _mismatch(self, texts: list[str]) -> CommunicationError:
        ranks = [
            f"rank {r}: {t}" for r, t in zip(self.group.ranks, texts) if t != texts[0] or not r
        ]
        return CommunicationError(
            f"the ranks of {self.group.name!r} call different collectives: "
            f"{'; '.join(dict.fromkeys(ranks))}. Every rank must call the same ones in the same "
            "order, with equal shapes and dtypes"
        )

    def advance(self, seconds: float) -> bool:
        """Run the operation for at most `seconds`; return whether it is complete.

        With 0 seconds, it runs as far as is possible without blocking. A failure is stored in
        `error`, and counts as complete.
        """
        end = time.monotonic() + seconds
        try:
            while True:
                if self._request is not None:
                    left = end - time.monotonic() if seconds else 0.0
                    if not (self._request.wait(left) if left > 0 else self._request.test()):
                        return False
                before = self.group.comm.sent
                self._request = next(self._steps)
                self.transfers += 1
                if isinstance(self._request, DeviceRequest):
                    self._request.operation = self
                self._sent += self.group.comm.sent - before
        except StopIteration as finished:
            self.result = finished.value
            self._report()
        except CommunicationError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 (of the engine's library; it may be any)
            self._failed(CommunicationError(f"{self.where()} failed: {error}"))
        except BaseException:
            closed = inspect.getgeneratorstate(self._steps) == inspect.GEN_CLOSED
            if closed:  # interrupted within the steps, which cannot go on
                self._failed(CommunicationError(f"{self.where()} was interrupted"))
            raise
        self.done = True
        return True

    def _report(self) -> None:
        """Report the completed operation to the observers, such as the profiler."""
        take = observers.state.take
        if take is None:
            return
        spans = () if self._place is None else (self._place,)
        detail = {"group": self.group.name, "what": self.text}
        work = observers.Work(
            "communication", self.kind, nbytes=self._sent, spans=spans, detail=detail
        )
        take(work, self._begin, observers.clock(), None)

    @property
    def kind(self) -> str:
        """The text without dtype and shape, such as ``AllReduce(sum)``."""
        return self.text.partition(" of ")[0]

    def where(self) -> str:
        """Return the description with the user's line, the rank and the group, for messages."""
        world = self.group.world
        named = "" if self.group is world.whole else f" in the group {self.group.name!r}"
        return f"{self.text}{self.line} on rank {world.rank}{named}"

    def late(self, seconds: float) -> CommunicationError:
        """Mark the operation as failed because of its deadline of `seconds`; return the error."""
        others = [r for r in self._awaited if r != self.group.world.rank] or self._awaited
        error = CommunicationError(
            f"{self.where()} waited {seconds:g} s for rank{'s' * (len(others) > 1)} "
            f"{', '.join(map(str, others))}: a rank has ended, is stopped, or takes longer. "
            "set_context(communication_timeout=SECONDS) sets another limit"
        )
        self._failed(error)
        return error

    def _failed(self, error: CommunicationError) -> None:
        self.error, self.done = error, True
        self.group.world.broken = self.group.world.broken or error


class Queue:
    """Operations that run one after the other.

    A queue holds the collectives of a group, or the messages of one direction, peer and tag. The
    queues of a rank are independent: a wait for an operation of one queue runs those of the others,
    too.
    """

    def __init__(self) -> None:
        self.waiting: deque[Operation] = deque()

    def add(self, operation: Operation) -> None:
        """Append an operation, and start it if no other one is running."""
        self.waiting.append(operation)
        self.poll()

    def poll(self) -> bool:
        """Advance the operations as far as possible without blocking.

        Returns whether a transfer has completed.
        """
        if not self.waiting:
            return False
        first, before = self.waiting[0], self.waiting[0].transfers
        while self.waiting and self.waiting[0].advance(0.0):
            self.waiting.popleft()
        return first.done or first.transfers > before

    def wait(
        self, operation: Operation, seconds: float, late: type[Exception] | None = None
    ) -> Any:
        """Wait for an operation and for those before it in the queue; return its result.

        Args:
            operation: an operation of this queue.
            seconds: the longest time to wait for each operation.
            late: exception class to raise if an operation is not complete after `seconds`; the
                operation then stays in the queue, and a later call may wait for it. None: the
                operation fails.

        Raises:
            CommunicationError: an operation failed, or with `late` None was not complete in time.
        """
        if operation.done or late is not None:
            return self._waited(operation, seconds, late)
        detail = {"what": operation.text}
        with observers.reporting("wait", f"wait for {operation.kind}", detail=detail):
            return self._waited(operation, seconds, late)

    def _waited(self, operation: Operation, seconds: float, late: type[Exception] | None) -> Any:
        while not operation.done:
            first = self.waiting[0]
            if not self._advanced(first, seconds):
                raise first.late(seconds) if late is None else late()
            self.waiting.popleft()
            if first.error is not None:
                raise first.error
        if operation.error is not None:
            raise operation.error
        return operation.result

    def _advanced(self, first: Operation, seconds: float) -> bool:
        """Run this queue's first operation for at most `seconds`; return whether it is complete.

        `first` is that operation. Meanwhile the operations in the other queues of this rank run as
        well, without blocking.

        Raises:
            CommunicationError: an operation of another queue failed.
        """
        world = first.group.world
        end = time.monotonic() + seconds
        while any(queue.waiting for queue in world.queues if queue is not self):
            left = end - time.monotonic()
            if first.advance(max(min(left, _SLICE), 0.0)):
                return True
            if left <= 0:
                return False
            for queue in world.queues:
                if queue is not self:
                    queue.poll()
            if world.broken is not None:
                raise world.broken
        return first.advance(end - time.monotonic())
