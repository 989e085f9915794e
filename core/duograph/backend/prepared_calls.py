"""Obtains the kernel call of an op from a backend or from an added kernel, and caches it on the op.

Eager execution, the lowering of compiled functions and graph passes call `prepared_call`, often for
the same op with the same types and attributes; programs and threads use the same cached call.
Kernels that plugins add are tried in order of their priority. Nothing here runs a kernel.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..dims import is_symbolic
from ..dtype import DType
from ..errors import BackendError, DuographError
from . import added_kernels
from .observers import reporting
from .plugin_checks import as_prepared, call_text, error_text
from .prepared import PreparedCall
from .protocol import Backend

if TYPE_CHECKING:
    from ..op import Op
    from ..types import TensorType

__all__ = ["added_call", "prepared_call"]

# Answers kept for each op; when there are more, because shapes vary, all are dropped.
_LIMIT = 1024
# The most items of a key that is stored; attributes with long tables of numbers make longer keys.
_LONGEST = 128
# Classes of which two objects are equal only if ops treat them alike, unlike 0.0 and -0.0.
_PLAIN = frozenset({int, bool, str, type(None), DType})


def prepared_call(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, object],
    device_id: int,
) -> PreparedCall | None:
    """Return the call that a backend prepares for an op, from the op's cache if possible.

    Returns None if neither a plugin nor the backend has a kernel for these types and attributes.

    Raises:
        BackendError: a `prepare` function failed, or returned neither a call nor None.
    """
    key: list[Hashable] = [id(backend), device_id, types, *attributes]
    sized = any([t is not None and is_symbolic(t.size) for t in types])
    if sized or not _add(key, attributes.values()):
        return _prepare(backend, op, types, attributes, device_id)
    # if rules change meanwhile, the op gets a new table, which must not receive this answer
    table, known = op.prepared, tuple(key)
    found = table.get(known)
    if found is None:
        # the backend is stored too, which keeps it alive, so that its id stays unique
        found = backend, _prepare(backend, op, types, attributes, device_id)
        if len(table) >= _LIMIT:
            table.clear()
        table[known] = found
    return found[1]


def _add(key: list[Hashable], values: Iterable[Any]) -> bool:
    """Append attribute values to a cache key; return whether the key can be used.

    Each value is stored with its class, so that the keys of 1, 1.0 and True differ, as do those of
    0.0 and -0.0. Returns False, and leaves the key incomplete, if a value is a NaN or of a class
    that cannot be part of a key (only plain immutable values can), or if the key gets longer than
    `_LONGEST` entries.
    """
    for value in values:
        kind = value.__class__
        if is_symbolic(value):  # preparing asks questions about sizes, which become guards
            return False
        if kind in _PLAIN:
            key += (kind, value)
        elif kind is tuple:
            key += (kind, len(value))
            if not _add(key, value):
                return False
        elif (kind is float or kind is complex) and value == value:
            key += (kind, repr(value))
        else:
            return False
        if len(key) > _LONGEST:
            return False
    return True


def added_call(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, object],
    device_id: int,
) -> PreparedCall | None:
    """Return the call of a plugin's kernel if it has precedence over the backend's own, else None.

    Raises:
        BackendError: a `prepare` function failed, or returned neither a call nor None.
    """
    if not added_kernels.before(backend, op):
        return None
    found = prepared_call(backend, op, types, attributes, device_id)
    return found if found is not None and found.precedes else None


def _prepare(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, object],
    device_id: int,
) -> PreparedCall | None:
    """Prepare an op's kernel call and report the work to observers; return the call or None.

    Kernels that plugins added and the backend's own kernel are tried in order of priority; the
    first that gives a call is used. Observers receive all this work as one "compile" event.
    """
    given = op, types, attributes, device_id
    with reporting("compile", f"prepare {op.name}", f"{backend.name}:{device_id}"):
        return _first_call(backend, given)


def _first_call(backend: Backend, given: Any) -> PreparedCall | None:
    """Return the first call that an added kernel or the backend prepares, by priority, or None.

    `given` are the arguments of `_prepare` after the backend.
    """
    op = given[0]
    for kernel in (*added_kernels.before(backend, op), None, *added_kernels.after(backend, op)):
        if kernel is None:
            found = _asked(backend.prepare, f"the {backend.name} backend", *given)
        else:
            owner = f"{kernel.owner} for the {backend.name} backend"
            found = _asked(functools.partial(kernel.spec.prepare, backend), owner, *given)
            if found is not None:
                precedes = kernel.spec.priority > 0
                found = dataclasses.replace(found, owner=owner, precedes=precedes)
        if found is not None:
            return found
    return None


def _asked(
    prepare: Callable[..., object],
    owner: str,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Mapping[str, object],
    device_id: int,
) -> PreparedCall | None:
    """Call a `prepare` function; return the call that it makes, or None if it makes none.

    `owner` names the function's provider in errors.

    Raises:
        BackendError: the function failed, or returned something else.
    """
    try:
        found = prepare(op, types, attributes, device_id)
        if found is None:
            return None
        return as_prepared(found, len(types), lambda: len(op.infer_types(types, attributes)))
    except Exception as error:
        if isinstance(error, (DuographError, MemoryError)) and not isinstance(error, BackendError):
            raise
        said = str(error) if isinstance(error, BackendError) else f"raised {error_text(error)}"
        raise BackendError(f"{call_text(op.name, types)}: prepare() of {owner} {said}") from error
