"""Shows on a terminal that a function is being compiled, once that takes longer than a second.

`jit_call` surrounds each compilation with `shown_on_terminal`. If standard error is not a terminal,
such as in tests, logs and notebooks, nothing may be written and no thread is started.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from .._locks import new_lock

if TYPE_CHECKING:
    from .._locks import ReentrantLock

__all__ = ["shown_on_terminal"]

_DELAY = 1.0  # seconds before the first output
_REFRESH = 0.5  # seconds between two outputs
_CLEAR = "\r\x1b[K"  # to the beginning of the line, and erase to its end


@contextlib.contextmanager
def shown_on_terminal(name: str) -> Iterator[None]:
    """Show a line such as "duograph: compiling NAME, 3 s" while the `with` block runs.

    The line appears on a terminal after a second, is updated, and is erased at the end of the
    block.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield
        return
    running = new_lock()  # held until the block ends
    running.acquire()
    thread = threading.Thread(
        target=_write, args=(stream, name, running), name="duograph-waiting", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        running.release()
        thread.join()


def _write(stream: TextIO, name: str, running: ReentrantLock) -> None:
    began = time.monotonic()
    if running.acquire(timeout=_DELAY):
        return
    with contextlib.suppress(OSError, ValueError):  # a terminal that was closed
        while True:
            seconds = time.monotonic() - began
            stream.write(f"{_CLEAR}duograph: compiling {name}, {seconds:.0f} s")
            stream.flush()
            if running.acquire(timeout=_REFRESH):
                break
        stream.write(_CLEAR)
        stream.flush()
