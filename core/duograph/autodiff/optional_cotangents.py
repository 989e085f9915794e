"""Cotangents that are there in some runs only: a value that one branch uses, or a loop that may not
run.

The tape has nothing where no path leads back to a value; a zero would not do in its place, since
rules make other zeros of it, or NaN. So a cotangent has a status, and, where runs differ, a flag: a
host bool. Rules run on what is not there all the same; what they make of it has the flag too, and
is never added to anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import GradientError
from ..ir.builder import GraphBuilder
from ..ir.control import switch
from ..runtime_state import thread_state
from ..types import STACK
from .host_rules import full, nothing

__all__ = [
    "ABSENT",
    "PRESENT",
    "NEUTRAL",
    "GARBAGE",
    "Cotangent",
    "added",
    "settled",
    "either",
    "flag_of",
    "chosen",
]

# There in no run; in every run; where the flag says so, else what changes nothing when it is added;
# else anything.
ABSENT, PRESENT, NEUTRAL, GARBAGE = range(4)


@dataclasses.dataclass(frozen=True)
class Cotangent:
    """A cotangent, as values of the graph that is being built."""

    value: Any
    status: int = PRESENT
    flag: Any = None


def flag_of(c: Cotangent | None) -> Any:
    """Whether it is there, as a host bool of the graph."""
    builder: Any = thread_state.builder
    if c is None or c.status == ABSENT:
        return builder.host(False)
    return builder.host(True) if c.status == PRESENT else c.flag


def either(flags: Sequence[Any]) -> Any:
    """Whether one of them holds."""
    found = flags[0]
    for flag in flags[1:]:
        if flag._id != found._id:
            found = found.apply("or", found, flag)
    return found


def chosen(
    flag: Any, values: Sequence[Any], no: Callable[..., Any], yes: Callable[..., Any]
) -> Any:
    """`yes(*values)` where the flag holds, else `no(*values)`."""
    branches = []
    for function in (no, yes):
        inner = GraphBuilder()
        own = [inner.parameter(v._type) for v in values]
        with inner.current():
            branches.append(inner.finish((function(*own),)))
    builder: Any = thread_state.builder
    (found,) = builder.append(switch, (flag, *values), {"branches": tuple(branches)})
    return found


def _sum(a: Any, b: Any) -> Any:
    if a._type is STACK:
        raise GradientError(
            "a derivative of a loop is used twice inside a higher derivative; "
            "wanted one use: compute the loop once per derivative"
        )
    return a + b


def added(have: Cotangent, new: Cotangent) -> Cotangent:
    """The sum of two cotangents of one value."""
    a, b = have.value, new.value
    if GARBAGE not in (have.status, new.status):
        if PRESENT in (have.status, new.status):
            return Cotangent(_sum(a, b))
        return Cotangent(_sum(a, b), NEUTRAL, either([have.flag, new.flag]))
    if new.status != GARBAGE and have.status == GARBAGE:
        value = chosen(have.flag, (a, b), lambda a, b: b, _sum)
    elif have.status != GARBAGE:
        value = chosen(new.flag, (a, b), lambda a, b: a, _sum)
    else:
        first = chosen(new.flag, (a, b), lambda a, b: a, _sum)
        value = chosen(have.flag, (b, first), lambda b, first: b, lambda b, first: first)
    if PRESENT in (have.status, new.status):
        return Cotangent(value)
    return Cotangent(value, GARBAGE, either([have.flag, new.flag]))


def settled(c: Cotangent) -> Any:
    """The value for those who want one in every run: zeros where it is not there."""
    if c.status == PRESENT:
        return c.value

    def zeros(value: Any) -> Any:
        plain = not hasattr(value._type, "dtype")
        return nothing(value._type) if plain else full(value._type, 0)

    return chosen(c.flag, (c.value,), zeros, lambda value: value)
