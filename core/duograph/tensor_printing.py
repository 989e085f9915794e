"""Formats tensors as text, in the layout of MindSpore, and as HTML for notebooks.

Floats print as ``% .8e`` (float16 as ``% .4e``, bfloat16 as short as possible), padded to the same
width. An axis of more than 6 elements is abbreviated to 3 at each end; that of a 1-d tensor only
above 1,000 elements. A long line of one axis is wrapped. `Tensor.__repr__` and `print` in compiled
code call these functions, which never change a value.
"""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np

from .dtype import DType
from .host_arrays import Array
from .pages import notebook

__all__ = ["element_text", "tensor_html", "tensor_text"]

EDGE = 3
LONG_AXIS = 2 * EDGE
LONG_VECTOR = 1000
LINE_WIDTH = 200
# Bars of the distribution that a notebook shows.
_BARS = 32


def tensor_text(array: Array, dtype: DType) -> str:
    """Return the repr text of a tensor, in MindSpore's layout."""
    head = f"Tensor(shape={list(array.shape)}, dtype={dtype}, value="
    if array.ndim == 0:
        return f"{head} {_scalar(array[()], dtype)})"
    if array.ndim == 1:
        return f"{head} {_body(array, dtype)})"
    return f"{head}\n{_body(array, dtype)})"


def tensor_html(title: str, array: Array, dtype: DType) -> str:
    """Return HTML that shows a tensor in a notebook: a title, its values and their distribution."""
    shown = notebook.heading(title)
    if array.ndim == 0:
        return shown + notebook.pre(_scalar(array[()], dtype))
    if not array.size:
        return shown + notebook.pre("no elements")
    shown += notebook.pre(_body(array, dtype).strip("\n"))
    if dtype.kind not in "fiu" or array.size < 2:
        return shown
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    special = [(int(np.isnan(values).sum()), "NaN"), (int(np.isinf(values).sum()), "Inf")]
    facts = [f"{n:,} {word}" for n, word in special if n]
    drawn = ""
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
        with np.errstate(over="ignore"):
            facts = [
                f"min {low:.4g}", f"max {high:.4g}", f"mean {finite.mean():.4g}",
                f"standard deviation {finite.std():.4g}", *facts,
            ]  # fmt: skip
        if low < high and np.isfinite(high - low):
            counts, _ = np.histogram(finite, _BARS)
            drawn = notebook.bars(counts.tolist(), f"{low:.4g}", f"{high:.4g}")
    title = f"{array.size:,} values: {', '.join(facts)}"
    return shown + (notebook.unfolding(title, drawn) if drawn else notebook.line(title))


def _scalar(value: Any, dtype: DType) -> str:
    """Format the value of a 0-d tensor."""
    if dtype.kind == "f":
        return f"{float(value):g}"
    if dtype.kind == "c":
        return _complex(value)
    return _stored(value) if dtype.kind == "s" else str(value)


def _stored(value: SupportsFloat) -> str:
    """Format an element of a dtype that only stores values, such as float8_e5m2 or int4."""
    return f"{float(value):g}"


def _complex(value: complex) -> str:
    return f"{value.real:g}{value.imag:+g}j"


def element_text(value: Any, dtype: DType) -> str:
    """Format one element of a tensor, without padding."""
    if dtype.kind == "f":
        if not np.isfinite(value):
            return f"{float(value)}"
        if dtype.name == "bfloat16":
            return f"{float(value):g}"
        return f"{float(value): .4e}" if dtype.name == "float16" else f"{float(value): .8e}"
    if dtype.kind == "s":
        return _stored(value)
    return _complex(value) if dtype.kind == "c" else str(value)


def _shown(length: int, ndim: int) -> tuple[list[int], bool]:
    """Return the indices to print along an axis of `length`, and whether some are left out.

    `ndim` is the number of axes of the tensor.
    """
    if length > (LONG_VECTOR if ndim == 1 else LONG_AXIS):
        return [*range(EDGE), *range(length - EDGE, length)], True
    return list(range(length)), False


def _body(array: Array, dtype: DType) -> str:
    """Format the elements of a tensor in nested brackets, with long axes abbreviated."""
    if array.size == 0:
        return ""
    axes = [_shown(n, array.ndim) for n in array.shape]
    kept = array[np.ix_(*[indices for indices, _ in axes])]
    texts = np.array([element_text(v, dtype) for v in kept.reshape(-1)], dtype=object)
    width = max([len(t) for t in texts] + [len("False")] * (dtype.kind == "b"))
    return _brackets(texts.reshape(kept.shape), [cut for _, cut in axes], width, 0)


def _brackets(texts: Array, cuts: list[bool], width: int, depth: int) -> str:
    """Join formatted elements, padded to `width`, in nested brackets.

    `cuts` says for each axis whether it is abbreviated; `depth` is the number of enclosing
    brackets.
    """
    if texts.ndim == 1:
        items = [t.rjust(width) for t in texts]
        if cuts[0]:
            return f"[{', '.join(items[:EDGE])} ... {', '.join(items[EDGE:])}]"
        if depth == 0 and len(items) * (width + 2) > LINE_WIDTH:
            per_line = max(1, LINE_WIDTH // (width + 1))
            lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
            return "[" + ", \n ".join(lines) + "]"
        return f"[{', '.join(items)}]"
    rows = [_brackets(row, cuts[1:], width, depth + 1) for row in texts]
    indent = " " * (depth + 1)
    if cuts[0]:
        joined = f",\n{indent}".join(rows[:EDGE])
        return f"[{joined},\n{indent}...\n{indent}" + f",\n{indent}".join(rows[EDGE:]) + "]"
    return "[" + f",\n{indent}".join(rows) + "]"
