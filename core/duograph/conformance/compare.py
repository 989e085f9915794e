"""Compares two runs of a program: results bit by bit, printed output word by word.

The runs are a compiled and an eager one, or one on a device and one on the reference; the modules
`program_runs` and `parity` call it. Values must be converted by `snapshot` before they are
compared, so that later writes to the tensors have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tensor import Tensor

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["difference_of", "printed_words", "same_words", "snapshot", "without_location"]

_LOCATION = re.compile(r"\n  [^\n]+:\d+( in |$)", re.MULTILINE)


def snapshot(value: object) -> Any:
    """Copy a nested value to arrays and Python objects, so that it can be compared later.

    A Tensor becomes the pair ("Tensor", array), an array the pair ("array", array).
    """
    if isinstance(value, Tensor):
        return ("Tensor", value.asnumpy().copy())
    if isinstance(value, np.ndarray):
        return ("array", value.copy())
    if isinstance(value, list):
        return [snapshot(v) for v in value]
    if isinstance(value, tuple):
        return tuple(snapshot(v) for v in value)
    if isinstance(value, Mapping):
        return {k: snapshot(v) for k, v in value.items()}
    return value


_WRAPPED = re.compile(r"Tensor\(shape=\[[^\]]*\], dtype=\w+, value=\s*(.*?)\)", re.DOTALL)
_WORD = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)|\w+", re.IGNORECASE)


def printed_words(text: str) -> list[str]:
    """Split printed output into words and numbers, to compare it without line breaks."""
    text = _WRAPPED.sub(r"\1", text)
    return [{"True": "1", "False": "0"}.get(w, w) for w in _WORD.findall(text)]


def without_location(arguments: Any) -> Any:
    """Return exception arguments without the source location that compiled code adds to them."""
    if not arguments or not isinstance(arguments[0], str):
        return arguments
    return (_LOCATION.split(arguments[0])[0], *arguments[1:])


def same_words(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return whether two lists of printed words are equal, with a tolerance for numbers.

    Numbers may differ by 2e-5 times the second one plus 1e-6. NaN equals NaN.
    """
    return len(a) == len(b) and all(map(_same_word, a, b))


def _same_word(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        x, y = float(a), float(b)
    except ValueError:
        return False
    return bool(
        np.isclose(x, y, rtol=2e-5, atol=1e-6, equal_nan=True)
    )  # a 0-d value prints 6 digits


def difference_of(a: Any, b: Any, where: str = "", near: float | None = None) -> str | None:
    """Describe the first difference of two snapshots, or return None if they are equal.

    Args:
        a, b: the values.
        where: name of the values, for the text.
        near: tolerance, both relative and absolute, for elements of floating arrays. With 0 they
            must be equal, where -0.0 equals 0.0; with None they must also have the same sign bit.
            NaN always equals NaN. Python numbers must be equal whatever `near` is.
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _array_difference(a, b, where, near)
    if type(a) is not type(b):
        return f"{where}: {a!r} ({type(a).__name__}) and {b!r} ({type(b).__name__})"
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{where}: {len(a)} items and {len(b)}: {a!r} and {b!r}"
        marked = isinstance(a, tuple) and len(a) == 2 and a[0] in ("Tensor", "array") \
            and isinstance(a[1], np.ndarray)  # fmt: skip
        pairs = enumerate(zip(a, b))
        return next(
            (
                t
                for i, (x, y) in pairs
                if (t := difference_of(x, y, where if marked else f"{where}[{i}]", near))
            ),
            None,
        )
    if isinstance(a, dict):
        if list(a) != list(b):
            return f"{where}: keys {list(a)} and {list(b)}"
        return next(
            (t for k in a if (t := difference_of(a[k], b[k], f"{where}[{k!r}]", near))), None
        )
    if isinstance(a, float):
        return None if a == b or (a != a and b != b) else f"{where}: {a!r} and {b!r}"
    try:
        equal = bool(a == b)
    except (TypeError, ValueError):
        equal = a is b
    if equal or type(a).__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        return None  # without an own __eq__, objects of one class count as equal
    return f"{where}: {a!r} and {b!r}"


def _array_difference(a: Array, b: Array, where: str, near: float | None) -> str | None:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{where}: {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if a.tobytes() == b.tobytes():
        return None
    if a.dtype.kind == "V":  # bfloat16: NumPy does not know that it is a floating dtype
        a, b = a.astype(np.float32), b.astype(np.float32)
    same = a == b
    if a.dtype.kind == "f" and near is None:
        same = same & (np.signbit(a) == np.signbit(b))
    elif a.dtype.kind == "f" and near:
        same = same | np.isclose(a, b, near, near)
    if a.dtype.kind in "fc":
        same = same | (np.isnan(a) & np.isnan(b))
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0]) if a.shape else ()
    return (
        f"{where}: {int((~same).sum())} of {a.size} differ, first at {list(at)}: {a[at]!r} "
        f"and {b[at]!r}"
    )
