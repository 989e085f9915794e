"""Decides how one op runs on a backend: by a kernel, or by its NumPy reference on the host.

`execution.lowering` calls the module for each op on tensors. Each decision may depend on a single
node only; decisions about several nodes are made by the passes.
"""

from __future__ import annotations

import collections
import warnings
from typing import TYPE_CHECKING

import numpy as np

from .. import context
from .._locks import new_lock
from ..backend.checked_calls import from_device, to_device
from ..backend.plugin_checks import call_text
from ..backend.prepared import HandleFunction, PreparedCall
from ..backend.prepared_calls import prepared_call
from ..backend.protocol import Backend
from ..effects import Communicates
from ..errors import UnsupportedOpError
from ..op import Op
from ..ranks.on_device import DeviceArray, operand, result
from ..ranks.world import world
from ..types import Device, TensorType

if TYPE_CHECKING:
    from ..backend.prepared import Handle
    from ..ir.graph import Attributes

__all__ = ["fallback", "fallback_counts", "host_call", "kernel"]

# (backend, op) -> how often the host ran it
fallback_counts: collections.Counter[tuple[str, str]] = collections.Counter()
_warned: set[tuple[str, str]] = set()
_lock = new_lock()  # of `fallback_counts`


def kernel(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Attributes,
    device: Device,
) -> PreparedCall | None:
    """Return the backend's prepared kernel call for an op on operands of the given types.

    The result is None if the backend has no kernel for the op, or if the op always runs on the
    host.
    """
    if op.host:
        return None
    return prepared_call(backend, op, types, attributes, device.index)


def fallback(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Attributes,
    device: Device,
    results: tuple[TensorType, ...],
) -> HandleFunction:
    """Return a function that runs an op on the host, because the backend has no kernel for it.

    The function takes and returns buffer handles. The setting `host_fallback` decides whether that
    is allowed, with a warning or without. An op that runs on the host on every device is always
    allowed.

    Raises:
        UnsupportedOpError: the setting does not allow it, or the op has no NumPy reference.
    """
    if op.host or op.host_fallback:  # runs on the host for every device
        return host_call(backend, op, types, attributes, device, results)
    policy = context.settings.host_fallback
    if policy == "backend":
        policy = backend.host_fallback
    shown = call_text(op.name, types)
    if policy == "off" or op.reference_rule is None:
        raise UnsupportedOpError(
            f"{shown}: the {backend.name} backend has no kernel for it and the op has no "
            "decomposition; write a kernel, or allow the host to run it with "
            "set_context(host_fallback='warn')"
        )
    key = (backend.name, op.name)
    if policy == "warn" and key not in _warned:
        _warned.add(key)
        warnings.warn(
            f"{shown} runs on the host: the {backend.name} backend has no kernel for it",
            RuntimeWarning,
            stacklevel=2,
        )
    run = host_call(backend, op, types, attributes, device, results)

    def counted(*handles: Handle) -> Handle | tuple[Handle, ...]:
        with _lock:
            fallback_counts[key] += 1
        return run(*handles)

    return counted


def host_call(
    backend: Backend,
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Attributes,
    device: Device,
    results: tuple[TensorType, ...],
) -> HandleFunction:
    """Return a function that runs an op's NumPy reference on host copies of its operands.

    The function takes buffer handles, and returns those of the results, copied to the device. A
    collective may be run without copies (see `_collective_call`). `types` and `results` are the
    types of the operands and results.
    """
    reference = op.reference_rule
    assert reference is not None
    single = len(results) == 1
    if op.effects == (Communicates(),):
        return _collective_call(op, types, attributes, device, results)

    def run(*handles: Handle) -> Handle | tuple[Handle, ...]:
        arrays = [
            None if t is None else from_device(backend, h, t.shape, t.dtype.np, device.index)
            for h, t in zip(handles, types, strict=True)
        ]
        found = reference(*op.arguments(arrays), **attributes)
        parts = found if isinstance(found, tuple) else (found,)
        out = [
            to_device(
                backend, np.array(a, dtype=t.dtype.np, order="C").reshape(t.shape), device.index
            )
            for a, t in zip(parts, results, strict=True)
        ]
        return out[0] if single and not isinstance(found, tuple) else tuple(out)

    return run


def _collective_call(
    op: Op,
    types: tuple[TensorType | None, ...],
    attributes: Attributes,
    device: Device,
    results: tuple[TensorType, ...],
) -> HandleFunction:
    """Return a function that runs a collective (a communication op among processes).

    It takes the buffer handles of the operands and returns those of the results. The operands are
    copied to the host, unless the communication engine of the process group moves them directly
    from the device. `types` and `results` are the types of the operands and results.
    """
    reference = op.reference_rule
    assert reference is not None
    place = device.name, device.index
    single = len(results) == 1

    def run(*handles: Handle) -> Handle | tuple[Handle, ...]:
        group = world().groups.get(attributes["group"])
        arrays = [
            None if t is None else operand(group, place, h, t)
            for h, t in zip(handles, types, strict=True)
        ]
        found = reference(*op.arguments(arrays), **attributes)
        parts = found if isinstance(found, tuple) else (found,)
        out = [
            result(place, a if isinstance(a, DeviceArray) else
                   np.array(a, dtype=t.dtype.np, order="C").reshape(t.shape))
            for a, t in zip(parts, results, strict=True)
        ]  # fmt: skip
        return out[0] if single and not isinstance(found, tuple) else tuple(out)

    return run
