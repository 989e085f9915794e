"""Runs a program line by line and compiled, and compares everything that a user can observe.

A program is the text of a module that defines `f(a)` and the objects around it. Each run makes
the module anew and calls `f` several times. Observed are the results, the errors, the printed
text, and afterwards every global of the module, to any depth.
"""

from __future__ import annotations

import collections
import contextlib
import io
import itertools
import linecache
import logging
import re
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duograph as ms
import numpy as np
from duograph.errors import DuographError

PRELUDE = "import duograph as ms\nimport numpy as np\nfrom duograph import Tensor, ops\n"
INPUTS = ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [4.0, 5.0, 6.0])
# Classes that exist only while a function is compiled.
_COMPILER = re.compile(r"Graph(Tensor|Scalar|Object|Range)|<function \w+> of|Operand|Snapshot")
_numbers = itertools.count()


@dataclass
class Observed:
    """What a user sees of several calls."""

    outcomes: list[Any] = field(default_factory=list)
    world: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    warned: list[str] = field(default_factory=list)


def module_of(source: str) -> types.ModuleType:
    """Return a new module made from the text of a program."""
    name = f"program_{next(_numbers)}"
    module = types.ModuleType(name)
    text = PRELUDE + source
    file = f"<{name}>"
    module.__dict__["__file__"] = file
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def describe(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """Return a value as nested tuples that can be compared and printed."""
    kind = type(value)
    own = kind.__module__
    assert not own.startswith(("duograph.ir", "duograph.frontend", "duograph.compiler")) or (
        kind.__name__ == "JitFunction"
    ), f"an object of the compiler: {kind}"
    if id(value) in seen:
        return "..."
    seen = (*seen, id(value))
    if isinstance(value, ms.Tensor):
        return "Tensor", str(value.dtype), value.shape, np.round(value.asnumpy(), 4).tolist()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, [describe(v, seen) for v in value.tolist()]
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        items = [(describe(k, seen), describe(v, seen)) for k, v in value.items()]
        return kind.__name__, items, _attributes(value, seen)
    if isinstance(value, (list, tuple, collections.deque)):
        return kind.__name__, [describe(v, seen) for v in value], _attributes(value, seen)
    if isinstance(value, (set, frozenset)):
        return kind.__name__, sorted((describe(v, seen) for v in value), key=repr)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        return kind.__name__, value.__qualname__, _attributes(value, seen)
    if isinstance(value, BaseException):
        cause = value.__cause__ and describe(value.__cause__, seen)
        return kind.__name__, describe(value.args, seen), cause, _attributes(value, seen)
    if isinstance(value, io.StringIO):
        return "StringIO", value.getvalue()
    if isinstance(value, (bool, int, str, bytes, complex, type(None), np.generic)):
        return value
    if isinstance(value, (types.ModuleType, logging.Logger)):
        return "module"
    return kind.__name__, _attributes(value, seen)


def _attributes(value: Any, seen: tuple[int, ...]) -> Any:
    held = dict(getattr(value, "__dict__", None) or {})
    if isinstance(value, type):
        held = {k: v for k, v in held.items() if not k.startswith("__") and k != "_abc_impl"}
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                held[name] = getattr(value, name)
    held = {k: v for k, v in held.items() if not k.startswith(("_jit", "_duograph", "__notes__"))}
    return [(k, describe(v, seen)) for k, v in held.items()]


def observe(source: str, wrap: Callable[[Any], Any], inputs: Any = INPUTS) -> Observed:
    """Make the module of a program, call `wrap(f)` on each input, and return what happened."""
    module = module_of(source)
    made = Observed()
    text = io.StringIO()
    with contextlib.redirect_stdout(text), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function = wrap(module.f)
        for x in inputs:
            try:
                result = function(ms.Tensor(np.array(x, np.float32)))
                made.outcomes.append(describe(result))
            except Exception as error:
                made.outcomes.append((type(error), _message(error), error))
            if hasattr(module, "between"):
                module.between()
    made.printed = text.getvalue()
    assert not _COMPILER.search(made.printed), made.printed
    made.warned = [str(w.message) for w in caught]
    held = vars(module)
    names = [k for k in held if not k.startswith("__") and k not in ("ms", "np", "Tensor", "ops")]
    made.world = {k: describe(held[k]) for k in names}
    return made


def _message(error: BaseException) -> Any:
    return describe(error)[1:]


def difference(want: Observed, got: Observed, text: bool = True) -> str:
    """Return how two observations differ; "" if they do not."""
    lines = []
    for i, (a, b) in enumerate(zip(want.outcomes, got.outcomes, strict=True)):
        if isinstance(a, tuple) and isinstance(a[0], type):
            a = a[:2]
        if isinstance(b, tuple) and isinstance(b[0], type):
            b = (*b[:2],) if a != b[:2] else b[:2]
        if a != b:
            lines.append(f"call {i}: line by line {a}; compiled {b}")
    for k in {**want.world, **got.world}:
        a, b = want.world.get(k, "nothing"), got.world.get(k, "nothing")
        if a != b:
            lines.append(f"{k} afterwards: line by line {a}; compiled {b}")
    if text and want.printed != got.printed:
        lines.append(f"printed: line by line {want.printed!r}; compiled {got.printed!r}")
    return "\n".join(lines)


def summed(f: Any) -> Callable[[Any], Any]:
    """Return a function of a tensor with the sum of the Tensors that `f` returns."""

    def total(a: Any) -> Any:
        out = f(a)
        parts = out if isinstance(out, (tuple, list)) else (out,)
        tensors = [x for x in parts if isinstance(x, ms.Tensor)]
        return sum((x.sum() for x in tensors[1:]), tensors[0].sum())

    return total


MODES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "O0": (lambda f: f, lambda f: ms.jit(f, jit_level="O0")),
    "O1": (lambda f: f, lambda f: ms.jit(f, jit_level="O1")),
    "strict": (lambda f: f, lambda f: ms.jit(f, jit_level="O0", fullgraph=True)),
    "grad of jit": (
        lambda f: ms.grad(summed(f)),
        lambda f: ms.grad(summed(ms.jit(f, jit_level="O0"))),
    ),
    "jit of grad": (
        lambda f: ms.grad(summed(f)),
        lambda f: ms.jit(ms.grad(summed(f)), jit_level="O0"),
    ),
}


def check(source: str, mode: str) -> str:
    """Compare a program line by line and compiled in one mode; return the difference."""
    plain, compiled = MODES[mode]
    want = observe(source, plain)
    got = observe(source, compiled)
    if mode == "strict" and any(_refused(x) for x in got.outcomes):
        return ""
    if len([w for w in got.warned if "runs line by line" in w]) > 2:
        return f"warned {len(got.warned)} times: {got.warned}"
    return difference(want, got)


def _refused(outcome: Any) -> bool:
    return isinstance(outcome, tuple) and isinstance(outcome[0], type) and (
        issubclass(outcome[0], DuographError) and "jit" in str(outcome[2])
        or getattr(outcome[2], "construct", None) is not None
    )
