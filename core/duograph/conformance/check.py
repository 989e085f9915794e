"""Runs samples and compares results; what it says when they differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtype import as_dtype
from ..ops.shape_primitives import reshape_to
from ..tensor import Tensor
from .case import OpCase, Sample
from .tolerance import Tolerance

__all__ = [
    "Late",
    "arrays_of",
    "call_text",
    "difference",
    "place",
    "read",
    "results_of",
    "run",
    "substitute",
]

Array = np.ndarray[Any, Any]


# ---- arguments ----------------------------------------------------------------------------------


def substitute(value: Any, function: Callable[[Array], Any]) -> Any:
    """`value` with every array in it, also inside lists and tuples, replaced by `function(array)`."""
    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(substitute(v, function) for v in value)
    if isinstance(value, Mapping):
        return {k: substitute(v, function) for k, v in value.items()}
    return value


def arrays_of(value: Any) -> Iterator[Array]:
    """The arrays in a value, in order."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from arrays_of(v)
    elif isinstance(value, Mapping):
        for v in value.values():
            yield from arrays_of(v)


def place(array: Array, kind: str) -> Tensor:
    """A Tensor of a copy of the array. For the kind noncontiguous it is made flat and reshaped on
    the device.
    """
    if kind == "noncontiguous" and array.ndim > 1 and array.size:
        return reshape_to(Tensor(array.reshape(-1)), array.shape)
    return Tensor(array)


def run(case: OpCase, sample: Sample) -> Any:
    """Call the function of a case on the current device."""
    args = substitute(sample.args, lambda a: place(a, sample.kind))
    kwargs = substitute(sample.kwargs, lambda a: place(a, sample.kind))
    return case.function(*args, **kwargs)


def results_of(value: Any) -> list[Any]:
    """The tensors of a result as arrays, numbers as they are; nested tuples flattened."""
    if isinstance(value, Tensor):
        return [value.asnumpy()]
    if isinstance(value, (list, tuple)):
        return [item for v in value for item in results_of(v)]
    if value is None:
        return []
    return [np.asarray(value)]


# What a kernel of a device that runs behind its caller says of an index, when a value is read.
LATE = r"index -?\d+ is out of range for axis \d+ of size \d+"


def read(results: Any) -> list[Any]:
    """`results_of`, for a call that must fail.

    Raises:
        Late: an IndexError that came only now, from a device that runs behind its caller.
    """
    try:
        return results_of(results)
    except IndexError as error:
        if re.search(LATE, str(error)) is None:
            raise
        raise Late(str(error)) from error


class Late(IndexError):
    """A kernel found an index out of range, and says so in its own words."""


# ---- comparison ---------------------------------------------------------------------------------


def difference(got: Any, want: Any, tolerance: Tolerance, exact_dtype: bool = True) -> str | None:
    """None when `got` equals `want` within the tolerance, else what differs and where first."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shapes differ\ncomputed  {got.shape}\nexpected  {want.shape}"
    if exact_dtype and got.dtype != want.dtype:
        return f"dtypes differ\ncomputed  {got.dtype}\nexpected  {want.dtype}"
    wrong = _wrong(got, want, tolerance)
    if not wrong.any():
        return None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    others = int(wrong.sum()) - 1
    more = f", and {others} more of {got.size} elements" if others else f" of {got.shape}"
    lines = [
        f"first difference at {list(where)}{more}",
        f"computed  {got[where]!s}",
        f"expected  {want[where]!s}",
    ]
    if tolerance.relative or tolerance.absolute:
        lines.append(f"allowed   |computed - expected| <= {tolerance}")
    if 1 < got.size <= 40:
        lines += [f"computed: {_short(got)}", f"expected: {_short(want)}"]
    return "\n".join(lines)


def _wrong(got: Array, want: Array, tolerance: Tolerance) -> Array:
    if got.dtype.kind in "biu" and want.dtype.kind in "biu":
        return np.asarray(got != want)
    wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= tolerance.absolute + tolerance.relative * np.abs(b)
        near &= np.isfinite(a) & np.isfinite(b)  # else anything would be near infinity
        if wide is np.complex128:  # which part of a complex overflow is NaN is nobody's promise
            same = ~np.isfinite(a) & ~np.isfinite(b)
        else:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~(near | same))


def _short(array: Array) -> str:
    text = np.array2string(array, precision=7, separator=", ", max_line_width=100)
    return text.replace("\n", "\n          ")


# ---- words --------------------------------------------------------------------------------------


def call_text(case: OpCase, sample: Sample) -> str:
    """The call as a reader would write it, arrays by dtype and shape, small ones with their values."""
    parts = [_value_text(v) for v in sample.args]
    parts += [f"{k}={_value_text(v)}" for k, v in sample.kwargs.items()]
    kind = sample.name or sample.kind
    return f"{case.name}({', '.join(parts)})  [{kind}]"


def _value_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        kind = as_dtype(value.dtype).name
        if value.size <= 4:
            return f"{kind}{value.tolist()}"
        return f"{kind}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_value_text(v) for v in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return getattr(value, "name", None) or repr(value)


class Failures(AssertionError):
    """Everything that went wrong in one test, one paragraph a sample."""


def fail_with(found: Sequence[str]) -> None:
    """Raise with all that was found, if anything was."""
    if found:
        raise Failures("\n\n".join(["", *found]))


def indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
