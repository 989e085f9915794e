"""Runs an op call in eager mode for operand types that are new to the op, and caches how.

Calls with known operand types are found in the op's own table (`op.table`); every other call comes
here. The module moves the operands to one device, converts numbers to Tensors and asks
`execution.eager_calls` for a function. It must choose that function by types and attributes, never
by the values of tensors, because the table serves all values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .. import context
from ..advice import operand_error
from ..autodiff.node_plans import without_rule
from ..backend import observers, registry
from ..dtype import DType, promote_scalar, scalar_dtype, wrapped
from ..errors import DeviceError, MissingRuleError
from ..op import Op
from ..op_calls import numbers
from ..op_tables import drop_tables, exchange_tables
from ..placement import check_index, commit, settle
from ..runtime_state import runtime_state
from ..tensor import Tensor
from ..types import Device, TensorType
from .eager_calls import eager_call
from .function_calls import function_call

__all__ = ["Eager", "TABLE_LIMIT"]

# Calls kept for each op; when there are more, because shapes vary, all are dropped.
TABLE_LIMIT = 4096
# (class, text, dtype, device) of a Python number -> its 0-d tensor; the class tells 1 from 1.0, and
# the text 0.0 from -0.0.
_numbers: dict[tuple[type, str, DType, Device], Tensor] = {}
_NUMBER_LIMIT = 1024


class Eager:
    """The object that receives op calls in eager mode (`runtime_state.eager_builder`).

    It runs each call immediately.
    """

    def apply(
        self, op: Op, operands: tuple[object, ...], attributes: dict[str, object]
    ) -> Tensor | tuple[Tensor, ...]:
        """Run an op on tensors and numbers; return its result, or a tuple of results.

        The function that runs the op is stored in `op.table` for the next call with these operand
        types and attributes.
        """
        tensors, device = _on_one_device(op, operands)
        types = [None if t is None else t._type for t in tensors]
        key = op.key(types, attributes)
        call = op.table.get(key)
        if len(operands) == 2:
            _keep_number(operands, tensors)
        if call is None:
            if op.host:
                op.check_dtypes(types)
                return _run_on_host(op, tensors, attributes, device)
            version = observers.state.version
            call = eager_call(op, types, attributes, device)
            if len(op.table) >= TABLE_LIMIT:
                op.table.clear()
            if version is observers.state.version:  # else observers were added or removed since
                op.table[key] = call
        return call(*tensors)


runtime_state.eager_builder = Eager()
runtime_state.prepare_call = function_call


def _forget() -> None:
    """Clear the caches of prepared op calls and number tensors after a change of device."""
    drop_tables()
    _numbers.clear()
    numbers.clear()


def _keep_number(operands: Sequence[object], tensors: Sequence[Tensor | None]) -> None:
    """Cache the 0-d tensor that was made from a Python number operand of a binary op.

    Later calls such as `x + 1` find it in the table `numbers` of module `op`, by the type of x and
    the number with its class. 0.0 is not cached, because -0.0 equals it.
    """
    for number, other, made in (
        (operands[1], tensors[0], tensors[1]),
        (operands[0], tensors[1], tensors[0]),
    ):
        if number.__class__ in (int, float, bool) and other is not None and made is not None:
            if number.__class__ is float and number == 0.0:
                continue
            if len(numbers) >= _NUMBER_LIMIT:
                numbers.clear()
            numbers[other._type, number.__class__, number] = made


context.on_device_change.append(_forget)
observers.on_change.append(exchange_tables)


def _on_one_device(op: Op, operands: Sequence[object]) -> tuple[list[Tensor | None], Device]:
    """Return an op's operands as tensors on one device, and that device.

    The device is that of the operands that already have one, else the current device. Numbers,
    arrays, lists and tuples are converted to tensors. If the op has optional operands, None stands
    for an absent one and is returned as None.

    Raises:
        DeviceError: operands are on several devices.
        ArgumentError: an operand is something else.
    """
    device: Device | None = None
    like = None
    for i, x in enumerate(operands):
        if isinstance(x, Tensor):
            if like is None and i >= op.promote_from:
                like = x._type.dtype
            own = x._type.device
            if own is None and hasattr(x, "_init"):
                settle(x)
                own = x._type.device
            if own is not None and own is not device:
                if device is not None:
                    raise DeviceError(
                        f"{op.name}: got operands on {device} and {own}; wanted all on one device: "
                        f'move one with move_to("{device}")'
                    )
                device = own
    if device is None:
        device = registry.current_device()
        check_index(device.name, device.index)
    tensors: list[Tensor | None] = []
    for i, x in enumerate(operands):
        if isinstance(x, Tensor):
            if x._type.device is None:
                commit(x, device)
            tensors.append(x)
        elif x is None and op.has_optional:
            tensors.append(None)
        elif isinstance(x, (bool, int, float, complex, np.generic)):
            tensors.append(_number(x, like if i >= op.promote_from else None, device))
        elif isinstance(x, (np.ndarray, list, tuple)):
            made = Tensor(x)
            commit(made, device)
            tensors.append(made)
        else:
            raise operand_error(op.name, x)
    return tensors, device


def _number(value: complex | np.generic, like: DType | None, device: Device) -> Tensor:
    """Return a number as a cached 0-d tensor on a device.

    `like` is the dtype of a tensor operand, or None. The result has the dtype
    `promote_scalar(like, value)`, or `scalar_dtype(value)` if `like` is None.
    """
    dtype = scalar_dtype(value) if like is None else promote_scalar(like, value)
    key = (value.__class__, repr(value), dtype, device)
    found = _numbers.get(key)
    if found is None:
        array = np.array(wrapped(value, dtype)).astype(dtype.np)
        found = Tensor._make(TensorType.of((), dtype), array)
        commit(found, device)
        if len(_numbers) >= _NUMBER_LIMIT:
            _numbers.clear()
        _numbers[key] = found
    return found


def _run_on_host(
    op: Op, tensors: Sequence[Tensor | None], attributes: Mapping[str, object], device: Device
) -> Tensor | tuple[Tensor, ...]:
    """Run an op that always runs on the host, by its NumPy reference; return its results.

    Such an op is not compiled, because the shape of its results may depend on values.
    """
    arrays = [None if t is None else t.asnumpy() for t in tensors]
    assert op.reference_rule is not None
    found = op.reference_rule(*op.arguments(arrays), **attributes)
    parts = found if isinstance(found, tuple) else (found,)
    out = []
    for array in parts:
        made = Tensor(np.asarray(array))
        commit(made, device)
        out.append(made)
    results = tuple(out) if isinstance(found, tuple) else out[0]
    return (
        without_rule(results, tensors, MissingRuleError(op.name)) if op.differentiable else results
    )
