"""Copies of tensors: to another device, and as the elements of a new tensor.

Users call `move_to`; the Tensor constructor uses `_recorded_value`. Gradients flow through both. A
transfer must not become an op of a graph, because all values of a graph are on one device; eager
mode records it on the tape as a Python function.
"""

from __future__ import annotations

import functools

import numpy as np

from ..autodiff.custom import custom_gradient
from ..device_copies import copied, copied_out_later
from ..dtype import DType, promote
from ..placement import Arriving, commit, device_of, settle
from ..recorded_tensors import install_recorded_values
from ..runtime_state import staged_builder
from ..tensor import Tensor
from ..types import Device
from .creation import cast
from .joining import stack_by
from .methods import tensor_method
from .movement import identity
from .primitive import primitive

__all__ = ["move_to"]


@tensor_method("move_to")
def _tensor_move_to(self: Tensor, to: str, blocking: bool = True) -> Tensor:
    """Return a copy of the tensor on another device, such as ``"CPU"`` or ``"OpenCL:1"``.

    The copy bypasses the host if both devices can do so. Gradients flow back to the device of the
    tensor. A compiled function runs on one device, so a function that moves tensors between two
    devices is executed by Python instead.

    Args:
        to: name of the device.
        blocking: whether to wait for the values. If False, the copy may be incomplete when the call
            returns, and the first use of the result waits for it.

    Raises:
        RuntimeError: this machine has no such device.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([1.0, 2.0])
        >>> x.move_to("CPU").device
        'CPU:0'
        >>> print(ms.grad(lambda x: (x * x).move_to("CPU").sum())(x))
        [2. 4.]
    """
    device = device_of(to)
    builder = staged_builder()
    if builder is not None:
        builder.check_device(device)
        return identity(self)

    def backward(x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout.move_to(repr(x._type.committed_device)),)

    def forward(x: Tensor) -> Tensor:
        return _copied_to(x, device, blocking)

    moved: Tensor = custom_gradient(forward, backward, (self,), "move_to")
    return moved


@tensor_method("to_dlpack")
def _tensor_to_dlpack(self: Tensor) -> object:
    """Return a DLPack capsule of the tensor's memory, which one consumer may take.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor.from_dlpack(ms.Tensor([1.0, 2.0]).to_dlpack()))
        [1. 2.]
    """
    return self.__dlpack__()


@primitive("MoveTo()(input, to='CPU', blocking=True)")
def move_to(input: Tensor, to: str = "CPU", blocking: bool = True) -> Tensor:
    """Return a copy of a tensor on another device (`mindspore.ops.move_to`).

    Arguments, errors and gradients are those of `Tensor.move_to`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.move_to(ms.Tensor([1.0])).device
        'CPU:0'
    """
    return input.move_to(to, blocking)


def _copied_to(x: Tensor, device: Device, blocking: bool) -> Tensor:
    """Return a new Tensor on `device` with a copy of the values of `x`.

    The copy bypasses the host if the backends can do so. If it goes through the host and `blocking`
    is False, the new Tensor may wait for its values at its first use.
    """
    settle(x)
    type_ = x._type
    if type_.device is None:
        made = Tensor._make(type_.plain, x.asnumpy())
        commit(made, device)
        return made
    handle = copied(type_, x._buf, device)
    if handle is not None:
        return Tensor._make(type_.plain.on(device), handle)
    wait = None if blocking else copied_out_later(type_, x._buf)
    if wait is not None:
        made = Tensor._make(type_.plain, None)
        made._init = Arriving(wait, device)
        return made
    made = Tensor._make(type_.plain, np.array(x.asnumpy()))
    commit(made, device)
    return made


def _recorded_value(data: object, dtype: DType | None) -> Tensor:
    """Create a tensor from nested lists that contain tensors; gradients flow to each of them.

    If `dtype` is None, the elements are promoted to a common dtype.
    """
    if isinstance(data, Tensor):
        return identity(data) if dtype in (None, data.dtype) else cast(data, dtype)
    if not isinstance(data, (list, tuple)):
        return Tensor(data, dtype)
    parts = [_recorded_value(x, dtype) for x in data]
    own = dtype or functools.reduce(promote, [p.dtype for p in parts])
    return stack_by([cast(p, own) for p in parts], 0)


install_recorded_values(_recorded_value)
