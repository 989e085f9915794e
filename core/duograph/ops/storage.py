"""Tensor methods about the values as a whole: bytes, address, replacement, extremes with index.

Users call them as methods of Tensor; `ops` exports no function of this module.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import DType, DTypeLike, as_dtype, float32
from ..errors import (
    ArgumentError,
    ArgumentValueError,
    BufferSizeError,
    DTypeError,
    UnsupportedOpError,
)
from ..tensor import Tensor
from .arguments import Axis, int_of, ints_of
from .comparison import isclose
from .extremes import _max_or_min, amax, amin
from .methods import tensor_method, tensor_property
from .movement import identity, stop_gradient
from .shape_primitives import dense_strides, strided_copy

__all__ = ["UntypedStorage"]


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


class UntypedStorage:
    """The bytes of a Tensor (`mindspore.UntypedStorage`), as `Tensor.untyped_storage` returns them.

    Every Tensor has a storage of its own. Sizes are in bytes.

    Examples:
        >>> import duograph as ms
        >>> storage = ms.Tensor([1.0, 2.0]).untyped_storage()
        >>> storage.size(), storage.nbytes(), storage.element_size()
        (8, 8, 1)
    """

    def __init__(self, owner: Tensor) -> None:
        self._owner = owner

    def size(self) -> int:
        """Return the number of bytes."""
        return self._owner.nbytes

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._owner.nbytes

    def __len__(self) -> int:
        return self._owner.nbytes

    def element_size(self) -> int:
        """Return 1: the elements are bytes."""
        return 1

    def data_ptr(self) -> int:
        """Return the address in the host's memory; see `Tensor.data_ptr`."""
        return _tensor_data_ptr(self._owner)

    def is_shared(self) -> bool:
        """Return False: no other process sees the bytes."""
        return False

    @property
    def device(self) -> str:
        """The name of the device of the Tensor, without a number."""
        return self._owner.device.partition(":")[0]

    @property
    def dtype(self) -> DType:
        """The dtype of the Tensor."""
        return self._owner.dtype

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Give the Tensor the bytes of another storage, in place; return the storage.

        `non_blocking` has no effect.

        Raises:
            TypeError: `source` is no storage.
            ValueError: the sizes differ.
        """
        if not isinstance(source, UntypedStorage):
            raise ArgumentError(f"copy_: got {type(source).__name__}; wanted an UntypedStorage")
        if source.nbytes() != self.nbytes():
            raise BufferSizeError(
                f"copy_: got a storage of {source.nbytes()} bytes for one of {self.nbytes()}; "
                "wanted the same"
            )
        self._owner._rebind(_with_bytes_of(source._owner, self._owner.dtype, self._owner.shape))
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Return the storage if it has this size; another size cannot be given to it.

        Raises:
            RuntimeError: another size; the memory of a Tensor is freed when nothing refers to it.
        """
        if int_of("resize_", "size", size) != self.nbytes():
            raise UnsupportedOpError(
                f"resize_: got {size} bytes for a storage of {self.nbytes()}; a storage keeps its "
                "size, and its memory is freed when nothing refers to the Tensor"
            )
        return self


def _with_bytes_of(source: Tensor, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """Return a Tensor of another dtype and shape with the bytes of a Tensor."""
    values = source._values()
    if source.dtype is dtype:
        return Tensor(values.reshape(shape), dtype)
    return Tensor(np.frombuffer(values.tobytes(), dtype.np).reshape(shape), dtype)


@tensor_method("untyped_storage", "storage")
def _tensor_untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the bytes of the tensor as an object that knows their number and address.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1, 2], ms.int16).storage().nbytes()
        4
    """
    return UntypedStorage(self)


@tensor_method("set_")
def _tensor_set_(
    self: Tensor,
    source: Tensor | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
) -> Tensor:
    """Copy shape and elements of another tensor or storage into this tensor; return the tensor.

    A later write to one of the two does not reach the other, since no two Tensors share memory.

    Args:
        source: Tensor, or storage of one, of this tensor's dtype; without it, the tensor becomes
            empty, of shape (0,).
        storage_offset: position of the first element in `source`, in C order.
        size: the new shape; default that of `source`, whose storage has one axis.
        stride: step of each axis in `source`, in elements; given together with `size`.

    Raises:
        TypeError: `source` is neither, or has another dtype.
        ValueError: elements outside of `source`, or not as many strides as sizes.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([0.0])
        >>> print(x.set_(ms.Tensor([1.0, 2.0, 3.0]), 1, (2, 2), (1, 0)))
        [[2. 2.]
         [3. 3.]]
    """
    if source is None:
        self._rebind(Tensor(np.zeros(0, self.dtype.np), self.dtype))
        return self
    if not isinstance(source, (Tensor, UntypedStorage)):
        raise ArgumentError(f"set_: got {type(source).__name__}; wanted a Tensor or a storage")
    if source.dtype is not self.dtype:
        raise DTypeError(
            f"set_: got {source.dtype.name} for a tensor of {self.dtype.name}; wanted the same"
        )
    owner = source if isinstance(source, Tensor) else source._owner
    first = int_of("set_", "storage_offset", storage_offset)
    if size is None:
        wanted = owner.shape if isinstance(source, Tensor) else (owner.size,)
        steps: tuple[int, ...] = dense_strides(wanted)
    else:
        wanted = ints_of("set_", "size", size)
        steps = dense_strides(wanted) if stride is None else ints_of("set_", "stride", stride)
    last = first + sum((n - 1) * s for n, s in zip(wanted, steps))
    if len(steps) != len(wanted) or min((*wanted, *steps, first), default=0) < 0:
        raise ArgumentValueError(
            f"set_: got size={wanted}, stride={steps} and storage_offset={first}; wanted one "
            "stride for each size, and none negative"
        )
    if 0 not in wanted and last >= owner.size:
        raise BufferSizeError(
            f"set_: got size={wanted}, stride={steps} and storage_offset={first}, which reach "
            f"element {last} of {owner.size}"
        )
    self._rebind(strided_copy(owner, wanted, steps, first))
    return self


@tensor_method("requires_grad_")
def _tensor_requires_grad_(self: Tensor, requires_grad: bool = True) -> None:
    """Do nothing: `grad` differentiates with respect to any Tensor that it is asked to.

    Raises:
        RuntimeError: `requires_grad` is False; write `ops.stop_gradient(x)` in the function.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1.0]).requires_grad_()
    """
    if not requires_grad:
        raise UnsupportedOpError(
            "requires_grad_: a Tensor has no flag that stops gradients; write "
            "`ops.stop_gradient(x)` in the function that is differentiated"
        )


@tensor_method("delete_")
def _tensor_delete_(self: Tensor, non_blocking: bool = False) -> Tensor:
    """Refuse to free the memory of a tensor that is in use (`mindspore.Tensor.delete_`).

    Raises:
        RuntimeError: always; memory is freed when nothing refers to the Tensor any more.
    """
    raise UnsupportedOpError(
        "delete_: the memory of a Tensor is freed when nothing refers to it; write `del x`"
    )


@tensor_method("to_")
def _tensor_to_(self: Tensor, device: str | None = None, non_blocking: bool = False) -> Tensor:
    """Move the tensor to a device, in place; return the tensor.

    `non_blocking` is the opposite of `blocking` in `Tensor.move_to`.

    Raises:
        ValueError: there is no such device.

    Examples:
        >>> import duograph as ms
        >>> ms.Tensor([1.0]).to_("CPU").device
        'CPU:0'
    """
    if device is None:
        raise ArgumentValueError("to_: got no device; wanted its name")
    self._rebind(self.move_to(device, not non_blocking))
    return self


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
