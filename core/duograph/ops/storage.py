"""Tensor methods about the values as a whole: bytes, address, replacement, extremes with index.

Users call them as methods of Tensor; `ops` exports no function of this module.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import DTypeLike, as_dtype, float32
from ..errors import ArgumentError
from ..tensor import Tensor
from .arguments import Axis
from .comparison import isclose
from .extremes import _max_or_min, amax, amin
from .methods import tensor_method, tensor_property
from .movement import identity, stop_gradient

__all__: list[str] = []


@tensor_method("argmax_with_value")
def _tensor_argmax_with_value(
    self: Tensor, axis: int | None = 0, keep_dims: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest elements along an axis and their indices.

    Args:
        axis: int; None means the largest of all elements, with index 0, both 0-d.
        keep_dims: whether to keep the axis, with size 1.

    Returns:
        (values, int64 indices); among equal elements, the first is taken.

    Raises:
        TypeError: `axis` is not an int.
        ValueError: the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.Tensor([[9, 3], [5, 7]]).argmax_with_value(axis=1))
        [9 7] [0 1]
    """
    return _with_index("argmax_with_value", self, axis, keep_dims, -1)


@tensor_method("argmin_with_value")
def _tensor_argmin_with_value(
    self: Tensor, axis: int | None = 0, keep_dims: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the smallest elements along an axis and their indices.

    Arguments, result and errors are those of `argmax_with_value`.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.Tensor([[9, 3], [5, 7]]).argmin_with_value(axis=1))
        [3 5] [1 0]
    """
    return _with_index("argmin_with_value", self, axis, keep_dims, 1)


def _with_index(
    name: str, x: Tensor, axis: int | None, keep_dims: bool, sign: int
) -> tuple[Tensor, Tensor]:
    if axis is not None and not isinstance(axis, int):
        raise ArgumentError(f"{name}: got {type(axis).__name__} for axis; wanted an int or None")
    values, indices = _max_or_min(name, x, axis, keep_dims, None, None, sign, True)
    return values, indices


@tensor_method("ptp")
def _tensor_ptp(self: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest element minus the smallest, over axes.

    Args:
        axis: int or tuple of ints; None means all.
        keepdims: whether to keep the reduced axes, with size 1.

    Raises:
        ValueError: there are no elements, or the axis is out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor([[4.0, 9.0], [6.0, 7.0]]).ptp(axis=1))
        [5. 1.]
    """
    return amax(self, axis, keepdims) - amin(self, axis, keepdims)


@tensor_method("get_bytes")
def _tensor_get_bytes(self: Tensor) -> bytes:
    """Return the elements as bytes, in C order and the byte order of this machine.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1, 2], ms.int16).get_bytes()
        b'\\x01\\x00\\x02\\x00'
    """
    values = self._values()
    return values.tobytes()


@tensor_method("data_ptr")
def _tensor_data_ptr(self: Tensor) -> int:
    """Return the address of the elements in the host's memory, after copying them there if needed.

    The address can be compared, or passed to a C library that only reads. A buffer never moves, but
    a write in place binds the tensor to another buffer.

    Examples:
        >>> import duograph as ms
        >>> isinstance(ms.Tensor([1.0]).data_ptr(), int)
        True
    """
    address: int = self.asnumpy().ctypes.data
    return address


@tensor_method("flush_from_cache")
def _tensor_flush_from_cache(self: Tensor) -> None:
    """Do nothing: values are never kept in a remote cache.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1.0]).flush_from_cache()
    """


@tensor_method("assign_value")
def _tensor_assign_value(self: Tensor, value: Tensor) -> Tensor:
    """Set the tensor to the value, shape and dtype of another one; return the tensor.

    Raises:
        TypeError: `value` is not a Tensor.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([1, 2, 3])
        >>> x.assign_value(ms.Tensor([1.5]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.50000000e+00])
    """
    if not isinstance(value, Tensor):
        raise ArgumentError(f"assign_value: got {type(value).__name__}; wanted a Tensor")
    self._rebind(identity(value))
    return self


@tensor_method("set_const_arg")
def _tensor_set_const_arg(self: Tensor, const_arg: bool = True) -> Tensor:
    """Return the tensor; the setting has no effect.

    Compiled functions find out from the code whether they need a tensor's values.

    Raises:
        TypeError: `const_arg` is not a bool.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor([1.0]).set_const_arg(True))
        [1.]
    """
    if not isinstance(const_arg, bool):
        raise ArgumentError(f"set_const_arg: got {const_arg!r}; wanted True or False")
    return self


@tensor_property("data")
def _tensor_data(self: Tensor) -> Tensor:
    """The value of the tensor as a separate Tensor, through which no gradient flows.

    Setting the property replaces the value, shape and dtype of the tensor.
    """
    return stop_gradient(self)


def _set_data(self: Tensor, value: Tensor) -> None:
    _tensor_assign_value(self, stop_gradient(value) if isinstance(value, Tensor) else value)


_tensor_data.setter = _set_data  # type: ignore[attr-defined]


@tensor_property("is_meta")
def _tensor_is_meta(self: Tensor) -> bool:
    """False, since every tensor has values, or an initialiser that makes them when needed."""
    return False


@tensor_method("is_pinned", "is_shared")
def _tensor_is_pinned(self: Tensor) -> bool:
    """Return False, since the backend chooses the memory of a tensor.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1.0]).is_pinned()
        False
    """
    return False


@tensor_method("pin_memory")
def _tensor_pin_memory(self: Tensor) -> Tensor:
    """Return the tensor unchanged, since the backend chooses the memory of a tensor.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor([1.0]).pin_memory())
        [1.]
    """
    return self


@tensor_method("allclose")
def _tensor_allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Return whether all elements are close: ``abs(x - other) <= atol + rtol * abs(other)``.

    Args:
        other: Tensor of a shape that broadcasts.
        rtol, atol: the tolerances.
        equal_nan: whether NaN is close to NaN.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1.0]).allclose(ms.Tensor([1.0 + 1e-7]))
        True
    """
    return bool(isclose(self, other, rtol, atol, equal_nan).all())


def _from_bytes(
    bytes_data: bytes, shape: Sequence[int] | None = None, dtype: DTypeLike = float32
) -> Tensor:
    """Return a Tensor of the elements that `get_bytes` returned.

    Args:
        bytes_data: the elements, in the byte order of this machine.
        shape: shape of the Tensor, or None for one axis.
        dtype: dtype of the elements.

    Raises:
        ValueError: the number of bytes does not fit the shape and dtype.
    """
    wanted = as_dtype(dtype)
    array = np.frombuffer(bytes_data, wanted.np).copy()
    return Tensor(array if shape is None else array.reshape(tuple(shape)), wanted)


Tensor.convert_bytes_to_tensor = staticmethod(_from_bytes)
