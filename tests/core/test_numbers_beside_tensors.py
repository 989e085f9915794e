"""Python numbers beside Tensors: compiled code gives the bits of eager code, for every dtype.

The numbers include those for which compiled code has shorter forms (0, -0.0, 1), ints outside the
range of the dtype, and numbers that are known only when the graph runs.
"""

from __future__ import annotations

import linecache
import warnings
from typing import Any

import numpy as np
import pytest
from duograph import Tensor, jit, ops

pytestmark = pytest.mark.usefixtures("restored")

NUMBERS = (
    "0", "0.0", "-0.0", "1", "1.0", "2", "-1", "300", "2**40", "-2**63", "2**70", "True", "0j",
    "complex(-0.0, 0.0)", "complex(0.0, -0.0)", "complex(-0.0, -0.0)", "complex(1, -0.0)",
    "float('nan')", "float('inf')",
)  # fmt: skip
FORMS = (
    "x + {}", "{} + x", "x - {}", "{} - x", "x * {}", "{} * x", "x / {}", "x ** {}", "x // {}",
    "x % {}", "(x + {}) + {}", "(x * {}) * {}", "x - x + {}", "ops.maximum(x, {})",
    "ops.minimum(x, {})", "ops.where(x == x, x, {})", "x == {}", "x < {}",
)  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 1.5, -2, np.inf, -np.inf, np.nan])
DTYPES = (
    "bool", "uint8", "int8", "int32", "int64", "uint32", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def array_of(dtype: str) -> np.ndarray:
    """Return an array with the special values of a dtype."""
    if dtype.startswith("complex"):
        return np.array([complex(p, q) for p in SPECIAL for q in SPECIAL], dtype)
    if dtype.startswith("float"):
        return SPECIAL.astype(dtype)
    return np.array([0, 1] if dtype == "bool" else [0, 1, 3, 100], dtype)


def compiled_from(text: str, name: str, number: str = "0") -> Any:
    """Return a function of x and t, with n bound to `number`, that returns an expression."""
    source = f"def f(x, t):\n    n = {number}\n    return {text}\n"
    linecache.cache[name] = (1, None, source.splitlines(True), name)
    space: dict[str, Any] = {"ops": ops}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def outcome(f: Any, x: np.ndarray, t: float = 0) -> Any:
    """Return the result of a call as (dtype, bits), with one NaN for all, or that it failed."""
    try:
        found = f(Tensor(x), Tensor(t))
    except Exception:  # noqa: BLE001 (eager code fails, too)
        return "fails"
    if not isinstance(found, Tensor):
        return found
    made = found.asnumpy()
    parts = [made.real, made.imag] if made.dtype.kind == "c" else [made]
    if made.dtype.kind in "fc":
        parts = [np.where(np.isnan(p), np.array(np.nan, p.dtype), p) for p in parts]
    return made.dtype, [p.tobytes() for p in parts]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_equals_eager(dtype: str, form: str) -> None:
    x = array_of(dtype)
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about infinities
        for k, number in enumerate(NUMBERS):
            f = compiled_from(form.replace("{}", number), f"<{dtype} {form} {k}>")
            if outcome(f, x) != outcome(jit(f, jit_level="O0"), x):
                wrong.append(number)
    assert not wrong


# How a function makes a number of a Tensor, and values of that Tensor.
KNOWN_LATER = {
    "int(t)": (0, 1, -1, 300),
    "float(t)": (0.0, 1.0, -1.5),
    "bool(t)": (0, 1),
    "t.item()": (1, 1.5),
    "-int(t)": (0, 1),
    "int(t) == 1": (0, 1),
}
COMPARISONS = (
    "x != {}", "{} == x", "{} != x", "{} < x", "x >= {}", "x[:1] == {}", "(x == {}).any()",
    "ops.equal(x, {})", "x.ne({})", "t == {}", "x == t",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS + COMPARISONS)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "complex64"])
def test_numbers_that_the_graph_computes(dtype: str, form: str) -> None:
    x = array_of(dtype)
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, about infinities
        for k, (number, values) in enumerate(KNOWN_LATER.items()):
            f = compiled_from(form.replace("{}", "n"), f"<later {dtype} {form} {k}>", number)
            compiled = jit(f, jit_level="O0")
            wrong += [(number, v) for v in values if outcome(f, x, v) != outcome(compiled, x, v)]
    assert not wrong
