"""Kernels that plugins add to backends of others, one op at a time (the hook `duograph_kernels`).

For each op call, `prepared_calls` tries these kernels before or after the backend's own kernel, by
their priority. `ops.extensions` registers what plugins return; programs, such as tests and
notebooks, call `add` and `remove`. Nothing here prepares or runs a kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from .._locks import new_lock
from ..errors import ArgumentError
from .plugin_checks import shown_value
from .protocol import Backend, Call

if TYPE_CHECKING:
    from ..op import Op
    from ..types import TensorType

__all__ = [
    "AddedKernel",
    "KernelSpec",
    "after",
    "before",
    "checked",
    "install",
    "listed",
    "uninstall",
]

# (backend, op, operand types, attributes, device index) -> the call, or None
Prepare: TypeAlias = Callable[
    ["Backend", "Op", "tuple[TensorType, ...]", "Mapping[str, object]", int], "Call | None"
]


@dataclasses.dataclass(frozen=True)
class KernelSpec:
    """A kernel for one op on one installed backend, which the hook `duograph_kernels` returns.

    Attributes:
        backend: the device_target of the backend, in any case of letters. The kernel is not used
            while no backend has this name.
        op: name of the op.
        prepare: `prepare(backend, op, types, attributes, device_id)` returns the call as
            `Backend.prepare` does, or None for operands that the kernel does not take.
        priority: above 0, the kernel is tried before the backend's own, highest priority first;
            below 0, only if the backend has no kernel for these operands. The backend's own kernels
            have priority 0.
    """

    backend: str
    op: str
    prepare: Prepare
    priority: int = 10


@dataclasses.dataclass(frozen=True)
class AddedKernel:
    """A `KernelSpec` that is in use, with the name of the plugin or program that added it."""

    spec: KernelSpec
    owner: str


# By (backend name in lower case, op name): the kernels by descending priority. A key's tuple is
# replaced, never changed, so that readers need no lock.
_kernels: dict[tuple[str, str], tuple[AddedKernel, ...]] = {}
_lock = new_lock()


def before(backend: Backend, op: Op) -> tuple[AddedKernel, ...]:
    """Return the added kernels that are tried before the backend's own kernel, best first.

    These are the kernels for `op` with a priority above 0, in descending order of priority.
    """
    if not _kernels:
        return ()
    found = _kernels.get((backend.name.lower(), op.name), ())
    return tuple([kernel for kernel in found if kernel.spec.priority > 0])


def after(backend: Backend, op: Op) -> tuple[AddedKernel, ...]:
    """Return the added kernels that are tried if the backend has no kernel of its own, best first.

    These are the kernels for `op` with a priority below 0, in descending order of priority.
    """
    if not _kernels:
        return ()
    found = _kernels.get((backend.name.lower(), op.name), ())
    return tuple([kernel for kernel in found if kernel.spec.priority < 0])


def listed(backend: str) -> tuple[AddedKernel, ...]:
    """Return all added kernels of a backend, by op name, then by descending priority."""
    found = [(op, kernels) for (name, op), kernels in _kernels.items() if name == backend.lower()]
    return tuple([kernel for _, kernels in sorted(found) for kernel in kernels])


def checked(found: object, ops: Mapping[str, Op]) -> tuple[KernelSpec, ...]:
    """Return the result of a `duograph_kernels` hook, one spec or a list, as a tuple of specs.

    Args:
        found: what the hook returned.
        ops: the known ops by name.

    Raises:
        ArgumentError: the hook returned something else, or a spec has a malformed field.
    """
    specs = found if isinstance(found, (list, tuple)) else (found,)
    for spec in specs:
        if not isinstance(spec, KernelSpec):
            raise ArgumentError(
                f"duograph_kernels returned {shown_value(spec)}; wanted a KernelSpec, or a list of "
                "them"
            )
        problem = _problem(spec, ops)
        if problem is not None:
            raise ArgumentError(f"KernelSpec: {problem}")
    return tuple(specs)


def _problem(spec: KernelSpec, ops: Mapping[str, Op]) -> str | None:
    """Return what is wrong with the fields of a spec, or None if they are valid."""
    if not isinstance(spec.backend, str) or not spec.backend:
        return f"got backend={shown_value(spec.backend)}; wanted a device_target, such as 'CPU'"
    op = ops.get(spec.op) if isinstance(spec.op, str) else None
    if op is None:
        return f"got op={shown_value(spec.op)}; wanted the name of an op, such as 'softmax'"
    if op.alias or op.graph_only or op.host:
        return f"got op={spec.op!r}, which no kernel computes; wanted an op that backends compute"
    if not callable(spec.prepare):
        return f"got prepare={shown_value(spec.prepare)}; wanted a function"
    number = isinstance(spec.priority, int) and not isinstance(spec.priority, bool)
    if not number or spec.priority == 0:
        return (
            f"got priority={shown_value(spec.priority)}; wanted an int above 0, to be asked before "
            "the backend's own kernel, or below 0, to be asked after it"
        )
    return None


def install(specs: Iterable[KernelSpec], owner: str) -> None:
    """Register kernels, after `checked` has accepted them, so that backends use them from now on.

    The caller must then discard prepared calls (`op.rules_changed`). `owner` says who provides the
    kernels, such as "the plugin fastmath".
    """
    with _lock:
        for spec in specs:
            key = spec.backend.lower(), spec.op
            every = (*_kernels.get(key, ()), AddedKernel(spec, owner))
            _kernels[key] = tuple(sorted(every, key=lambda kernel: -kernel.spec.priority))


def uninstall(specs: Iterable[KernelSpec]) -> None:
    """Unregister kernels; specs that are not registered are ignored.

    The caller must then discard prepared calls (`op.rules_changed`).
    """
    with _lock:
        for spec in specs:
            key = spec.backend.lower(), spec.op
            left = tuple([k for k in _kernels.get(key, ()) if k.spec is not spec])
            if left:
                _kernels[key] = left
            else:
                _kernels.pop(key, None)
