"""What `print` in a compiled function writes: each value on a line of its own, tensors in full."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._text import _element
from ..tensor import Tensor

__all__ = ["print_values", "graph_text"]


def graph_text(value: Any) -> str:
    """One value as a compiled function prints it."""
    if isinstance(value, Tensor):
        return _tensor_text(value)
    if isinstance(value, tuple):
        inner = ", ".join(graph_text(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(graph_text(v) for v in value)}]"
    return str(value)


def _tensor_text(value: Tensor) -> str:
    array = value.asnumpy()
    head = f"Tensor(shape={list(array.shape)}, dtype={value.dtype}, value="
    if array.ndim == 0:
        return f"{head}{_element(array[()], value.dtype).strip()})"
    texts = [_element(v, value.dtype) for v in array.reshape(-1)]
    width = max((len(s) for s in texts), default=0)
    rows = np.array([s.rjust(width) for s in texts], dtype=object).reshape(array.shape)
    body = _nest(rows, 0)
    return f"{head}{body})" if array.ndim == 1 else f"{head}\n{body})"


def _nest(rows: Any, depth: int) -> str:
    if rows.ndim == 1:
        return f"[{' '.join(rows)}]"
    gap = "\n" * (rows.ndim - 1) + " " * (depth + 1)
    return "[" + gap.join(_nest(r, depth + 1) for r in rows) + "]"


def print_values(
    *values: Any, file: Any = None, flush: bool = False, end: Any = None, sep: Any = None
) -> None:
    """Write values, one a line, as MindSpore's compiled `print` does."""
    del sep
    text = "\n".join(v.rstrip(" ") if isinstance(v, str) else graph_text(v) for v in values)
    print(text, file=file or sys.stdout, flush=flush, end="\n" if end is None else end)
