"""Optional cotangents: gradients that exist only in some runs of a graph.

A value that only one branch of a switch uses, or that a loop of zero iterations never reads, has a
cotangent in some runs and none in others. The eager tape stores nothing for a value to which no
path leads back. A zero would not be equivalent, because gradient rules turn zeros into other zeros
or into NaN. Therefore each cotangent has a *status* known at compile time. If runs differ, it also
has a *flag*: a Python bool that the graph computes. Gradient rules also run on absent cotangents.
Their results get the same flag, and a sum contains only cotangents whose flag is true. The reverse
sweep and the plans of switches, loops and calls use this module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ..ir.builder import GraphBuilder, GraphValue, current_builder
from ..ir.control import switch
from ..ir.values import GraphObject, GraphScalar, NeedsValue
from ..types import STACK, HostType
from .host_rules import additive_identity, filled

__all__ = [
    "ABSENT",
    "PRESENT",
    "NEUTRAL",
    "GARBAGE",
    "Cotangent",
    "added",
    "either",
    "flag_of",
    "select",
    "with_zeros",
]

# ABSENT: in no run. PRESENT: in every run. Otherwise the flag says whether there is a cotangent;
# without one, the value is an additive identity (NEUTRAL) or arbitrary (GARBAGE).
ABSENT, PRESENT, NEUTRAL, GARBAGE = range(4)


@dataclasses.dataclass(frozen=True)
class Cotangent:
    """A cotangent (gradient of a graph value), and whether it exists in every run.

    Attributes:
        value: the cotangent.
        status: PRESENT: it exists in every run. NEUTRAL: it exists in some runs; in the others the
            value leaves any sum unchanged, such as -0.0. GARBAGE: it exists in some runs; in the
            others the value is arbitrary.
        flag: a symbolic bool that says at run time whether the cotangent exists; None if the status
            is PRESENT.
    """

    value: GraphValue
    status: int = PRESENT
    flag: GraphScalar | None = None


def flag_of(c: Cotangent | None) -> GraphScalar:
    """Return the symbolic bool that says, at run time, whether a cotangent exists.

    It is the constant True for a cotangent of status PRESENT, and the constant False if there is no
    cotangent (None).
    """
    if c is not None and c.status > PRESENT:
        assert c.flag is not None
        return c.flag
    found: GraphScalar = current_builder().host(c is not None and c.status == PRESENT)
    return found


def either(flags: Sequence[GraphScalar | None]) -> GraphScalar:
    """Return the logical or of several run-time flags, as a symbolic bool."""
    found = flags[0]
    assert found is not None
    for flag in flags[1:]:
        assert flag is not None
        if flag._id != found._id:
            found = found.apply("or", found, flag)
    return found


def select(
    flag: GraphScalar,
    values: Sequence[GraphValue],
    no: Callable[..., GraphValue],
    yes: Callable[..., GraphValue],
) -> GraphValue:
    """Append a switch that computes `yes(*values)` if the flag is true, else `no(*values)`.

    Returns the symbolic result.
    """
    branches = []
    for function in (no, yes):
        inner = GraphBuilder()
        own = [inner.parameter(v._type) for v in values]
        with inner.current():
            branches.append(inner.finish((function(*own),)))
    found: GraphValue
    (found,) = current_builder().append(switch, (flag, *values), {"branches": tuple(branches)})
    return found


def _sum(a: GraphValue, b: GraphValue) -> GraphValue:
    """Return the symbolic sum of two cotangents; raise NeedsValue for stacks of cotangents."""
    if a._type is STACK:
        raise NeedsValue(
            "a derivative of a loop is used twice inside a higher derivative; "
            "wanted one use: compute the loop once per derivative"
        )
    assert not isinstance(a, GraphObject)
    total: GraphValue = a + b
    return total


def _first(a: GraphValue, b: GraphValue) -> GraphValue:
    return a


def _second(a: GraphValue, b: GraphValue) -> GraphValue:
    return b


def added(have: Cotangent, new: Cotangent) -> Cotangent:
    """Return the sum of two cotangents of a value, each of which may exist only in some runs.

    In a run in which only one of them exists, the sum is that one; in a run without both, the sum
    does not exist.
    """
    a, b = have.value, new.value
    if GARBAGE not in (have.status, new.status):
        if PRESENT in (have.status, new.status):
            return Cotangent(_sum(a, b))
        return Cotangent(_sum(a, b), NEUTRAL, either([have.flag, new.flag]))
    if new.status != GARBAGE:
        value = select(flag_of(have), (a, b), _second, _sum)
    elif have.status != GARBAGE:
        value = select(flag_of(new), (a, b), _first, _sum)
    else:
        first = select(flag_of(new), (a, b), _first, _sum)
        value = select(flag_of(have), (b, first), _first, _second)
    if PRESENT in (have.status, new.status):
        return Cotangent(value)
    return Cotangent(value, GARBAGE, either([have.flag, new.flag]))


def with_zeros(c: Cotangent) -> GraphValue:
    """Return the value of an optional cotangent, or zeros in runs in which it does not exist."""
    if c.status == PRESENT:
        return c.value

    def zeros(value: GraphValue) -> GraphValue:
        type_ = value._type
        return additive_identity(type_) if isinstance(type_, HostType) else filled(type_, 0)

    return select(flag_of(c), (c.value,), zeros, lambda value: value)
