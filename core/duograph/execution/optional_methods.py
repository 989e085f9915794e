"""Calls optional methods of a backend, which must not fail for good: the core can do without.

`execution` and `passes` ask here. A method that raises, or returns what it must not, is reported
once and counts as one that is not available.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from ..backend.plugin_checks import error_text
from ..backend.protocol import Backend
from ..errors import BackendError

__all__ = ["answer"]

Answer = TypeVar("Answer")
# (backend, method, error) of the failures that were reported.
_warned: set[tuple[str, str, str]] = set()


def answer(backend: Backend, method: str, ask: Callable[[], Answer]) -> Answer | str:
    """Return a backend method's checked answer; if it fails, warn and return why as a text.

    Args:
        method: its name, for the text.
        ask: calls the method and checks the answer.
    """
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 (a plugin may fail in any way)
        said = str(error) if isinstance(error, BackendError) else f"raised {error_text(error)}"
        text = f"{method}() of the {backend.name} backend {said}"
        key = (backend.name, method, said)
        if key not in _warned:
            _warned.add(key)
            warnings.warn(f"{text}. Compiled functions do without it", RuntimeWarning, stacklevel=2)
        return text
