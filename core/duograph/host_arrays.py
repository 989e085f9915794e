"""Converts what users pass for a tensor to NumPy arrays, and elements to Python numbers.

`Tensor` and `Parameter` are built from arrays, which are made here from numbers, nested sequences
and other arrays. The functions know nothing of tensors; a caller replaces tensors inside a sequence
by arrays first.
"""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import numpy as np

from .dtype import (
    EXTENSIONS,
    DType,
    as_dtype,
    bool_,
    complex128,
    float32,
    int4,
    int64,
    uint64,
)  # fmt: skip
from .errors import ArgumentError, ArgumentValueError, DTypeError, IndexRangeError

__all__ = ["Array", "array_of", "item_of", "python_number", "shape_tuple"]

Array: TypeAlias = np.ndarray[Any, Any]


def array_of(data: object, dtype: DType | None, kind: str) -> Array:
    """Return a new C-contiguous NumPy array of a number, an array or a nested sequence.

    Without a dtype, Python ints become int64 (uint64 above its range), floats float32, complex
    numbers complex128, and NumPy values keep their own dtype.

    Args:
        data: a number, an array, or a nested sequence of these.
        dtype: the element type wanted; None for the default above.
        kind: name of the class that the user passed, for messages.

    Raises:
        DTypeError: the elements are not numbers.
        ArgumentValueError: a ragged sequence, or an int of more than 64 bits.
    """
    if isinstance(data, np.ndarray):
        found = data
    elif isinstance(data, (bool, np.bool_)):
        found = np.array(data, bool_.np)
    elif isinstance(data, np.generic):
        found = np.asarray(data)
    elif isinstance(data, int):
        return _array_of_int(data, dtype)
    elif isinstance(data, float):
        found, dtype = np.array(data, np.float64), dtype or float32
    elif isinstance(data, complex):
        found, dtype = np.array(data, np.complex128), dtype or complex128
    else:
        found = _array_of_sequence(data, kind)
        if dtype is None:
            dtype = _sequence_dtype(data, found)
    if not is_number(found.dtype):
        raise DTypeError(f"Tensor: got {_described(data, kind, found)}")
    target = dtype or as_dtype(found.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        # np.array keeps 0-d arrays 0-d, ascontiguousarray does not
        return np.array(found, dtype=target.np, order="C")


def _described(data: object, kind: str, found: Array) -> str:
    """Return the text of an error for data that are not numbers: what they are, what was wanted.

    Args:
        data: what the user passed.
        kind: name of the class that the user passed.
        found: the NumPy array made of the data.
    """
    wanted = "wanted numbers: a number, nested lists of numbers, a NumPy array or a Tensor"
    if isinstance(data, str):
        return f"the text {data!r} (a str); {wanted}. float(text) reads a number from a text"
    if isinstance(data, dict):
        key = f": [{next(iter(data))!r}]" if data else ""
        return f"a dict; {wanted}. Convert one value of it, which its key gives{key}"
    if found.dtype.kind in "US":
        return f"a {kind} of texts (str); {wanted}. Number the words first, such as {{'cat': 0}}"
    elements = (
        {"None" if x is None else type(x).__name__ for x in found.flat}
        if found.dtype.kind == "O"
        else set()
    )
    if "None" in elements:
        wanted += ". Fill a missing value, such as with float('nan')"
    of = " and ".join(sorted(elements)[:3]) if elements else f"element type {found.dtype}"
    return f"a {kind} of {of}; {wanted}"


def is_number(dtype: np.dtype[np.generic]) -> bool:
    """Return whether NumPy elements are numbers that tensors can hold, perhaps after a cast.

    NumPy itself knows the dtypes of the package ml_dtypes, such as bfloat16, as bytes only.
    """
    return dtype in EXTENSIONS if dtype.isbuiltin == 2 else dtype.kind in "biufc"


def _array_of_int(value: int, dtype: DType | None) -> Array:
    """Return a Python int as a 0-d NumPy array; it wraps around if the dtype is too small for it.

    Raises:
        ArgumentValueError: the int has more than 64 bits.
    """
    if not -(2**63) <= value < 2**64:
        raise ArgumentValueError(f"Tensor: got {value}; wanted an int of at most 64 bits")
    natural = int64 if value < 2**63 else uint64
    dtype = dtype or natural
    return np.array(value, (natural if dtype.is_integer else dtype).np).astype(dtype.np)


def _array_of_sequence(data: object, kind: str) -> Array:
    try:
        return np.array(data)
    except (ValueError, TypeError) as error:
        raise ArgumentValueError(
            f"Tensor: got {kind} that is no rectangular array of numbers: "
            f"{_ragged(data) or error}; wanted rows of one length (fill the short ones up)"
        ) from None


def _ragged(data: object) -> str:
    """Return which rows of nested lists differ in length, or ""."""
    if not isinstance(data, (list, tuple)) or not all(isinstance(x, (list, tuple)) for x in data):
        return ""
    other = next((x for x in data if len(x) != len(data[0])), None)
    if other is not None:
        return f"it has a row of length {len(data[0])} and one of length {len(other)}"
    return next((found for x in data if (found := _ragged(x))), "")


def _sequence_dtype(data: object, array: Array) -> DType | None:
    """Return float32 for a sequence of Python floats, which NumPy makes float64; else None."""
    if (array.dtype == np.float64 or array.size == 0) and not _has_numpy(data):
        return float32
    return None


def _has_numpy(data: object) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_numpy(v) for v in data)
    return isinstance(data, (np.ndarray, np.generic))


def shape_tuple(shape: object) -> tuple[int, ...]:
    """Convert a shape, given as an int or a sequence of ints, to a tuple.

    Raises:
        ArgumentError: `shape` is neither.
    """
    try:
        if isinstance(shape, (tuple, list, np.ndarray)):
            return tuple(operator.index(n) for n in shape)
        return (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"shape: got {shape!r}; wanted an int or a tuple of ints") from None


def python_number(value: Any) -> bool | int | float | complex:
    """Return a NumPy scalar or an array of one element as a Python number (bfloat16 as a float)."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype not in EXTENSIONS:
        number: bool | int | float | complex = value.item()
        return number
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == int4.np:
        return int(value.item() if isinstance(value, np.ndarray) else value)
    return float(value.item() if isinstance(value, np.ndarray) else value)


def item_of(array: Array, index: int | tuple[int, ...] | None) -> bool | int | float | complex:
    """Return an array's only element, or the element at an index, as a Python number.

    An int index counts the elements of the flattened array.

    Raises:
        ArgumentValueError: more than one element and no index.
        ArgumentError: an index that is neither an int nor a tuple of ints.
        IndexRangeError: no element is at the index.
    """
    if index is None:
        if array.size != 1:
            raise ArgumentValueError(
                f"item: got a tensor of shape {array.shape}; wanted one element, or an index"
            )
        return python_number(array)
    whole = index if isinstance(index, tuple) else (index,)
    if not all([isinstance(i, (int, np.integer)) for i in whole]):
        raise ArgumentError(f"item: got index {index!r}; wanted an int or a tuple of ints")
    searched = array if isinstance(index, tuple) else array.reshape(-1)
    if len(whole) != searched.ndim or not all(
        [-n <= i < n for i, n in zip(whole, searched.shape, strict=True)]
    ):
        raise IndexRangeError(
            f"item: got index {index!r} for a tensor of shape {array.shape}; wanted a position "
            f"among its {array.size} elements, or one along each of its {array.ndim} axes"
        )
    return python_number(searched[whole])
