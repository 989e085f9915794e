"""A complete backend in one file: 30 kernels, two copies and nothing optional.

The "device" is a class that owns bytes, and NumPy computes on them; replace them by your driver.
The file passes the whole conformance suite, because duograph decomposes every other op into these
kernels. To make it yours:

1. implement `available`, `devices`, `copy_in` and `copy_out` for your hardware;
2. replace one kernel at a time, and keep running
   ``pytest --pyargs duograph.conformance --device Template``;
3. add kernels for ops that are slow when decomposed, such as softmax, conv and layer_norm_core. A
   backend may have a kernel for any op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from duograph.backend.protocol import Backend, DeviceInfo
from duograph.dtype import bool_, float32, int32, int64, uint32
from duograph.errors import DeviceMemoryError, IndexRangeError
from duograph.op import Op
from duograph.types import TensorType

Array: TypeAlias = np.ndarray[Any, Any]


class Memory:
    """A handle to device memory; duograph stores handles and never looks inside them.

    Free the memory in `__del__` (or `weakref.finalize`), which runs when the last reference is
    gone.
    """

    __slots__ = ("data",)

    def __init__(self, nbytes: int) -> None:
        try:
            self.data = np.empty(nbytes, np.uint8)
        except MemoryError:
            raise DeviceMemoryError(f"Template: got a request for {nbytes} bytes") from None

    def array(self, type_: TensorType) -> Array:
        """Return the contents of device memory as a NumPy array of the given tensor type.

        The type is an argument, because the result of a reshape has the same handle as its operand.
        """
        return self.data.view(type_.dtype.np).reshape(type_.shape)


class Template(Backend):
    """Example backend; `duograph.backend.protocol.Backend` has defaults for all other methods."""

    name = "Template"
    # Other dtypes raise an error that names these. These five are required.
    dtypes = (bool_, int32, int64, uint32, float32)
    # An op without kernel and decomposition: "off" raises, "warn" and "on" run it on the host.
    host_fallback = "off"
    # Tests that can never pass, and tests that fail for now: patterns of test names with reasons.
    # Both are strict: the first must raise UnsupportedOpError, never return a wrong result; an
    # entry of the second that passes fails the run.
    conformance_unsupported: Mapping[str, str] = {}
    conformance_expected_failures: Mapping[str, str] = {}

    def available(self) -> str | None:
        """Return None, or why the device is unusable; `duograph devices` prints the reason."""
        return None

    def devices(self) -> list[DeviceInfo]:
        """Return one description per device; users choose a device with device_id."""
        return [DeviceInfo(0, "template", "NumPy, playing a device", memory_bytes=0)]

    def copy_in(self, array: Array, device_id: int) -> Memory:
        """Copy a C-contiguous array, which may be 0-d or empty, to new device memory."""
        memory = Memory(array.nbytes)
        memory.data[:] = array.reshape(-1).view(np.uint8)
        return memory

    def copy_out(
        self, handle: Memory, shape: tuple[int, ...], dtype: np.dtype[np.generic], device_id: int
    ) -> Array:
        """Copy device memory to a new NumPy array, after all kernels that write it."""
        return np.array(handle.data).view(dtype).reshape(shape)

    def synchronize(self, device_id: int) -> None:
        """Wait for all launched kernels of a device.

        Launches may be asynchronous on a real device; the Template backend's launches are not.
        """

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, object],
        device_id: int,
    ) -> Callable[..., Memory] | None:
        """Return a function that runs an op for the given operand types.

        The result None means that there is no kernel; duograph then decomposes the op. duograph
        calls `prepare` once per op, types and attributes and caches the result, so compile, choose
        a kernel and compute launch sizes here. The returned function receives handles, allocates
        its results and returns them.
        """
        kernel = KERNELS.get(op.name)
        if kernel is None:
            return None
        result = op.infer_types(types, attributes)[0]
        if any(t.dtype not in self.dtypes for t in (*types, result)):
            return None

        def call(*handles: Memory) -> Memory:
            operands = [h.array(t) for h, t in zip(handles, types, strict=True)]
            out = Memory(result.nbytes)
            with np.errstate(all="ignore"):  # floating arithmetic never raises on a device
                out.array(result)[...] = kernel(*operands, result=result, **attributes)
            return out

        return call


# ---- kernels: operands and attributes as in duograph's docs/primitives.md
# ----------------


def _elementwise(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a kernel that calls a NumPy function on the operands, which it broadcasts.

    The operands have the same dtype, except those of select.
    """
    return lambda *operands, result: function(*operands)


def _sub(x: Array, y: Array) -> Array:
    return x ^ y if x.dtype == bool else x - y


def _floor(x: Array) -> Array:
    return np.floor(x) if x.dtype.kind == "f" else x


def _shift(function: Callable[[Array, Array], Array], x: Array, y: Array) -> Array:
    # A shift by the width or more leaves 0, or the sign of a negative number; in C it is undefined.
    bits = 8 * x.dtype.itemsize
    rest = np.where(x < 0, -1, 0) if function is np.right_shift else 0
    return np.where(y < bits, function(x, np.minimum(y, bits - 1)), rest)


def _strided_copy(
    x: Array, shape: Sequence[int], strides: Sequence[int], offset: int, result: TensorType
) -> Array:
    """Copy a strided view: out[i] = x.flat[offset + sum(i * strides)], i being an index tuple.

    `shape` is the shape of the view. Every slice, transpose, flip and broadcast is such a copy.
    """
    where = np.full(shape, offset)
    for axis, step in enumerate(strides):
        lead = [1] * len(shape)
        lead[axis] = shape[axis]
        where = where + step * np.arange(shape[axis]).reshape(lead)
    return x.reshape(-1)[where]


def _iota(shape: Sequence[int], axis: int, dtype: object, result: TensorType) -> Array:
    lead = [1] * len(shape)
    lead[axis] = shape[axis]
    return np.arange(shape[axis]).reshape(lead)


def _matmul(x: Array, y: Array, transpose_a: bool, transpose_b: bool, result: TensorType) -> Array:
    x = x.swapaxes(-1, -2) if transpose_a else x
    return np.matmul(x, y.swapaxes(-1, -2) if transpose_b else y)


def _rows(indices: Array, x: Array, axis: int, name: str) -> Array:
    """Add the size of an axis of `x` to negative indices; return the array of all indices.

    Raises IndexRangeError, in the name of the op, if one is out of range. A device that cannot
    raise from a kernel may do anything else that is safe.
    """
    n = x.shape[axis]
    if ((indices < -n) | (indices >= n)).any():
        bad = indices[(indices < -n) | (indices >= n)].reshape(-1)[0]
        raise IndexRangeError.of_axis(name, int(bad), axis, n)
    return np.where(indices < 0, indices + n, indices)


def _gather(x: Array, indices: Array, axis: int, result: TensorType) -> Array:
    return np.take(x, _rows(indices, x, axis, "gather"), axis)


def _scatter(name: str) -> Callable[..., Array]:
    add = name == "scatter_add"

    def kernel(x: Array, indices: Array, updates: Array, axis: int, result: TensorType) -> Array:
        out = np.moveaxis(np.array(x), axis, 0)
        rows = _rows(indices, x, axis, name).reshape(-1)
        new = updates.reshape(*x.shape[:axis], rows.size, *x.shape[axis + 1 :])
        for row, value in zip(
            rows, np.moveaxis(new, axis, 0), strict=True
        ):  # the last duplicate wins
            out[row] = out[row] + value if add else value
        return np.moveaxis(out, 0, axis)

    return kernel


KERNELS: dict[str, Callable[..., Array]] = {
    "strided_copy": _strided_copy,
    "fill": lambda shape, value, dtype, result: value,
    "iota": _iota,
    "cast": lambda x, dtype, result: x.astype(dtype.np),
    "concat": lambda *xs, axis, result: np.concatenate(xs, axis),
    "add": _elementwise(np.add),
    "sub": _elementwise(_sub),
    "mul": _elementwise(np.multiply),
    "div": _elementwise(np.true_divide),
    "floor": _elementwise(_floor),
    "maximum": _elementwise(np.maximum),  # NaN propagates
    "exp": _elementwise(np.exp),
    "log": _elementwise(np.log),
    "sin": _elementwise(np.sin),
    "sqrt": _elementwise(np.sqrt),
    "less": _elementwise(np.less),
    "equal": _elementwise(np.equal),
    "select": _elementwise(np.where),
    "bitwise_and": _elementwise(np.bitwise_and),
    "bitwise_or": _elementwise(np.bitwise_or),
    "bitwise_xor": _elementwise(np.bitwise_xor),
    "logical_not": _elementwise(np.logical_not),
    "shift_left": _elementwise(lambda x, y: _shift(np.left_shift, x, y)),
    "shift_right": _elementwise(lambda x, y: _shift(np.right_shift, x, y)),
    "reduce_sum": lambda x, axis, keepdims, result: np.sum(x, axis, x.dtype, keepdims=keepdims),
    "reduce_max": lambda x, axis, keepdims, result: np.max(x, axis, keepdims=keepdims),
    "matmul": _matmul,
    "gather": _gather,
    "scatter_set": _scatter("scatter_set"),
    "scatter_add": _scatter("scatter_add"),
}
