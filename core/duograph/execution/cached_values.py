"""Caches the values that a compiled program computes from nothing but its state.

The *state* consists of the Parameters and captured tensors that the program reads; the program must
not write them. A `CachedValues` belongs to one program; before every call,
`compiler.compiled_program` calls its method `values`. The cache must not hold a reference to a
buffer handle of the state, or a compiled update could no longer overwrite the buffer.

Handles are immutable with two exceptions: a compiled update may write the new value over the old
one, in the same handle, and an array that shares the memory (`asnumpy`, DLPack, `from_numpy`) can
be written. So:

- Before anything is computed, each handle is *watched*: the registry `placement.watched` lists the
  caches to drop when the handle is released. A tensor releases its handle when it gets another
  buffer, a new value in the same buffer, or its memory is exported as an array. A release drops the
  cached values immediately.
- Values are computed only if nothing but its tensor holds each handle (`execution.ownership`), and
  nothing else holds the host memory under it (`Backend.exclusive`): an array made earlier and still
  alive is such a holder.
- At a call, each tensor must have the very handle that was watched.

Values are computed only at the second call in a row that finds the same handles, so that
nothing is cached in vain when training and evaluation alternate.
"""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Sequence

from .._locks import new_lock
from ..backend import registry
from ..backend.prepared import Handle
from ..errors import DuographError
from ..placement import watched
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..types import Device
from .optional_methods import answer
from .ownership import owns_buffer

__all__ = ["CachedValues"]

# The most calls after which caching is tried again if other code holds a handle of the state.
MAX_WAIT = 1024

_lock = new_lock()  # of `watched`


def _weak_reference(handle: object) -> Callable[[], object]:
    """Return a weak reference to a buffer handle; if unsupported, a function that returns None."""
    try:
        return weakref.ref(handle)
    except TypeError:
        return lambda: None


class _Watch:
    """The buffer handles of a program's state when the cache started to watch them.

    Attributes:
        refs, ids: weak references to the handles, and their ids.
        values: the cached values; None before they are computed.
        version: `runtime_state.bindings_version` when the handles were last compared.
        wait: how many calls to skip before the next attempt to compute the values.
        patience: how many calls were to be skipped after the last failed attempt.
    """

    __slots__ = ("refs", "ids", "values", "version", "wait", "patience")

    def __init__(self, handles: Sequence[object]) -> None:
        self.refs = [_weak_reference(h) for h in handles]
        self.ids = [id(h) for h in handles]
        self.values: tuple[Handle, ...] | None = None
        self.version: object = None
        self.wait = self.patience = 0


class CachedValues:
    """Cache of the values that a compiled program computes from state it never writes.

    Args:
        tensors: the state (Parameters and captured tensors) on which the values depend.
        device: the device of these tensors.
        compute: function from their buffer handles to the values.
        borrowed: function that returns lists of handles that compiled programs store between calls
            and only read; these references do not count as holders.
        notes: list to which a line of text is appended if computing fails.
    """

    def __init__(
        self,
        tensors: Sequence[Tensor],
        device: Device,
        compute: Callable[..., tuple[Handle, ...]],
        borrowed: Callable[[], list[list[object]]],
        notes: list[str],
    ) -> None:
        self._tensors = tensors
        self._device = device
        self.compute = compute
        self._borrowed = borrowed
        self._notes = notes
        self._computing = new_lock()
        self._own = weakref.ref(self)
        # replaced as a whole: values computed by another thread for an old watch are lost
        self._watch: _Watch | None = None

    def values(self) -> tuple[Handle, ...] | None:
        """Return the cached values if they are valid for the current state, else None.

        If they are not cached yet, this computes them, provided that it is safe and pays. If the
        result is None, the program must compute everything in this call. The caller must hold no
        handle of the state during this method.
        """
        now, watch = runtime_state.bindings_version, self._watch
        if watch is None:
            self._begin()
            return None
        if watch.version is not now:
            for ref, t in zip(watch.refs, self._tensors, strict=True):
                if ref() is not t._buf:
                    self._begin()
                    return None
            watch.version = now
        if watch.values is not None:
            return watch.values
        if watch.wait:
            watch.wait -= 1
            return None
        if not self._computing.acquire(blocking=False):
            return None  # another thread computes them
        try:
            return self._prepare(watch)
        finally:
            self._computing.release()

    def settled(self) -> bool:
        """Return whether values are cached, or attempts to cache them are `MAX_WAIT` calls apart.

        The program may store handles of the state between calls only if the result is True, because
        a stored handle prevents the cache from computing its values.
        """
        watch = self._watch
        return watch is not None and (watch.values is not None or watch.patience >= MAX_WAIT)

    def drop(self) -> None:
        """Stop watching the state's buffer handles and free the values cached from them.

        Programs that store buffer handles between calls must then compare these handles with those
        of their tensors again.
        """
        watch, self._watch = self._watch, None
        if watch is None:
            return
        with _lock:
            for i in watch.ids:
                left = tuple([ref for ref in watched.get(i, ()) if ref is not self._own])
                if left:
                    watched[i] = left
                else:
                    watched.pop(i, None)
        runtime_state.bindings_version = object()  # makes programs compare their bound state again

    def __del__(self) -> None:
        self.drop()

    def _begin(self) -> None:
        """Drop cached values and start watching the state's current buffer handles."""
        self.drop()
        watch = _Watch([t._buf for t in self._tensors])
        with _lock:
            for i in watch.ids:
                watched[i] = (*watched.get(i, ()), self._own)
        self._watch = watch

    def _prepare(self, watch: _Watch) -> tuple[Handle, ...] | None:
        """Compute and cache the values that depend only on the state; return them, or None.

        The result is None if a handle has changed, if computing failed, or if anything else could
        write the state's buffers. In the last two cases the next attempt is also postponed.
        """
        if not self._exclusive():
            watch.wait = watch.patience = min(2 * watch.patience + 1, MAX_WAIT)
            return None
        handles = [t._buf for t in self._tensors]
        if any(ref() is not h for ref, h in zip(watch.refs, handles, strict=True)):
            return None
        try:
            watch.values = self.compute(*handles)
        except DuographError as error:  # if it is the user's error, the whole program raises it too
            self._notes.append(f"nothing is cached: {error}")
            watch.wait = watch.patience = MAX_WAIT
        return watch.values

    def _exclusive(self) -> bool:
        """Return whether nothing can write the state's buffers without this cache noticing.

        That is so if only the tensors, and programs that just read, hold the buffers.
        """
        backend, index = registry.backend(self._device.name), self._device.index
        lists = self._borrowed()  # keeps the lists alive while their references are counted
        known = collections.Counter([id(h) for handles in lists for h in handles])

        def owned() -> bool:
            return all(
                owns_buffer(t, known[id(t._buf)]) and backend.exclusive(t._buf, index)
                for t in self._tensors
            )

        return answer(backend, "exclusive", owned) is True
