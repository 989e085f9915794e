"""Conversion of user arguments to the types that ops accept.

The public functions of `ops` call these functions. Each returns the converted value, or raises an
error that states the received and the expected value. The parameters `name` (the function that the
user called) and `what` (the name of the argument) serve the error message only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..advice import tensor_hint
from ..dtype import DType
from ..errors import ArgumentError, DTypeError
from ..sizes import size_like
from ..tensor import Tensor

# Type aliases for the signatures of several families.
Number: TypeAlias = "int | float"
Scalar: TypeAlias = "int | float | complex"  # a bool is an int
Axis: TypeAlias = "int | Sequence[int] | None"  # None is all axes

__all__ = ["int_of", "ints_of", "number_of", "refuse_complex", "tensor_of", "tensors_of"]


def ints_of(name: str, what: str, value: object) -> tuple[int, ...]:
    """Convert an int, a sequence of ints, or an integer tensor to a tuple of ints.

    `name` and `what` name the user's function and argument in errors.

    Raises:
        TypeError: the value has another type.
    """
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return (size_like(value),)
    if isinstance(value, (tuple, list)):
        out = []
        for v in value:
            if isinstance(v, Tensor) and v.size == 1:
                v = v.item()
            if isinstance(v, (bool, np.bool_)) or not isinstance(v, (int, np.integer)):
                raise ArgumentError(f"{name}: got {what}={value!r}; wanted ints")
            out.append(size_like(v))
        return tuple(out)
    raise ArgumentError(f"{name}: got {what}={value!r}; wanted an int or a tuple of ints")


def int_of(name: str, what: str, value: object) -> int:
    """Convert an integer argument, which may be a Tensor of one element, to an int.

    `name` and `what` name the user's function and argument in errors.

    Raises:
        TypeError: the value has another type; a bool or a sequence is no int.
    """
    if isinstance(value, Tensor) and value.size == 1:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ArgumentError(f"{name}: got {what}={value!r}; wanted an int")
    return size_like(value)


def number_of(name: str, what: str, value: object) -> float:
    """Convert a real number or a tensor of one element to a float.

    `name` and `what` name the user's function and argument in errors.

    Raises:
        TypeError: the value has another type.
    """
    if isinstance(value, Tensor) and value.size == 1:
        value = value.item()
    if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        raise ArgumentError(f"{name}: got {what}={value!r}; wanted a number")
    return float(value)


def refuse_complex(name: str, value: object, dtype: DType) -> None:
    """Raise an error for a complex number or Tensor that would become an element of a real dtype.

    `name` is the function that the error names. A cast would discard the imaginary part.

    Raises:
        DTypeError: the value is complex and `dtype` is not.
    """
    if dtype.is_complex:
        return
    if isinstance(value, Tensor):
        if value.dtype.is_complex:
            raise DTypeError(
                f"{name}: got a {value.dtype.name} value for {dtype.name}; wanted a real one"
            )
    elif isinstance(value, (complex, np.complexfloating)):
        raise DTypeError(f"{name}: got {value} for {dtype.name}; wanted a real number")


def tensor_of(name: str, what: str, value: object) -> Tensor:
    """Return the value if it is a Tensor.

    `name` and `what` name the user's function and argument in errors.

    Raises:
        TypeError: the value has another type.
    """
    if not isinstance(value, Tensor):
        raise ArgumentError(
            f"{name}: got {type(value).__name__} for {what}; wanted a Tensor{tensor_hint(value)}"
        )
    return value


def tensors_of(name: str, what: str, value: object) -> tuple[Tensor, ...]:
    """Return the items of a tuple or list, which must all be Tensors, as a tuple.

    `name` and `what` name the user's function and argument in errors.

    Raises:
        TypeError: the value has another type.
    """
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(
            f"{name}: got {type(value).__name__} for {what}; wanted a tuple or list of Tensors"
        )
    return tuple([tensor_of(name, what, v) for v in value])
