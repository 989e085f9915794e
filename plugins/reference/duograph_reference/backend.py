"""The reference backend: runs each op by its NumPy `reference` rule, for tests.

The core calls its methods like those of any backend. A buffer handle is a NumPy array. The array
may have another shape (of the same size) than the operand's type, because a reshape returns its
operand's handle; kernels must therefore reshape it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from duograph.backend.dlpack import HOST, array_of, capsule_of
from duograph.backend.protocol import Backend, DeviceInfo
from duograph.dtype import ALL, STORAGE
from duograph.op import Op
from duograph.types import TensorType


class Reference(Backend):
    """A NumPy backend that runs the `reference` rule of every primitive op.

    The core decomposes composite ops into primitives.
    """

    name = "Reference"
    dtypes = (*ALL, *STORAGE)

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "NumPy", f"NumPy {np.__version__} on the host")]

    def copy_in(self, array: np.ndarray[Any, Any], device_id: int) -> Any:
        return np.array(array, order="C")

    def copy_out(
        self, handle: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device_id: int
    ) -> np.ndarray[Any, Any]:
        return handle.reshape(shape)

    def from_host(self, array: np.ndarray[Any, Any], device_id: int) -> Any:
        return array

    def dlpack_device(self, device_id: int) -> tuple[int, int]:
        return HOST

    def to_dlpack(
        self,
        handle: Any,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        device_id: int,
        stream: int | None,
        max_version: tuple[int, int] | None,
    ) -> Any:
        return capsule_of(handle.reshape(shape), max_version=max_version)

    def from_dlpack(
        self, source: Any, device_id: int, copy: bool
    ) -> tuple[Any, tuple[int, ...], np.dtype[Any]]:
        array = array_of(source)
        if copy or not (array.flags.c_contiguous and array.flags.writeable):
            array = np.array(array, order="C")
        return array, array.shape, array.dtype

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Any],
        device_id: int,
    ) -> Callable[..., Any] | None:
        reference = op.reference_rule
        if reference is None:
            return None
        shapes = [None if t is None else t.shape for t in types]
        results = op.infer_types(types, attributes)
        single = isinstance(op.result_types(types, attributes), TensorType)

        def call(*handles: Any) -> Any:
            arrays = [
                None if s is None else h.reshape(s) for h, s in zip(handles, shapes, strict=True)
            ]
            with np.errstate(all="ignore"):
                found = reference(*op.arguments(arrays), **attributes)
            if single:
                return _dense(found, results[0])
            return tuple(_dense(f, t) for f, t in zip(found, results, strict=True))

        return call


def _dense(value: Any, type_: TensorType) -> np.ndarray[Any, Any]:
    """Convert the value that a reference rule returned to a C-ordered array of the inferred type.

    Raises:
        AssertionError: the value does not have the inferred shape, which is a bug of the rule.
    """
    array = np.asarray(value)
    if array.shape != type_.shape:
        raise AssertionError(f"reference gave shape {array.shape}, infer says {type_.shape}")
    return np.array(array, dtype=type_.dtype.np, order="C")
