"""Parameters of distributions and bijectors: their dtype, conversion, shapes and limits.

The two base classes use these functions. They check values when an object is created and never
inside a computation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from ...dtype import DType, as_dtype, float32, float64
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...parameter import Parameter
from ...tensor import Tensor
from ...types import broadcast_shapes
from .._types import Array, DTypeLike

__all__ = ["Value", "as_parameter", "check_positive", "check_probability", "checked_dtype",
           "common_shape", "number_text", "parameter_dtype", "values_of"]  # fmt: skip

# what a parameter may be: number, list, array, Tensor or Parameter
Value: TypeAlias = "float | Sequence[object] | Array | Tensor | None"


def checked_dtype(owner: str, dtype: DTypeLike, whole: bool = False) -> DType:
    """Return the dtype of samples; it must be floating, or with `whole` floating or an integer.

    Raises:
        TypeError: another dtype.
    """
    found = as_dtype(dtype)
    if found.is_floating or (whole and found.is_integer):
        return found
    wanted = "a floating or an integer dtype" if whole else "a floating dtype"
    raise ArgumentError(f"{owner}: got dtype={found}; wanted {wanted}")


def parameter_dtype(owner: str, values: dict[str, Value], dtype: DType | None) -> DType:
    """Return the dtype in which the parameters of a distribution are kept.

    It is the dtype of the given Tensors and arrays, but float32 where they are integers or float64.
    If there are none, it is `dtype` if that is floating, else float32.

    Raises:
        TypeError: Tensors or arrays of different dtypes.
    """
    given = {
        name: as_dtype(value.dtype)
        for name, value in values.items()
        if isinstance(value, (Tensor, np.ndarray))
    }
    if len(set(given.values())) > 1:
        text = ", ".join(f"{name} of {found}" for name, found in given.items())
        raise ArgumentError(f"{owner}: got {text}; wanted one dtype for all parameters")
    for found in given.values():
        return found if found.is_floating and found is not float64 else float32
    return dtype if dtype is not None and dtype.is_floating else float32


def as_parameter(owner: str, name: str, value: Value, dtype: DType | None) -> Tensor:
    """Convert a distribution's parameter to a Tensor of `dtype`; return a Parameter unchanged.

    Raises:
        TypeError: a bool, None or an object that is no number, list, array or Tensor.
    """
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return value if dtype is None else value.astype(dtype)
    if isinstance(value, bool) or not isinstance(value, (int, float, list, np.ndarray)):
        raise ArgumentError(
            f"{owner}: got {name}={value!r}; wanted a number, a list, an array or a Tensor"
        )
    return Tensor(value) if dtype is None else Tensor(value, dtype)


def common_shape(owner: str, shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which the shapes of the parameters broadcast.

    Raises:
        ValueError: shapes that do not broadcast.
    """
    listed = list(shapes)
    found = broadcast_shapes(*listed) if listed else ()
    if found is None:
        raise ShapeError(f"{owner}: got parameters of shapes {listed}; wanted ones that broadcast")
    return found


def values_of(value: Tensor | None) -> Array | None:
    """Return the elements of a parameter as a NumPy array, or None if the parameter is None."""
    return None if value is None else value.asnumpy()


def check_positive(owner: str, name: str, value: Tensor | None, zero: bool = False) -> None:
    """Raise ValueError if an element is 0 or less; with `zero`, if an element is below 0."""
    found = values_of(value)
    if found is not None and not np.all(found >= 0 if zero else found > 0):
        raise ArgumentValueError(
            f"{owner}: got {name} of at least {found.min()}; wanted "
            f"{'no element below zero' if zero else 'all elements greater than zero'}"
        )


def check_probability(owner: str, name: str, value: Tensor | None) -> None:
    """Raise ValueError unless all elements of a parameter lie strictly between 0 and 1."""
    found = values_of(value)
    if found is not None and not np.all((found > 0) & (found < 1)):
        raise ArgumentValueError(
            f"{owner}: got {name} from {found.min()} to {found.max()}; wanted all elements greater "
            "than zero and less than one"
        )


def number_text(values: dict[str, Tensor], labels: dict[str, str]) -> str:
    """Return the text of scalar parameters, such as "mean = 0.0, standard deviation = 1.0".

    `values` has the parameters by name. `labels` maps a name to the words to print instead; a name
    that is not in it is printed itself.
    """
    return ", ".join(f"{labels.get(name, name)} = {value}" for name, value in values.items())
