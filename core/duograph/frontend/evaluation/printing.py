"""The text that `print` writes in a compiled function: MindSpore's graph format.

Graph nodes that print call `print_values` when the graph runs. Nothing may be printed at compile
time, because each run of the graph prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from ...tensor import Tensor
from ...tensor_printing import element_text
from ..types import Value


def printed_text(value: Value) -> str:
    """Return the text that `print` in a compiled function writes for one value."""
    if isinstance(value, Tensor):
        return _tensor_text(value)
    if isinstance(value, str):
        return value.rstrip(" ")  # a label is on its own line
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


def _tensor_text(value: Tensor) -> str:
    array = value.asnumpy()
    dtype = value.dtype
    if array.ndim == 0:
        if dtype.kind == "f":
            return f"{float(array):g}"
        return str(int(array)) if dtype.kind == "b" else str(array)
    head = f"Tensor(shape={list(array.shape)}, dtype={dtype}, value="
    texts = [element_text(v, dtype) for v in array.reshape(-1)]
    # non-finite numbers take the width of finite ones
    least = {"float16": 11, "float32": 15, "float64": 15}.get(dtype.name, 0)
    width = max((len(s) for s in texts), default=0)
    width = max(width, least) if texts else 0
    rows = np.array([s.rjust(width) for s in texts], dtype=object).reshape(array.shape)
    body = _bracketed(rows, 0)
    return f"{head}{body})" if array.ndim == 1 else f"{head}\n{body})"


def _bracketed(rows: Value, depth: int) -> str:
    """Return an array of strings as text in nested brackets, one row per line.

    `depth` is the number of brackets around it.
    """
    if rows.ndim == 1:
        return f"[{' '.join(rows)}]"
    gap = "\n" + " " * (depth + 1)
    return "[" + gap.join(_bracketed(r, depth + 1) for r in rows) + "]"


def _lines(value: Value) -> Iterator[Value]:
    """Yield the parts of a value that `print` writes on separate lines.

    A tuple or list that holds Tensors, at any depth, yields its items one by one.
    """
    if isinstance(value, (tuple, list)) and _has_tensor(value):
        for v in value:
            yield from _lines(v)
    else:
        yield value


def _has_tensor(value: Value) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_has_tensor, value))
    return isinstance(value, Tensor)


def print_values(
    *values: Value, file: Value = None, flush: bool = False, end: Value = None, sep: Value = None
) -> None:
    """Print values in MindSpore's graph format, by default one per line.

    `sep`, `end`, `file` and `flush` have the same meaning as for Python's `print`, but `sep` is a
    line break by default.
    """
    texts = [printed_text(line) for v in values for line in _lines(v)]
    text = ("\n" if sep is None else sep).join(texts)
    print(text, file=file or sys.stdout, flush=flush, end="\n" if end is None else end)
