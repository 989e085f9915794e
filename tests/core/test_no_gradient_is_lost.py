"""Every public function: its gradient is right where it is zero, or an error says that it is lost.

Functions, Tensor methods, primitives and layers are called with generic operands, some of them
where a number is expected. A result that changes smoothly with an operand whose gradient is zero is
a gradient that was lost unnoticed. `make test-all` calls all of them, `make test` a quarter.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
from amount import FULL
from duograph import Tensor, nn, numpy, ops
from duograph.errors import GradientError

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.3, 0.9, (2, 3, 4))
DIRECTION = RNG.uniform(-1, 1, X.shape)
STEP = 1e-5

# Zero by definition, although the result changes with the operand.
BY_DEFINITION = {"stop_gradient", "StopGradient", "from_dlpack"}

Call = Callable[[Tensor], Any]
FORMS: dict[str, Callable[[Callable[..., Any], Tensor], Any]] = {
    "(x)": lambda f, x: f(x),
    "(x, x)": lambda f, x: f(x, x),
    "(y, x)": lambda f, x: f(Tensor(Y), x),
    "(x, y)": lambda f, x: f(x, Tensor(Y)),
    "(y, number)": lambda f, x: f(Tensor(Y), x[0, 0]),
    "(number)": lambda f, x: f(x[0, 0]),
    "([x, x])": lambda f, x: f([x, x]),
    "(x, 2)": lambda f, x: f(x, 2),
    "(square)": lambda f, x: f(x[:3, :3]),
}


def named(where: Any, classes: bool) -> Iterator[str]:
    """Yield the public names of callables, or of classes, that this run calls."""
    for name in sorted(dir(where)):
        found = getattr(where, name)
        if name.startswith("_") or not callable(found) or isinstance(found, type) is not classes:
            continue
        if FULL or zlib.crc32(name.encode()) % 4 == 0:
            yield name


def calls() -> Iterator[tuple[str, str, Call]]:
    """Yield (name, form, function of one Tensor)."""
    for module in (ops, numpy):
        for name in named(module, False):
            function = getattr(module, name)
            for form, use in FORMS.items():
                yield name, form, lambda x, f=function, use=use: use(f, x)
    for name in named(Tensor, False):
        for form, use in FORMS.items():
            yield name, f"x.{form}", lambda x, n=name, u=use: u(lambda *a: getattr(x * 1, n)(*a), x)
            yield name, f"y.{form}", lambda x, n=name, u=use: u(getattr(Tensor(Y), n), x)
    for module in (ops, nn):
        for name in named(module, True):
            made = getattr(module, name)
            for form in ("(x)", "(x, x)", "(y, x)", "(y, number)"):
                yield name, form, lambda x, m=made, use=FORMS[form]: use(m(), x)


def floats(found: Any) -> list[Tensor]:
    several = found if isinstance(found, (tuple, list)) else (found,)
    return [t for t in several if isinstance(t, Tensor) and t.dtype.kind == "f"]


def total(call: Call, x: Tensor) -> Tensor:
    """Return a weighted sum of a call's floating results, from the same random state each time."""
    ms.set_seed(1)
    parts = [
        (t.astype(ms.float64) * Tensor(np.cos(np.arange(t.size)).reshape(t.shape))).sum()
        for t in floats(call(x))
    ]
    return sum(parts[1:], parts[0])


def is_lost(call: Call) -> bool | None:
    """Return whether the gradient of a call is zero although it changes; None if it raises."""
    try:
        ahead, behind = (total(call, Tensor(X + s * STEP * DIRECTION)).item() for s in (1, -1))
    except Exception:  # noqa: BLE001 (the operands do not fit)
        return None
    slope = abs(ahead - behind) / (2 * STEP)
    if not 1e-5 < slope < 1e3:  # a jump, or constant
        return None
    with contextlib.suppress(GradientError):
        return not ms.grad(lambda x: total(call, x))(Tensor(X)).asnumpy().any()
    return False


@pytest.mark.filterwarnings("ignore")
def test_no_gradient_is_lost() -> None:
    lost = set()
    compared = 0
    with contextlib.redirect_stdout(io.StringIO()):
        for name, form, call in calls():
            found = is_lost(call)
            compared += found is not None
            if found and name not in BY_DEFINITION:
                lost.add(f"{name}{form}")
    assert not lost
    assert compared > (1500 if FULL else 300), compared
