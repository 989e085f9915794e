"""Serialisation of the arguments and results of calls as JSON; imports no framework.

The processes of the sampled calls exchange calls and outcomes in this form, because the two
frameworks need different versions of NumPy. `harvest.py`, `call_worker.py` and `sampling.py` use
it. A value that JSON has stands for itself; any other is a list of a tag and its content.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Plain = Any
LARGEST = 4096  # elements of an array that is written


class NotPlain(Exception):
    """Error: a value, such as a function or a layer, cannot be serialised."""


def array(value: np.ndarray[Any, Any], tag: str = "array", dtype: str = "") -> Plain:
    """Serialise an array; `dtype` names the dtype of a tensor if NumPy lacks it."""
    if value.size > LARGEST or value.dtype.kind not in "biufc":
        raise NotPlain
    text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return [tag, dtype or value.dtype.name, value.dtype.str, list(value.shape), text]


def as_array(plain: Plain) -> np.ndarray[Any, Any]:
    """Return a serialised array or tensor as a NumPy array."""
    _, _, code, shape, text = plain
    return np.frombuffer(base64.b64decode(text), code).reshape(shape).copy()


def is_tensor(plain: Plain) -> bool:
    """Return whether a serialised value is a Tensor or Parameter."""
    return isinstance(plain, list) and plain[:1] in (["tensor"], ["parameter"])


def write(value: Any, package: Any) -> Plain:
    """Serialise a value of the framework `package`; raise NotPlain if that is impossible."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, package.Tensor):
        kept = value.dtype
        name = str(kept).rpartition(".")[2].lower()
        numbers = value.float() if name == "bfloat16" else value
        tag = "parameter" if isinstance(value, package.Parameter) else "tensor"
        return array(numbers.asnumpy(), tag, name)
    if isinstance(value, np.ndarray | np.generic):
        return array(np.asarray(value), "array" if isinstance(value, np.ndarray) else "scalar")
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else ["float", str(float(value))]
    if isinstance(value, complex):
        return ["complex", str(value.real), str(value.imag)]
    if isinstance(value, tuple | list):
        return ["tuple" if isinstance(value, tuple) else "list", [write(v, package) for v in value]]
    if isinstance(value, dict):
        return ["dict", [[write(k, package), write(v, package)] for k, v in value.items()]]
    if isinstance(value, slice):
        return ["slice", *(write(v, package) for v in (value.start, value.stop, value.step))]
    if value is Ellipsis:
        return ["ellipsis"]
    name = dtype_name(value, package)
    if name:
        return ["dtype", name]
    raise NotPlain


def dtype_name(value: Any, package: Any) -> str:
    """Return the name of a dtype of the framework, or "" for another value."""
    name = str(value).rpartition(".")[2].lower()
    known = getattr(package, name + "_" if name == "bool" else name, None)
    return name if known is not None and known is value else ""


def read(plain: Plain, package: Any) -> Any:
    """Deserialise a value for the framework `package`."""
    if not isinstance(plain, list):
        return plain
    return READERS[plain[0]](plain, package)


def find_dtype(name: str, package: Any) -> Any:
    """Return the dtype of the framework `package` with the given name."""
    return getattr(package, "bool_" if name == "bool" else name)


def _tensor(plain: Plain, package: Any) -> Any:
    made = package.Tensor(as_array(plain), find_dtype(plain[1], package))
    return package.Parameter(made, name="p") if plain[0] == "parameter" else made


READERS: dict[str, Callable[[Plain, Any], Any]] = {
    "tensor": _tensor,
    "parameter": _tensor,
    "array": lambda p, _: as_array(p),
    "scalar": lambda p, _: as_array(p)[()],
    "float": lambda p, _: float(p[1]),
    "complex": lambda p, _: complex(float(p[1]), float(p[2])),
    "tuple": lambda p, package: tuple(read(v, package) for v in p[1]),
    "list": lambda p, package: [read(v, package) for v in p[1]],
    "dict": lambda p, package: {read(k, package): read(v, package) for k, v in p[1]},
    "slice": lambda p, package: slice(*(read(v, package) for v in p[1:])),
    "ellipsis": lambda _p, _: Ellipsis,
    "dtype": lambda p, package: find_dtype(p[1], package),
}
