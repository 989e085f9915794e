"""Calls optional methods of a backend; the core can also work without their results.

`execution` and `passes` call `answer`. If a method raises or returns an invalid value, one warning
is given, and the caller treats the method as unavailable. An error of such a method must never
reach the user as an exception.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from ..backend.plugin_checks import error_text
from ..backend.protocol import Backend
from ..errors import BackendError
from ..scopes import SizeNeeded

__all__ = ["answer"]

Answer = TypeVar("Answer")
# (backend, method, error) of the failures that were reported.
_warned: set[tuple[str, str, str]] = set()


def answer(backend: Backend, method: str, ask: Callable[[], Answer]) -> Answer | str:
    """Return the result of an optional method of a backend; if the method fails, warn.

    After a failure, the text of the error is returned. A warning is given once per method and text.

    Args:
        backend: the backend, for the text.
        method: name of the method, for the text.
        ask: function that calls the method, checks its result and returns it.

    Raises:
        SizeNeeded: the method needs the number for which a symbolic size stands.
    """
    try:
        return ask()
    except SizeNeeded:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may fail in any way)
        said = f"raised {error_text(error)}"
        if isinstance(error, BackendError):
            said = str(error).removeprefix(f"{backend.name}: {method}() ")
        text = f"{method}() of the {backend.name} backend {said}"
        key = (backend.name, method, said)
        if key not in _warned:
            _warned.add(key)
            warnings.warn(f"{text}. duograph goes on without it", RuntimeWarning, stacklevel=2)
        return text
