"""A line on the terminal that says how far an operation is, once it takes longer than a second.

Operations that may take seconds, such as saving a checkpoint, surround their work with
`status_line`. If standard error is not a terminal, such as in tests, logs and notebooks, nothing
may be written and no thread is started. `train.callback.progress` shows the progress of training.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar

from ._locks import new_lock

__all__ = ["StatusLine", "counted", "duration_text", "is_terminal", "size_text", "status_line"]

T = TypeVar("T")

_DELAY = 1.0  # seconds before the first output
_REFRESH = 0.5  # seconds between two outputs
_CLEAR = "\r\x1b[K"  # to the beginning of the line, and erase to its end


class StatusLine:
    """How far an operation is.

    Attributes:
        doing: what the operation does, such as "saving net.ckpt"; it may change.
        done: the items that are finished, such as bytes.
        total: the items in all; None if nobody knows.
        unit: what the items are, such as "rows" or "bytes"; "" if none are counted.
        shown: whether a terminal may show the line; if not, nobody needs the counts.
        began: when the operation began, in seconds of `time.monotonic`.
    """

    def __init__(self, doing: str, total: int | None, unit: str, shown: bool = True) -> None:
        self.doing, self.total, self.unit, self.shown = doing, total, unit, shown
        self.done = 0
        self.began = time.monotonic()

    def advance(self, count: int = 1) -> None:
        """Count further items as finished."""
        self.done += count
        if _terminal is not None and not _terminal.threaded:
            _terminal.refresh()

    def text(self, seconds: float) -> str:
        """Return the line after `seconds`: items, rate and estimate, or the time that has passed.

        For example "duograph: saving net.ckpt: 1.2 GiB of 4.0 GiB, 310.0 MiB/s, 9.0 s left".
        """
        line = f"duograph: {self.doing}"
        if not self.done:
            return f"{line}, {seconds:.0f} s"
        rate = self.done / max(seconds, 1e-9)
        if self.total is None or self.done >= self.total:
            line += f": {self._amount(self.done)}"
            return f"{line}, {self._amount(rate, short=True)}/s, {duration_text(seconds)}"
        left = (self.total - self.done) / rate
        line += f": {self._amount(self.done, short=True)} of {self._amount(self.total)}"
        return f"{line}, {self._amount(rate, short=True)}/s, {duration_text(left)} left"

    def _amount(self, count: float, short: bool = False) -> str:
        """Return a number of items, or a rate, as text; `short` leaves out their name."""
        if self.unit == "bytes":
            return size_text(count)
        number = f"{count:.0f}" if count >= 100 or count == int(count) else f"{count:.3g}"
        return number if short else f"{number} {self.unit}"


class _Terminal:
    """The last line of a terminal while operations are running.

    Attributes:
        running: the operations, each inside those before it.
        threaded: whether a thread draws the line, or `StatusLine.advance`.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.running: list[StatusLine] = []
        self.threaded = False
        self._next = 0.0  # when the line is drawn again
        self._drawn = False

    def refresh(self) -> None:
        """Draw the line of the innermost operation that has lasted `_DELAY`, if it is time."""
        now = time.monotonic()
        shown = [line for line in self.running if now - line.began >= _DELAY]
        if shown and now >= self._next:
            self._next, self._drawn = now + _REFRESH, True
            width = shutil.get_terminal_size().columns
            self._write(f"{_CLEAR}{shown[-1].text(now - shown[-1].began)[: width - 1]}")

    def erase(self) -> None:
        """Erase the line, if it was drawn."""
        if self._drawn:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a terminal that was closed
            self.stream.write(text)
            self.stream.flush()

    @contextlib.contextmanager
    def refreshed_by_a_thread(self) -> Iterator[None]:
        ended = new_lock()  # held until the block ends
        ended.acquire()

        def refresh() -> None:
            wait = _DELAY
            while not ended.acquire(timeout=wait):
                self.refresh()
                wait = _REFRESH

        thread = threading.Thread(target=refresh, name="duograph-status", daemon=True)
        thread.start()
        self.threaded = True
        try:
            yield
        finally:
            self.threaded = False
            ended.release()
            thread.join()


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal on which lines can be redrawn.

    A user may have replaced `sys.stderr` by an object that has little more than `write`.
    """
    try:
        return bool(getattr(stream, "isatty", lambda: False)())
    except ValueError:  # the stream is closed
        return False


_terminal: _Terminal | None = None  # while operations are running


@contextlib.contextmanager
def status_line(
    doing: str, total: int | None = None, unit: str = "", threaded: bool = True
) -> Iterator[StatusLine]:
    """Show a line about an operation while the `with` block runs; yield its StatusLine.

    The line appears on a terminal after a second, is updated, and is erased at the end of the
    block. Only the main thread shows one. Of nested operations, the innermost is shown that has
    lasted a second.

    Args:
        doing: what the operation does, such as "saving net.ckpt".
        total: number of items in all; None if nobody knows.
        unit: what the items are, such as "rows" or "bytes", which the block counts by `advance`; ""
            counts nothing.
        threaded: a thread draws the line; False for a block that may fork, where `advance` does.
    """
    global _terminal
    stream = sys.stderr
    main = threading.current_thread() is threading.main_thread()
    if not main or not is_terminal(stream):
        yield StatusLine(doing, total, unit, shown=False)
        return
    line = StatusLine(doing, total, unit)
    outer, terminal = _terminal, _terminal or _Terminal(stream)
    _terminal = terminal
    terminal.running.append(line)
    start = threaded and not terminal.threaded
    try:
        with terminal.refreshed_by_a_thread() if start else contextlib.nullcontext():
            yield line
    finally:
        terminal.running.remove(line)
        _terminal = outer
        if outer is None:
            terminal.erase()


def counted(
    items: Iterable[T], line: StatusLine, size: Callable[[T], int] | None = None
) -> Iterator[T]:
    """Yield items, and count each as finished when the next one is asked for.

    `size` returns what an item counts; without it, each counts 1.
    """
    for item in items:
        yield item
        line.advance(1 if size is None else size(item))


def duration_text(seconds: float) -> str:
    """Return a time as text, such as "12 s" or "1:02:03"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def size_text(count: float) -> str:
    """Return a number of bytes as text, such as ``1.5 MiB``."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} bytes"
