"""Functions that query or convert tensors: shape, size, dtype, and Python numbers.

Users and primitive classes call these functions. Queries must not read the values of a tensor, so
that they work while a graph is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtype import DType, DTypeLike, as_dtype, float32, int32, int64
from ..errors import ArgumentError
from ..tensor import Tensor
from .creation import cast
from .creation_functions import converted_number, number_and_dtype
from .methods import tensor_method
from .movement import identity
from .primitive import primitive
from .shape_primitives import dense_strides

__all__ = [
    "tuple_to_array", "scalar_to_tensor", "scalar_to_array", "scalar_cast", "shape", "shape_",
    "dyn_shape", "size", "numel", "rank", "dtype", "type_as", "is_tensor", "is_floating_point",
    "is_complex",
]  # fmt: skip


@primitive("TupleToArray")
def tuple_to_array(input_x: Sequence[bool | int | float]) -> Tensor:
    """Convert numbers to a 1-d tensor of int32 or float32 (`mindspore.ops.tuple_to_array`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.tuple_to_array((1, 2, 3))
        Tensor(shape=[3], dtype=Int32, value= [1, 2, 3])
    """
    if not isinstance(input_x, (tuple, list)):
        raise ArgumentError(
            f"tuple_to_array: got {type(input_x).__name__}; wanted a tuple of numbers"
        )
    made = Tensor(list(input_x))
    return cast(made, int32) if made.dtype is int64 else made


@primitive("ScalarToTensor")
def scalar_to_tensor(input_x: bool | int | float | complex, dtype: DTypeLike = float32) -> Tensor:
    """Convert a number to a 0-d tensor (`mindspore.ops.scalar_to_tensor`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.scalar_to_tensor(1, ms.int32)
        Tensor(shape=[], dtype=Int32, value= 1)
    """
    if isinstance(input_x, Tensor):
        return cast(input_x, dtype).reshape(())
    return Tensor(number_and_dtype("scalar_to_tensor", input_x)[0], dtype)


@primitive("ScalarToArray")
def scalar_to_array(input_x: bool | int | float | complex) -> Tensor:
    """Convert a number to a 0-d tensor of the number's dtype (`mindspore.ops.scalar_to_array`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.scalar_to_array(1.5)
        Tensor(shape=[], dtype=Float32, value= 1.5)
    """
    return Tensor(input_x)


def scalar_cast(input_x: object, input_y: object) -> bool | int | float | complex:
    """Convert a number to the Python type of a dtype (`mindspore.ops.scalar_cast`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.scalar_cast(1.7, ms.int32)
        1
    """
    return converted_number(number_and_dtype("scalar_cast", input_x)[0], as_dtype(input_y))


# ---- the type of a tensor ------------------------------------------------------------------------


def _tensor(name: str, x: object) -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{name}: got {type(x).__name__}; wanted a Tensor")
    return x


@primitive("Shape")
def shape(input_x: Tensor) -> tuple[int, ...]:
    """Return the shape as a tuple of ints (`mindspore.ops.shape`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.shape(ms.Tensor([[1, 2]]))
        (1, 2)
    """
    return _tensor("shape", input_x).shape


shape_ = shape


@primitive("TensorShape")
def dyn_shape(input_x: Tensor) -> Tensor:
    """Return the shape as a tensor of int64 (`mindspore.ops.dyn_shape`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dyn_shape(ms.Tensor([[1, 2]]))
        Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    return Tensor(np.array(_tensor("dyn_shape", input_x).shape, np.int64))


@primitive("Size")
def size(input_x: Tensor) -> int:
    """Return the number of elements (`mindspore.ops.size`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.size(ms.Tensor([[1, 2]]))
        2
    """
    return _tensor("size", input_x).size


def numel(input: Tensor) -> int:
    """Return the number of elements (`mindspore.ops.numel`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.numel(ms.Tensor([[1, 2]]))
        2
    """
    return _tensor("numel", input).size


@primitive("Rank")
def rank(input_x: Tensor) -> int:
    """Return the number of axes (`mindspore.ops.rank`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.rank(ms.Tensor([[1, 2]]))
        2
    """
    return len(_tensor("rank", input_x).shape)


@primitive("DType")
def dtype(x: Tensor) -> DType:
    """Return the element type (`mindspore.ops.dtype`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.dtype(ms.Tensor([1.0]))
        duograph.float32
    """
    return _tensor("dtype", x).dtype


def is_tensor(obj: object) -> bool:
    """Return whether `obj` is a Tensor (`mindspore.ops.is_tensor`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.is_tensor(1)
        False
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a floating one (`mindspore.ops.is_floating_point`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.is_floating_point(ms.Tensor([1.0]))
        True
    """
    return _tensor("is_floating_point", input).dtype.is_floating


def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is a complex one (`mindspore.ops.is_complex`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.is_complex(ms.Tensor([1.0]))
        False
    """
    return _tensor("is_complex", input).dtype.is_complex


@tensor_method("type_as")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Convert `input` to the dtype of `other` (`mindspore.ops.type_as`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.type_as(ms.Tensor([1]), ms.Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    return cast(input, other.dtype)


@tensor_method("astype")
def _tensor_astype(self: Tensor, dtype: DTypeLike, copy: bool = True) -> Tensor:
    """Convert every element to `dtype`; see `ops.cast`.

    Without `copy`, a tensor that has this dtype already is returned itself.
    """
    found = cast(self, dtype)
    return identity(self) if copy and found is self else found


@tensor_method("type")
def _tensor_type(self: Tensor, dtype: DTypeLike | None = None) -> str | Tensor:
    """Return the name of the dtype or, given `dtype`, the tensor converted to `dtype`."""
    return str(self.dtype) if dtype is None else _tensor_astype(self, dtype)


@tensor_method("to")
def _tensor_to(
    self: Tensor,
    *args: Any,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Tensor:
    """Convert to a dtype, move to a device, or both.

    The call forms are ``x.to(ms.float16)``, ``x.to("CPU")``, and ``x.to(other)`` for the dtype and
    device of a tensor. The result is another Tensor also where the dtype and device are those of
    this one, whatever `copy` is. `non_blocking` is the opposite of `blocking` in `Tensor.move_to`.
    """
    for value in args if other is None else (other, *args):
        if isinstance(value, Tensor):
            dtype = value.dtype
            where = value._type.device
            device = repr(where) if where is not None else device
        elif isinstance(value, str) and not _names_dtype(value):
            device = value
        elif value is not None and not isinstance(value, bool):
            dtype = value
    out = self if dtype is None else cast(self, dtype)
    own = out._type.device
    if device is None or (own is not None and repr(own) in (device, f"{device}:0")):
        return identity(self) if out is self else out
    return out.move_to(device, not non_blocking)


def _names_dtype(text: str) -> bool:
    try:
        as_dtype(text)
    except TypeError:
        return False
    return True


def _converter(name: str, dtype_name: str) -> None:
    def method(self: Tensor) -> Tensor:
        found = cast(self, dtype_name)
        return identity(self) if found is self else found

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return the tensor with every element converted to {dtype_name}."
    globals()[f"_tensor_{name}"] = tensor_method(name)(method)


for _name, _dtype_name in {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "byte": "uint8",
    "bool": "bool",
}.items():
    _converter(_name, _dtype_name)


@tensor_method("set_dtype")
def _tensor_set_dtype(self: Tensor, dtype: DTypeLike) -> Tensor:
    """Convert every element to `dtype`, in place; return the tensor."""
    self._rebind(cast(self, dtype))
    return self


@tensor_method("clone")
def _tensor_clone(self: Tensor) -> Tensor:
    """Return a copy of the tensor; gradients flow through it."""
    return identity(self)


@tensor_method("data_sync")
def _tensor_data_sync(self: Tensor, blocking: bool = True) -> None:
    """Wait until the tensor's values are computed, as `asnumpy` also does.

    `blocking` has no effect.
    """
    self._values()


@tensor_method("stride")
def _tensor_stride(self: Tensor, dim: int | None = None) -> int | list[int]:
    """Return the stride, in elements, of one axis or of all axes."""
    steps = list(dense_strides(self.shape))
    return steps if dim is None else steps[dim]


@tensor_method("storage_offset")
def _tensor_storage_offset(self: Tensor) -> int:
    """Return 0: a tensor always begins at the start of its buffer."""
    return 0
