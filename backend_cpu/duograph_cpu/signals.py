"""Lets a long kernel stop when a signal handler raises an exception, as Ctrl-C does.

C code runs without Python's lock, so signal handlers would wait until a kernel returns. The kernels
that can stop (`DG_STOPPABLE` in native/pool.h) call `dg_handle_signals` from time to time in the
main thread, and return an error code if a handler raised. `kernels.fail` then raises that exception
again. The module must not depend on which signal arrived.
"""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn

from ._native import ffi

__all__ = ["raise_stopped"]

# What the handlers of the running kernel raised; only the main thread uses it.
_raised: list[BaseException] = []


def _keep(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    _raised.append(error)


@ffi.def_extern(error=1, onerror=_keep)
def dg_handle_signals() -> int:
    """Let Python run the handlers of signals that have arrived; return 0 to C.

    Python runs them before this function's body. If a handler raises, cffi calls `_keep`, which
    stores the exception, and returns 1 instead.
    """
    return 0


def raise_stopped() -> NoReturn:
    """Raise again the exception of the signal handler that made a kernel stop."""
    raise _raised.pop()
