"""Runs a program line by line and compiled, and compares everything that a user can observe.

A program is the text of a module that defines `f(a)` and the objects around it. Each run makes
the module anew and calls `f` several times, with the Tensors in its `ARGUMENTS` if it has any.
Observed are the results, the errors, the printed text, and afterwards every global of the module,
to any depth.
"""

from __future__ import annotations

import collections
import contextlib
import io
import itertools
import linecache
import logging
import re
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duograph as ms
import numpy as np
from duograph.compiler.function import JitFunction
from duograph.errors import JoinError, UnsupportedSyntaxError
from duograph.ir.values import NeedsValue

PRELUDE = "import duograph as ms\nimport numpy as np\nfrom duograph import Tensor, ops\n"
INPUTS = ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [4.0, 5.0, 6.0])
# Classes that exist only while a function is compiled.
_COMPILER = re.compile(r"Graph(Tensor|Scalar|Object|Range)|<function \w+> of|Operand|Snapshot")
_PUBLIC = (NeedsValue, JitFunction)
_numbers = itertools.count()


@dataclass
class Observed:
    """What a user sees of several calls."""

    outcomes: list[Any] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    world: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    warned: list[str] = field(default_factory=list)


def module_of(source: str) -> types.ModuleType:
    """Return a new module made from the text of a program."""
    name = f"program_{next(_numbers)}"
    module = sys.modules["program"] = types.ModuleType("program")
    text = PRELUDE + source
    file = f"<{name}>"
    module.__dict__["__file__"] = file
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def describe(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """Return a value as nested tuples that can be compared and printed."""
    kind = type(value)
    own = kind.__module__.startswith(("duograph.ir", "duograph.frontend", "duograph.compiler"))
    assert not own or kind in _PUBLIC, f"an object of the compiler: {kind}"
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
    if isinstance(value, JitFunction):
        return "compiled", value.function.__qualname__
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
    if isinstance(value, ms.nn.Cell):  # without what it keeps for faster calls
        held = {k: v for k, v in held.items() if k[0] != "_" or k in ("_params", "_cells")}
    held = {k: v for k, v in held.items() if not k.startswith(("_jit", "_duograph", "__"))}
    return [(k, describe(v, seen)) for k, v in held.items()]


def observe(source: str, wrap: Callable[[Any], Any], inputs: Any = INPUTS) -> Observed:
    """Make the module of a program, call `wrap(f)` on each input, and return what happened."""
    module = module_of(source)
    made = Observed()
    text = io.StringIO()
    with contextlib.redirect_stdout(text), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function = wrap(module.f)
        for x in getattr(module, "ARGUMENTS", inputs):
            given = x if isinstance(x, ms.Tensor) else ms.Tensor(np.array(x, np.float32))
            try:
                made.outcomes.append(describe(function(given)))
            except Exception as error:  # noqa: BLE001  (what it is, is compared)
                made.outcomes.append(_raised(error))
                made.errors.append(error)
            if hasattr(module, "between"):
                try:
                    module.between()
                except Exception as error:  # noqa: BLE001
                    made.outcomes.append(f"between: {error!r}")
    made.printed = text.getvalue()
    assert not _COMPILER.search(made.printed), made.printed
    made.warned = [str(w.message) for w in caught]
    held = vars(module)
    names = [k for k in held if not k.startswith("__") and k not in ("ms", "np", "Tensor", "ops")]
    made.world = {k: describe(held[k]) for k in names}
    return made


def _raised(error: Exception) -> Any:
    """Return what is compared of an error: all but the lines that say where it was raised."""
    args = tuple(_unplaced(a) if isinstance(a, str) else a for a in error.args)
    cause = error.__cause__ and describe(error.__cause__)
    return "raised", type(error).__name__, describe(args), cause, _attributes(error, ())


def _unplaced(text: str) -> str:
    """Return a message without its last lines, which say where, and with one name for files.

    Each run of a program is a file of its own.
    """
    return re.sub(r"<program_\d+>", "<program>", re.split(r"\n  \S+:\d+ in ", text)[0])


def difference(want: Observed, got: Observed) -> str:
    """Return how two observations differ; "" if they do not."""
    lines = []
    for i, (a, b) in enumerate(itertools.zip_longest(want.outcomes, got.outcomes)):
        if a != b:
            lines.append(f"call {i}: line by line {a}; compiled {b}")
    for k in {**want.world, **got.world}:
        a, b = want.world.get(k, "nothing"), got.world.get(k, "nothing")
        if a != b:
            lines.append(f"{k} afterwards: line by line {a}; compiled {b}")
    if want.printed != got.printed:
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
    got = observe(source, compiled)
    if mode == "strict" and any(map(_refused, got.errors)):
        untouched = observe(source, lambda f: lambda a: None)
        return difference(
            Observed(world=untouched.world, printed=untouched.printed),
            Observed(world=got.world, printed=got.printed),
        )
    fell_back = [w for w in got.warned if "runs line by line" in w]
    if len(fell_back) != len(set(fell_back)):
        return f"warned more than once: {got.warned}"
    return difference(observe(source, plain), got)


def _refused(error: Exception) -> bool:
    return isinstance(error, (UnsupportedSyntaxError, NeedsValue, JoinError))
