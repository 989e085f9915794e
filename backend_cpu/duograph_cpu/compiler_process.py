"""Runs the host's C compiler as a process, with a time limit.

    DUOGRAPH_CC_TIMEOUT    seconds that one run of the compiler may take (default 60)

`toolchain` calls `run_compiler`. A run that fails or hangs raises `Failed` with a reason for the
user. A run must leave neither processes nor pipes behind, also after an interrupt.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

__all__ = ["Failed", "Hung", "run_compiler"]


class Failed(Exception):
    """Raised if a run of the C compiler failed; the message is the reason."""


class Hung(Failed):
    """Raised if a run of the C compiler was stopped at the time limit."""


def _timeout() -> float:
    with contextlib.suppress(ValueError):
        seconds = float(os.environ.get("DUOGRAPH_CC_TIMEOUT", ""))
        if 0 < seconds < 1e6:
            return seconds
    return 60.0


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Return a context manager that handles an interrupt (Ctrl-C) when its block has ended.

    A block that starts a process then also knows it. In a thread other than the main one, which
    Python never interrupts, nothing is done.
    """
    import signal

    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[-1])


def run_compiler(command: Sequence[str], source: str = "") -> str:
    """Run the C compiler with source on standard input; return the text that it printed.

    Standard input is as fast as a source file and leaves no file behind.

    Raises:
        Hung: the compiler did not finish within the time limit.
        Failed: the compiler cannot be started, crashed, or returned an error status.
    """
    import signal
    import subprocess

    environment = {**os.environ, "LC_ALL": "C"}
    process: subprocess.Popen[bytes] | None = None

    def stop() -> None:
        if process is None:
            return
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)  # it may remove its files
            process.wait(0.2)
        with contextlib.suppress(OSError):  # no process is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # of unsent source
                    pipe.close()

    seconds = _timeout()
    try:
        with _interrupts_later():
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,  # so that its child processes are stopped with it
            )
        out, err = process.communicate(source.encode("utf-8", "replace"), timeout=seconds)
    except OSError as error:
        stop()
        raise Failed(f"{command[0]} does not start: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        stop()
        raise Hung(
            f"{command[0]} did not finish within {seconds:g} s (DUOGRAPH_CC_TIMEOUT)"
        ) from None
    except BaseException:
        stop()
        raise
    if process.returncode < 0:
        name = signal.strsignal(-process.returncode) or str(-process.returncode)
        raise Failed(f"{command[0]} crashed: {name}{_words(err)}")
    if process.returncode:
        raise Failed(f"{command[0]} failed with exit status {process.returncode}{_words(err)}")
    return out.decode("utf-8", "replace")


def _words(err: bytes) -> str:
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    return "".join(f"\n  {line[:300]}" for line in lines[:6])
