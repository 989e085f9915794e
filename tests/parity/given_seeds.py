"""Valid calls of names that packages use but whose docstrings have no usable call; for `calls.py`.

A docstring has no usable call if its example calls the function by another name, or prints nothing.
Each row is a call of a public name; it serves all paths that end in that name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from parity.plain import array

Call = dict[str, Any]


def _floats(*shape: int) -> Any:
    """Return a serialised float32 tensor of varied numbers of both signs."""
    size = int(np.prod(shape))
    numbers = (np.arange(size) * 7 % 11 - 4) / 2
    return array(numbers.reshape(shape).astype(np.float32), "tensor", "float32")


def _ints(*values: Any, dtype: str = "int32") -> Any:
    return array(np.array(values, dtype), "tensor", dtype)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return ["tuple", [_plain(v) for v in value]]
    return value


A, B, IMAGE = _floats(2, 3), _floats(2, 3), _floats(1, 2, 5, 5)
MASK = array(np.array([[True, False, True], [False, True, False]]), "tensor", "bool")

# name: the arguments of each call of the function or method
FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "reshape": [(A, (3, 2)), (A, (-1,))],
    "concat": [((A, B), 0)],
    "clip": [(A, -1.0, 1.0)],
    "dtype": [(A,)],
    "identity": [(A,)],
    "depend": [(A, B)],
    "reduce_sum": [(A, 1)],
    "expand": [(A, (2, 2, 3))],
    "fill": [(A, 2.0)],
    "dim": [(A,)],
    "ndimension": [(A,)],
    "asnumpy": [(A,)],
    "numpy": [(A,)],
    "add_": [(A, B)],
    "sub_": [(A, B)],
    "masked_fill_": [(A, MASK, 2.0)],
}
# name: the arguments of the constructor, and of the call
CLASSES: dict[str, list[tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "Reshape": [((), (A, (3, 2)))],
    "Concat": [((1,), ((A, B),))],
    "Transpose": [((), (A, (1, 0)))],
    "ExpandDims": [((), (A, 0))],
    "Gather": [((), (A, _ints(1, 0), 0))],
    "GatherD": [((), (A, 1, _ints([0], [2], dtype="int64")))],
    "Mul": [((), (A, B))],
    "Pow": [((), (A, 2.0)), ((), (_floats(2, 3), _floats(3)))],
    "Identity": [((), (A,))],
    "Equal": [((), (A, B))],
    "NotEqual": [((), (A, _floats(3)))],
    "Less": [((), (A, _floats(3)))],
    "LessEqual": [((), (A, _floats(3)))],
    "GreaterEqual": [((), (A, _floats(3)))],
    "ReLU": [((), (A,))],
    "Select": [((), (MASK, A, _floats(2, 3)))],
    "StridedSlice": [((), (A, (0, 0), (2, 2), (1, 1)))],
    "Zeros": [((), ((2, 3), ["dtype", "float32"]))],
    "Ones": [((), ((2, 3), ["dtype", "float32"]))],
    "Conv2D": [((3, 2), (IMAGE, _floats(3, 2, 2, 2)))],
    "Conv1d": [((2, 3, 2), (_floats(1, 2, 6),))],
    "Conv2d": [((2, 3, 2), (IMAGE,))],
    "Conv3d": [((1, 2, 2), (_floats(1, 1, 3, 4, 4),))],
    "HSwish": [((), (A,))],
    "Norm": [((1,), (A,))],
}


def given(name: str) -> list[Call]:
    """Return the listed calls for a path."""
    last = name.split(".")[-1]
    kind = "method" if name.startswith("Tensor.") else "function"
    calls = []
    if last in FUNCTIONS:
        for args in FUNCTIONS[last]:
            calls.append({"path": name, "kind": kind, **_arguments("args", args)})
    for init, args in CLASSES.get(last, ()) if kind == "function" else ():
        made = {"path": name, "kind": "class", **_arguments("init", init)}
        calls.append({**made, **_arguments("args", args)})
    return [{**call, "kwargs": ["dict", []]} for call in calls]


def _arguments(slot: str, values: tuple[Any, ...]) -> Call:
    found: Call = {slot: _plain(values)}
    return {**found, "init_kwargs": ["dict", []]} if slot == "init" else found
