"""Functions that run conformance test samples, compare arrays and describe differences.

The test functions of the suite call it. Nothing here decides what to test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dtype import as_dtype
from ..ops.shape_primitives import reshape_to
from ..tensor import Tensor
from .case import Array, OpCase, Sample
from .tolerance import Tolerance

__all__ = [
    "DeferredIndexError",
    "arrays_of",
    "call_text",
    "difference",
    "to_tensor",
    "read_failing",
    "results_of",
    "run",
    "share_reached",
    "start_test",
    "substitute",
]

# ---- arguments ----------------------------------------------------------------------------------


def substitute(value: object, function: Callable[[Array], object]) -> Any:
    """Return nested containers with every NumPy array replaced by `function(array)`."""
    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(substitute(v, function) for v in value)
    if isinstance(value, Mapping):
        return {k: substitute(v, function) for k, v in value.items()}
    return value


def arrays_of(value: object) -> Iterator[Array]:
    """Yield the NumPy arrays in nested containers, from left to right."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from arrays_of(v)
    elif isinstance(value, Mapping):
        for v in value.values():
            yield from arrays_of(v)


def to_tensor(array: Array, kind: str) -> Tensor:
    """Create a Tensor from a NumPy array for a test sample of the given kind.

    For samples of kind noncontiguous, the flattened array is copied and then reshaped on the
    device.
    """
    if kind == "noncontiguous" and array.ndim > 1 and array.size:
        return reshape_to(Tensor(array.reshape(-1)), array.shape)
    return Tensor(array)


def run(case: OpCase, sample: Sample) -> object:
    """Call the function of a conformance test case on the current device; return its result."""
    args = substitute(sample.args, lambda a: to_tensor(a, sample.kind))
    kwargs = substitute(sample.kwargs, lambda a: to_tensor(a, sample.kind))
    return case.function(*args, **kwargs)


def results_of(value: object) -> list[Array]:
    """Return the tensors and numbers in a test's nested result as a flat list of arrays."""
    if isinstance(value, Tensor):
        return [value.asnumpy()]
    if isinstance(value, (list, tuple)):
        return [item for v in value for item in results_of(v)]
    if value is None:
        return []
    return [np.asarray(value)]


# The message of a kernel on an asynchronous device, raised when a value is read.
DEFERRED = r"index -?\d+ is out of range for axis \d+ of size \d+"


def read_failing(results: object) -> list[Array]:
    """Read the results of a call that must fail, because a device may report errors only at a read.

    Raises:
        DeferredIndexError: the device reported an index out of range only when a value was read.
    """
    try:
        return results_of(results)
    except IndexError as error:
        if re.search(DEFERRED, str(error)) is None:
            raise
        raise DeferredIndexError(str(error)) from error


class DeferredIndexError(IndexError):
    """Raised by `read_failing` if a device reports a bad index only when a result is read.

    A conformance test of errors accepts it, whatever its message, where an IndexError is expected:
    an asynchronous device cannot report the index earlier.
    """


# ---- comparison ---------------------------------------------------------------------------------


def difference(
    got: ArrayLike, want: ArrayLike, tolerance: Tolerance, exact_dtype: bool = True
) -> str | None:
    """Describe the first difference of two arrays beyond a tolerance, or return None.

    Different shapes are a difference; so are different dtypes if `exact_dtype` is True.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shapes differ\ncomputed  {got.shape}\nexpected  {want.shape}"
    if exact_dtype and got.dtype != want.dtype:
        return f"dtypes differ\ncomputed  {got.dtype}\nexpected  {want.dtype}"
    wrong = _differing(got, want, tolerance)
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


class _Reached:
    """Holds the largest ratio of a difference to its tolerance that the current test has found."""

    share: float = 0.0


def start_test() -> None:
    """Reset the largest difference that `share_reached` returns, at the start of a test."""
    _Reached.share = 0.0


def share_reached() -> float:
    """Return the largest ratio of a difference to its tolerance in the current test.

    Only elements where both the result and the expected value are finite floats count. For example,
    1.0 means that an element differed by exactly its tolerance.
    """
    return _Reached.share


def _differing(got: Array, want: Array, tolerance: Tolerance) -> Array:
    """Return where two arrays differ beyond a tolerance, as a bool array; NaN equals NaN."""
    if got.dtype.kind in "biu" and want.dtype.kind in "biu":
        return np.asarray(got != want)
    wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        gap, limit = np.abs(a - b), tolerance.absolute + tolerance.relative * np.abs(b)
        finite = np.isfinite(a) & np.isfinite(b)
        near = (gap <= limit) & finite  # any number is within a tolerance of infinity
        shares = np.where(finite & (gap > 0), gap / limit, 0.0)
        _Reached.share = max(_Reached.share, float(shares.max(initial=0.0)))
        if wide is np.complex128:  # it is unspecified which part of a complex overflow is NaN
            same = ~np.isfinite(a) & ~np.isfinite(b)
        else:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~(near | same))


def _short(array: Array) -> str:
    text = np.array2string(array, precision=7, separator=", ", max_line_width=100)
    return text.replace("\n", "\n          ")


# ---- messages -----------------------------------------------------------------------------------


def call_text(case: OpCase, sample: Sample) -> str:
    """Return a test call as text, with arrays shown by dtype and shape, small ones by value."""
    parts = [_value_text(v) for v in sample.args]
    parts += [f"{k}={_value_text(v)}" for k, v in sample.kwargs.items()]
    kind = sample.name or sample.kind
    return f"{case.name}({', '.join(parts)})  [{kind}]"


def _value_text(value: object) -> str:
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
    """Raised by a conformance test with the failures of all its samples, one paragraph each."""


def fail_with(found: Sequence[str]) -> None:
    """Raise `Failures` with a list of failure texts, unless the list is empty."""
    if found:
        raise Failures("\n\n".join(["", *found]))


def indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
