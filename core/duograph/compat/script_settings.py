"""Small functions of MindSpore's top namespace: buffers, dtypes of objects, and settings.

`served_paths` makes them available as `duograph.NAME`; nothing else in duograph imports this
module. A setting without a meaning in duograph is checked and stored, so that a script can read it
back, and warns once.
"""

from __future__ import annotations

import enum
import gc
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ..dtype import DType, DTypeLike, as_dtype, bool_, float32, int64
from ..errors import ArgumentError, ArgumentValueError, BufferSizeError, UnsupportedOpError
from ..execution.device import empty_cache
from ..option_checks import warn_moot
from ..parameter import Parameter
from ..tensor import Tensor

__all__ = [
    "QuantDtype", "frombuffer", "get_algo_parameters", "get_ps_context", "get_py_obj_dtype",
    "merge_sliced_parameter", "ms_memory_recycle", "reset_algo_parameters", "set_algo_parameters",
    "set_recursion_limit",
]  # fmt: skip

# ---- values ------------------------------------------------------------------------------------


class _Quantised(enum.Enum):
    """Base class of `QuantDtype`, an enumeration of integer types of quantised networks."""

    def __str__(self) -> str:
        return str(self._name_)

    def value(self) -> int:
        """Return the number that represents the type in MindSpore's files."""
        return int(self._value_)


_BITS = range(1, 17)
QuantDtype: Any = _Quantised(  # type: ignore[call-arg]
    "QuantDtype",
    {**{f"INT{n}": n - 1 for n in _BITS}, **{f"UINT{n}": 99 + n for n in _BITS}},
    module=__name__,
)
QuantDtype.__doc__ = """Names of the integer types of 1 to 16 bits that quantised networks use
(`mindspore.QuantDtype`).

Examples:
    >>> import duograph as ms
    >>> print(ms.QuantDtype.INT8, ms.QuantDtype.INT8.value())
    INT8 7
"""


def frombuffer(buffer: object, dtype: DTypeLike, count: int = -1, offset: int = 0) -> Tensor:
    """Return a 1-d Tensor of the elements in a buffer (`mindspore.frombuffer`).

    Args:
        buffer: bytes, a bytearray, or another object with Python's buffer protocol; it is copied.
        dtype: dtype of the elements.
        count: how many elements; -1 for all.
        offset: position of the first element in bytes.

    Raises:
        TypeError: `buffer` does not support the buffer protocol.
        ValueError: there is no element, or the bytes do not make up whole elements. The error is
            also a RuntimeError.

    Examples:
        >>> import duograph as ms
        >>> print(ms.frombuffer(bytearray([1, 2, 3, 4]), ms.uint8, count=2, offset=1))
        [2 3]
    """
    wanted = as_dtype(dtype)
    try:
        data = memoryview(cast("bytes", buffer)).cast("B")
    except TypeError as error:
        got = type(buffer).__name__
        raise ArgumentError(f"frombuffer: got {got}; wanted an object with a buffer") from error
    size, left = wanted.itemsize, len(data) - offset
    if offset < 0 or left <= 0 or count == 0 or count < -1:
        raise BufferSizeError(
            f"frombuffer: got {len(data)} bytes, count={count} and offset={offset}; wanted at "
            "least one element"
        )
    if (count < 0 and left % size) or count * size > left:
        raise BufferSizeError(
            f"frombuffer: got {left} bytes after the offset; wanted "
            + (f"a multiple of {size}" if count < 0 else f"{count * size} for {count} elements")
        )
    part = bytes(data[offset : offset + count * size] if count > 0 else data[offset:])
    return Tensor(np.frombuffer(part, wanted.np).copy(), wanted)


_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float32}


def get_py_obj_dtype(obj: object) -> DType:
    """Return the dtype of a Python number, of a Python type, or of a Tensor's elements
    (`mindspore.get_py_obj_dtype`).

    Raises:
        NotImplementedError: `obj` is something else.

    Examples:
        >>> import duograph as ms
        >>> ms.get_py_obj_dtype(1), ms.get_py_obj_dtype(float)
        (duograph.int64, duograph.float32)
    """
    if isinstance(obj, Tensor):
        return obj.dtype
    kind = obj if isinstance(obj, type) else type(obj)
    if kind not in _PYTHON:
        raise UnsupportedOpError(
            f"get_py_obj_dtype: got {kind.__name__}; wanted a bool, int, float or Tensor"
        )
    return _PYTHON[kind]


def merge_sliced_parameter(
    sliced_parameters: Sequence[Parameter], strategy: Mapping[str, object] | None = None
) -> Parameter:
    """Join the slices of a Parameter along the first axis (`mindspore.merge_sliced_parameter`).

    Args:
        sliced_parameters: Parameters with the same name, dtype and sizes but for the first axis, in
            the order of their ranks.
        strategy: must be None; strategy files are not supported.

    Raises:
        TypeError: not a list of Parameters.
        ValueError: there is no slice, there are several names, or the sizes do not fit.

    Examples:
        >>> import duograph as ms
        >>> parts = [ms.Parameter(ms.Tensor([1.0]), "w"), ms.Parameter(ms.Tensor([2.0]), "w")]
        >>> print(ms.merge_sliced_parameter(parts).asnumpy())
        [1. 2.]
    """
    if strategy is not None:
        raise UnsupportedOpError("merge_sliced_parameter: got a strategy; wanted None")
    parts = list(sliced_parameters)
    if not all(isinstance(p, Parameter) for p in parts):
        raise ArgumentError("merge_sliced_parameter: wanted a list of Parameters")
    names = sorted({p.name for p in parts})
    if len(names) != 1 or len({(p.shape[1:], p.ndim, p.dtype) for p in parts}) != 1:
        raise ArgumentValueError(
            f"merge_sliced_parameter: got {len(parts)} slices of {names}; wanted slices of one "
            "Parameter, equal but for their first axis"
        )
    first = parts[0]
    joined = np.concatenate([p.asnumpy() for p in parts])
    return Parameter(Tensor(joined, first.dtype), names[0], first.requires_grad)


# ---- settings ----------------------------------------------------------------------------------


def ms_memory_recycle() -> None:
    """Collect unused Python objects and free cached device memory (`mindspore.ms_memory_recycle`).

    Examples:
        >>> import duograph as ms
        >>> ms.ms_memory_recycle()
    """
    gc.collect()
    empty_cache()


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Check and ignore a limit of nested calls in compiled functions; duograph has no such limit.

    Raises:
        TypeError: the limit is no int.
        ValueError: the limit is below 1.

    Examples:
        >>> import duograph as ms
        >>> ms.set_recursion_limit(1000)
    """
    if isinstance(recursion_limit, bool) or not isinstance(recursion_limit, int):
        raise ArgumentError(f"set_recursion_limit: got {recursion_limit!r}; wanted an int")
    if recursion_limit < 1:
        raise ArgumentValueError(f"set_recursion_limit: got {recursion_limit}; wanted 1 or more")


_ALGO: dict[str, object] = {
    "fully_use_devices": False,
    "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}
_algo = dict(_ALGO)


def set_algo_parameters(**kwargs: object) -> None:
    """Store settings of MindSpore's search for a parallel strategy; duograph ignores them.

    The first call warns.

    Raises:
        ValueError: a setting is unknown.
        TypeError: a value has another type than the setting.
    """
    for name, value in kwargs.items():
        known = _ALGO.get(_algo_name("set_algo_parameters", name))
        if type(value) is not type(known):
            raise ArgumentError(
                f"set_algo_parameters: got {name}={value!r}; wanted {type(known).__name__}"
            )
    if kwargs:
        warn_moot("set_algo_parameters")
    _algo.update(kwargs)


def get_algo_parameters(attr_key: str) -> object:
    """Return a setting that `set_algo_parameters` has stored, or its default.

    Raises:
        ValueError: the setting is unknown.

    Examples:
        >>> import duograph as ms
        >>> ms.get_algo_parameters("fully_use_devices")
        False
    """
    return _algo[_algo_name("get_algo_parameters", attr_key)]


def reset_algo_parameters() -> None:
    """Reset the settings of `set_algo_parameters` to their defaults.

    Examples:
        >>> import duograph as ms
        >>> ms.reset_algo_parameters()
    """
    _algo.update(_ALGO)


def _algo_name(owner: str, name: str) -> str:
    if name not in _ALGO:
        raise ArgumentValueError(f"{owner}: got {name!r}; wanted one of {', '.join(_ALGO)}")
    return name


def get_ps_context(attr_key: str) -> object:
    """Return a setting of MindSpore's parameter servers, which duograph does not have.

    Raises:
        ValueError: the setting is unknown.

    Examples:
        >>> import duograph as ms
        >>> ms.get_ps_context("enable_ps")
        False
    """
    known: dict[str, object] = {"enable_ps": False, "config_file_path": "", "enable_ssl": False}
    if attr_key not in known:
        raise ArgumentValueError(
            f"get_ps_context: got {attr_key!r}; wanted one of {', '.join(known)}"
        )
    return known[attr_key]
