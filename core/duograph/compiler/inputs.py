"""Reads the inputs of a compiled program: arguments, state and captured objects.

The front end records the source of each parameter of a graph as `(kind, source)`.
`compiled_program` and `recorded_call` read these sources here at every call. Reading never
evaluates user code other than attribute and item access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..backend import registry
from ..backend.checked_calls import to_device
from ..errors import DeviceError
from ..frontend.types import Value
from ..placement import commit
from ..tensor import Tensor
from ..types import Device

__all__ = ["Input", "read_input"]

# What a parameter of the graph is read from: ("arg", i), ("argument", i), ("number", i),
# ("container", i), ("state", tensor), ("array", array), (kind, (owner, name)) for an "attribute",
# "item" or "cell", or ("held", (kind, owner, name)) for the object itself rather than its handle.
Input: TypeAlias = tuple[str, Value]


def read_input(
    source: Input,
    leaves: Sequence[Tensor],
    numbers: Sequence[object],
    containers: Sequence[object],
    device: Device,
) -> Value:
    """Return the handle, number or object to pass for one input of a program in this call.

    Args:
        source: the input, as (kind, source), where the kind is a string such as "arg" and the
            source is, for example, the position of a tensor argument.
        leaves: the tensors among the arguments.
        numbers: the Python numbers among the arguments that `mutable` marks as run-time inputs.
        containers: the lists, dicts and sets among the arguments.
        device: the device on which the program runs; a captured tensor without a device is moved to
            it.

    Raises:
        DeviceError: a captured tensor is on another device.
    """
    kind, v = source
    if kind == "arg":
        return leaves[v]._buf
    if kind == "state":
        return v._buf
    if kind == "argument":
        return leaves[v]
    if kind == "number":
        return numbers[v]
    if kind == "container":
        return containers[v]
    if kind == "array":
        return to_device(registry.backend(device.name), np.array(v), device.index)
    as_object = kind == "held"
    if as_object:
        kind, *v = v
    owner, name = v
    if kind == "item":
        held = owner[name]
    else:
        held = owner.cell_contents if kind == "cell" else getattr(owner, name)
    if as_object or not isinstance(held, Tensor):
        return held
    if held._type.device is None:
        commit(held, device)
    elif held._type.device is not device:
        raise DeviceError(
            f"jit: got {name!r} on {held._type.device} in a function that was compiled for "
            f'{device}; wanted all on one device: move it with move_to("{device}")'
        )
    return held._buf
