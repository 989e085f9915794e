"""Test backends with only the 30 kernels that every backend must have, in NumPy.

Tests use them to check that the core decomposes every other op into these kernels. A buffer handle
is a flat NumPy array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from duograph.backend.protocol import Backend, DeviceInfo
from duograph.dtype import ALL, DType, bool_, float32, int32, int64, uint32
from duograph.op import Op
from duograph.types import TensorType

MAKING = ("strided_copy", "fill", "iota", "cast", "concat")
ARITHMETIC = ("add", "sub", "mul", "div", "floor", "maximum", "exp", "log", "sin", "sqrt")
CHOOSING = ("less", "equal", "select")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_not", "shift_left", "shift_right")
SUMMING = ("reduce_sum", "reduce_max", "matmul")
INDEXING = ("gather", "scatter_set", "scatter_add")
INNER_RING = frozenset(MAKING + ARITHMETIC + CHOOSING + BITS + SUMMING + INDEXING)
# With complex dtypes, one more is required: no other op separates NaN and infinities of the parts.
COMPLEX_RING = INNER_RING | {"imag"}


class InnerRing(Backend):
    """A NumPy backend with only the 30 kernels that every backend must have.

    The core must decompose all other ops into these kernels.
    """

    name = "InnerRing"
    dtypes: tuple[DType, ...] = (bool_, int32, int64, uint32, float32)

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "inner ring", f"{len(INNER_RING)} kernels in NumPy")]

    def copy_in(self, array: np.ndarray[Any, Any], device_id: int) -> Any:
        return np.array(array).reshape(-1)

    def copy_out(
        self, handle: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device_id: int
    ) -> np.ndarray[Any, Any]:
        return np.array(handle, dtype).reshape(shape)

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Any],
        device_id: int,
    ) -> Callable[..., Any] | None:
        required = COMPLEX_RING if types and types[0].dtype.is_complex else INNER_RING
        if op.name not in required or op.reference_rule is None:
            return None
        (result,) = op.infer_types(types, attributes)
        if any(t.dtype not in self.dtypes for t in (*types, result)):
            return None
        reference = op.reference_rule
        shapes = [t.shape for t in types]

        def call(*handles: Any) -> Any:
            arrays = [h.reshape(s) for h, s in zip(handles, shapes, strict=True)]
            with np.errstate(all="ignore"):
                found = reference(*op.arguments(arrays), **attributes)
            return np.array(found, result.dtype.np, order="C").reshape(-1)

        return call


class WideRing(InnerRing):
    """The kernels of `InnerRing` on all dtypes (and `imag`), to check decompositions."""

    name = "WideRing"
    dtypes = ALL

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "wide ring", f"{len(INNER_RING)} kernels in NumPy, all dtypes")]
