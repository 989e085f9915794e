"""Questions of Python about a size: compiled once for many sizes they have Python's own answers."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import math
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

from .test_symbolic_sizes import families, flat, outcome

SIZES = (5, 6, 7, 8, 6, 9, 2, 11, 3)


class Names(set):
    """A set with a method."""


class Flags(enum.IntFlag):
    ONE = 1
    TWO = 2


class Colour(enum.Enum):
    RED = 6


@dataclasses.dataclass(frozen=True)
class Key:
    n: Any


ORDERED = collections.OrderedDict([(6, 1), (7, 2)])
COUNTS = collections.Counter([6, 6, 7])
DEFAULTS = collections.defaultdict(int, {6: 5})
NAMES = Names([6, 7])
PLAIN = {6: "a", 7: "b"}


def attribute_of_ours(x):
    try:
        return x * x.shape[0].hint
    except AttributeError:
        return x


def caught_type_error(x):
    try:
        return x * (7.5 % x.shape[0])
    except TypeError:
        return x


def caught_by_a_context(x):
    y = x
    with contextlib.suppress(TypeError, ValueError):
        y = x * divmod(x.shape[0] / 2, 2.0)[1]
    return y


def ended_by_finally(x):
    y = x
    try:
        y = x * np.sqrt(x.shape[0])
    finally:
        return y  # noqa: B012


OVERLOADED = ops.MultitypeFuncGraph("overloaded")


@OVERLOADED.register("Tensor", ms.int32)
def times(x, n):
    return x * n


@OVERLOADED.register("Tensor", "Number")
def minus(x, n):
    return x - n


# n is the size, r is half of it
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    # powers
    "high power": lambda x, n, r: n**9,
    "high power of a tensor": lambda x, n, r: x.astype(ms.int32) * (n**9 % 7),
    "negative power": lambda x, n, r: n**-1,
    "power of a negative number": lambda x, n, r: (n - 8.5) ** 0.5,
    "complex product": lambda x, n, r: x * (n - 8.5) ** 0.5,
    "power of zero": lambda x, n, r: (n - 2) ** 0.5,
    "whole power of a negative number": lambda x, n, r: (-r) ** 3,
    "power of a real": lambda x, n, r: (n**r, r**n, 2.0**r),
    # no relation holds for NaN
    "above nan": lambda x, n, r: n > math.nan,
    "at least nan": lambda x, n, r: n >= math.nan,
    "nan below": lambda x, n, r: math.nan < n,
    "nan is not": lambda x, n, r: (n != math.nan, n == math.nan, r > math.nan, r != math.nan),
    "infinite": lambda x, n, r: (float(n) == math.inf, n < math.inf, float(n) == math.nan),
    # operands of NumPy
    "numpy product": lambda x, n, r: n * np.int64(2),
    "product of numpy": lambda x, n, r: np.int64(2) * n,
    "numpy sum": lambda x, n, r: n + np.int32(1),
    "numpy float": lambda x, n, r: np.float64(0.5) * n,
    "numpy float and real": lambda x, n, r: np.float32(2) * r,
    "numpy quotient": lambda x, n, r: np.int64(40) // n,
    "quotient by numpy": lambda x, n, r: n // np.int64(4),
    "remainder by numpy": lambda x, n, r: n % np.int8(4),
    "small numpy integer": lambda x, n, r: n - np.int8(100),
    "dtype of a numpy factor": lambda x, n, r: x.astype(ms.int8) * (n * np.int64(2)),
    "equal to numpy": lambda x, n, r: n == np.int64(6),
    "not equal to numpy": lambda x, n, r: n != np.int64(6),
    "above numpy": lambda x, n, r: n > np.int64(6),
    "numpy above": lambda x, n, r: np.int64(6) > n,
    "numpy real": lambda x, n, r: n > np.float32(6),
    "array and size": lambda x, n, r: n + np.array(3),
    "size from array": lambda x, n, r: np.array(3) - n,
    "arrays": lambda x, n, r: (np.arange(3) * n).tolist(),
    "array of real": lambda x, n, r: (r * np.arange(3)).tolist(),
    "comparison of an array": lambda x, n, r: (np.arange(8) == n).tolist(),
    "bits of numpy": lambda x, n, r: n & np.int64(3),
    "function of numpy": lambda x, n, r: np.prod(x.shape),
    "ufunc": lambda x, n, r: np.sqrt(n),
    "ufunc of a real": lambda x, n, r: np.floor(r),
    # remainders with floats
    "float remainder": lambda x, n, r: 5.5 % n,
    "remainder by a float": lambda x, n, r: n % 2.5,
    "divmod of a float": lambda x, n, r: divmod(5.5, n),
    "divmod by a float": lambda x, n, r: divmod(n, 2.5),
    "divmod of a real": lambda x, n, r: (divmod(r, 2), divmod(7, r)),
    # attributes
    "attribute of ours": lambda x, n, r: (hasattr(n, "hint"), getattr(n, "scope", 3)),
    "attribute of ours of a real": lambda x, n, r: (hasattr(r, "parts"), hasattr(r, "scope")),
    "attributes of int": lambda x, n, r: (hasattr(n, "from_bytes"), hasattr(n, "__complex__")),
    "attributes of float": lambda x, n, r: (hasattr(r, "fromhex"), r.real, r.imag, r.hex()),
    "parts": lambda x, n, r: (n.real, n.imag, n.numerator, n.denominator, n.bit_length()),
    "special methods": lambda x, n, r: (n.__mul__(2.0), n.__lt__(6.5), n.__add__(1)),
    "special hash": lambda x, n, r: (n.__hash__(), x.shape.__hash__()),
    "identity": lambda x, n, r: (n is x.shape[1], n is n, n is None, n is x.shape[0]),
    "overload by dtype": lambda x, n, r: (OVERLOADED(x, n), OVERLOADED(x, r)),
    "class": lambda x, n, r: (n.__class__, type(n), type(r), ms.ops.typeof(n)),
    # containers that look by hash
    "in an ordered dict": lambda x, n, r: n in ORDERED,
    "in a counter": lambda x, n, r: (n in COUNTS, COUNTS[n]),
    "in a default dict": lambda x, n, r: n in DEFAULTS,
    "in a set of the user": lambda x, n, r: n in NAMES,
    "in keys": lambda x, n, r: (n in PLAIN.keys(), n in PLAIN.values()),  # noqa: SIM118
    "in items": lambda x, n, r: (n, "a") in PLAIN.items(),
    "made set of the user": lambda x, n, r: len(Names([n, 6])),
    "enum": lambda x, n, r: Colour(n) is Colour.RED if n == 6 else n,
    "flags": lambda x, n, r: Flags(n % 4),
    "object as key": lambda x, n, r: {Key(6): 1}.get(Key(n)),
    "set of objects": lambda x, n, r: len({Key(n), Key(6), (Key(7),)}),
    "hash of an object": lambda x, n, r: hash(Key(n)) == hash(Key(6)),
    # results
    "slice": lambda x, n, r: slice(0, n),
    "nested slices": lambda x, n, r: {"a": [slice(n), (slice(None, n // 2, r),)]},
}
ERRORS: dict[str, Callable[[Any], Any]] = {
    "attribute of ours": attribute_of_ours,
    "type error": caught_type_error,
    "context": caught_by_a_context,
    "finally": ended_by_finally,
}


def agrees(program: Callable[..., Any]) -> Any:
    """Run a program of one tensor for many sizes, compiled and not; return the compiled one."""
    compiled = ms.jit(program, dynamic=1, jit_level="O0")
    for n in SIZES:
        x = ms.Tensor(np.arange(3 * n, dtype=np.float32).reshape(n, 3))
        assert outcome(compiled, (x,)) == outcome(program, (x,)), n
    return compiled


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a program of its own for each size
@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_are_those_of_python(name: str) -> None:
    question = PROGRAMS[name]

    def program(x):
        return question(x, x.shape[0], x.shape[0] / 2)

    agrees(program)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_symbolic_sizes_are_never_caught(name: str) -> None:
    agrees(ERRORS[name])


def one_program(x):
    """Use its size in ways that need no number."""
    n = x.shape[0]
    r = n / 2
    y = x * (7.5 % n) + divmod(r, 2.0)[1] * n.numerator + r.real
    if n > 1.5 and r < np.int64(100) and n != math.nan and hasattr(n, "real"):
        y = y / n**0.5 + r**0.5
    return y, slice(1, n), n // 2.0


def test_these_answers_need_no_program_for_each_size() -> None:
    (family,) = families(agrees(one_program))
    assert len(family.programs) == 1
    assert flat(one_program(ops.ones((4, 3))))[-1] == ("float", "2.0")
