"""Evaluates `match` statements: tests patterns against a value and binds their names.

A value pattern on a tensor is a graph condition, and so is every pattern that contains it. The
graph tests all parts of such a pattern, without branches. Python may stop at the first part that
does not fit, but it does not promise how many comparisons a pattern makes. Names must not be bound
before the whole pattern fits.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ...errors import JoinError, UnsupportedSyntaxError
from ...ir.values import GraphObject, NeedsValue
from ...tensor import Tensor
from ..libraries import is_users_class
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.flow import NORMAL, Flow
from ..values.ranges import GraphRange
from .attributes import get_attribute
from .blocks import run_block
from .branches import select
from .class_questions import is_instance
from .dispatch import evaluate, syntax
from .iteration import iterate, pairs_of
from .operators import apply, condition, identical
from .truth import as_flag, both, either, truth
from .variables import store

Names: TypeAlias = dict[str, Value]  # what a pattern binds
Pairs: TypeAlias = Iterable[tuple[Value, Value]]  # values, each with its pattern


# Flags of classes that sequence and mapping patterns match, and of those, such as `int`, whose only
# positional part is the object itself.
_SEQUENCE, _MAPPING, _MATCHES_ITSELF = 1 << 5, 1 << 6, 1 << 22


class _Rest:
    """The value that `*rest` or `**rest` of a `match` pattern captures.

    The name is bound only after the whole pattern has fitted, to a new list or dict of `content`.
    """

    def __init__(self, content: Value) -> None:
        self.content = content


@syntax(ast.Match)
def _match(ev: Evaluation, frame: Frame, node: Value) -> Flow:
    subject = evaluate(ev, frame, node.subject)
    return _cases(ev, frame, subject, node.cases)


def _cases(ev: Evaluation, frame: Frame, subject: Value, cases: Sequence[Value]) -> Flow:
    """Trace the first `match` case that fits and whose `if` is true; return its body's `Flow`.

    If a graph condition decides whether a case fits, the body and the cases after it become two
    branches.
    """
    if not cases:
        return NORMAL
    case = cases[0]
    names: Names = {}
    found = matches(ev, frame, subject, case.pattern, names)
    if found is not False and case.guard is not None:
        found = _guarded(ev, frame, found, names, case.guard)

    def body() -> Flow:
        if case.guard is None:  # a guard has bound the names already
            _bind(ev, frame, names)
        return run_block(ev, frame, case.body)

    if found is True:
        return body()
    if found is False:
        return _cases(ev, frame, subject, cases[1:])
    return select(
        ev,
        found,
        body,
        lambda: _cases(ev, frame, subject, cases[1:]),
        "the result",
        ("next case", "case"),
        frame,
    )


def _bind(ev: Evaluation, frame: Frame, names: Names) -> None:
    for name, value in names.items():
        made = ev.owned.add(value.content.copy()) if isinstance(value, _Rest) else value
        store(ev, frame, name, made)


def _guarded(ev: Evaluation, frame: Frame, found: Value, names: Names, guard: Value) -> Value:
    """Return whether a `match` pattern fits and its case's `if` is true, as a Python or graph bool.

    The names of the pattern are bound, and the `if` is evaluated, only if the pattern fits.

    Args:
        ev: the evaluation.
        frame: the frame of the function.
        found: whether the pattern fits.
        names: the names that it binds, with their values.
        guard: the expression after `if`.
    """

    def test() -> Value:
        _bind(ev, frame, names)
        return condition(ev, frame, guard)

    if found is True:
        return test()
    return select(
        ev, found, lambda: as_flag(test()), lambda: as_flag(False), "the guard", late=True
    )


def matches(ev: Evaluation, frame: Frame, subject: Value, pattern: Value, names: Names) -> Value:
    """Return whether a `match` pattern fits a value, as a Python bool or a bool of the graph.

    Args:
        ev: the evaluation.
        frame: the frame of the function.
        subject: the value.
        pattern: the syntax node of the pattern.
        names: receives the names and values that the pattern binds.
    """
    if isinstance(pattern, ast.MatchValue):
        return truth(ev, apply(ev, operator.eq, subject, evaluate(ev, frame, pattern.value)))
    if isinstance(pattern, ast.MatchSingleton):
        return identical(ev, subject, pattern.value)
    if isinstance(pattern, ast.MatchAs):
        found: Value = True
        if pattern.pattern is not None:
            found = matches(ev, frame, subject, pattern.pattern, names)
        if pattern.name is not None:
            names[pattern.name] = subject
        return found
    if isinstance(pattern, ast.MatchOr):
        return _alternatives(ev, frame, subject, pattern.patterns, names)
    if isinstance(pattern, ast.MatchClass):
        return _class(ev, frame, subject, pattern, names)
    if isinstance(subject, GraphObject):
        raise _refused("got an object that only Python knows, to be taken apart inside jit")
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(ev, frame, subject, pattern.patterns, names)
    if isinstance(pattern, ast.MatchMapping):
        return _mapping(ev, frame, subject, pattern, names)
    raise _refused(f"got the pattern {type(pattern).__name__!r} inside jit")


def _refused(what: str) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(f"Match: {what}", construct="Match", remedy="Use `if` and `elif`")


def _alternatives(
    ev: Evaluation, frame: Frame, subject: Value, patterns: Value, names: Names
) -> Value:
    """Return whether any alternative of an or-pattern fits, as a Python or graph bool.

    The names that the first one that fits binds are added to `names`. If a graph condition decides
    which one that is, the graph chooses the value of each name.
    """
    found: Value = False
    bound: Names = {}
    for p in patterns:
        inner: Names = {}
        fits = matches(ev, frame, subject, p, inner)
        if fits is False:
            continue
        if found is False:
            bound = inner
        else:
            bound = {k: _chosen(ev, found, v, inner[k], k) for k, v in bound.items()}
        found = either(found, fits)
        if found is True:
            break
    names.update(bound)
    return found


def _chosen(ev: Evaluation, cond: Value, first: Value, later: Value, name: str) -> Value:
    """Return what an or-pattern binds to a name: `first` if `cond` is true, otherwise `later`.

    Args:
        ev: the evaluation.
        cond: a bool of the graph, whether an alternative before the one that binds `later` fits.
        first: what the alternatives before bind.
        later: what the next alternative binds, of the same type.
        name: the name.
    """
    if first is later:
        return first
    if isinstance(first, _Rest) and isinstance(later, _Rest):
        if type(first.content) is not list:
            raise _refused(f"got alternatives on a Tensor that bind the dict {name!r} differently")
        content = _chosen(ev, cond, tuple(first.content), tuple(later.content), name)
        return _Rest(list(content))
    try:
        return select(ev, cond, lambda: first, lambda: later, name, ("next pattern", "pattern"))
    except JoinError as error:
        raise _refused(
            f"got alternatives on a Tensor that bind {error.name!r} to values of different types: "
            + " and ".join(error.sides)
        ) from error


def _all(ev: Evaluation, frame: Frame, pairs: Pairs, names: Names) -> Value:
    """Return whether all of several `match` patterns fit their values, as a Python or graph bool.

    `pairs` are the values with their patterns. The names that the patterns bind are added to
    `names`.
    """
    found: Value = True
    for subject, pattern in pairs:
        found = both(found, matches(ev, frame, subject, pattern, names))
        if found is False:
            break
    return found


def _has_flag(ev: Evaluation, subject: Value, flag: int) -> bool:
    """Return whether a class has a flag, which `abc` sets for a registered class; record it."""
    kind = type(subject)
    if is_users_class(kind):
        ev.captures.add("answer", _flag_of, (kind, flag), _flag_of(kind, flag), kind.__name__)
    return _flag_of(kind, flag)


def _flag_of(kind: type, flag: int) -> bool:
    return bool(kind.__flags__ & flag)


def _sequence(ev: Evaluation, frame: Frame, subject: Value, patterns: Value, names: Names) -> Value:
    if isinstance(subject, GraphRange):
        raise NeedsValue("match: got a range whose length is known only when the function runs")
    if type(subject) is not list and not isinstance(subject, tuple):
        if isinstance(subject, Tensor) or not _has_flag(ev, subject, _SEQUENCE):
            return False
        subject = tuple(iterate(ev, subject))
    ev.copies.observe(subject)
    stars = [i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
    if not stars:
        same = len(subject) == len(patterns)
        return same and _all(ev, frame, zip(subject, patterns), names)
    star = stars[0]
    after = len(patterns) - star - 1
    if len(subject) < star + after:
        return False
    pairs = [*zip(subject[:star], patterns[:star])]
    pairs += zip(subject[len(subject) - after :], patterns[star + 1 :])
    if patterns[star].name is not None:
        names[patterns[star].name] = _Rest(list(subject[star : len(subject) - after]))
    return _all(ev, frame, pairs, names)


def _mapping(ev: Evaluation, frame: Frame, subject: Value, pattern: Value, names: Names) -> Value:
    if type(subject) is not dict:
        if not _has_flag(ev, subject, _MAPPING):
            return False
        subject = pairs_of(ev, subject)
    ev.copies.observe(subject)
    keys = [evaluate(ev, frame, k) for k in pattern.keys]
    if any(k not in subject for k in keys):
        return False
    if pattern.rest is not None:
        names[pattern.rest] = _Rest({k: v for k, v in subject.items() if k not in keys})
    return _all(ev, frame, zip((subject[k] for k in keys), pattern.patterns), names)


def _class(ev: Evaluation, frame: Frame, subject: Value, pattern: Value, names: Names) -> Value:
    cls = evaluate(ev, frame, pattern.cls)
    found = is_instance(ev, subject, cls)
    if not (pattern.patterns or pattern.kwd_patterns) or found is False:
        return found
    if found is not True:
        raise _refused("got an object that only Python knows, to be taken apart inside jit")
    ev.captures.class_attribute(cls, "__match_args__")
    attributes = list(getattr(cls, "__match_args__", ()))
    matches_itself = not attributes and bool(cls.__flags__ & _MATCHES_ITSELF)
    _check_parts(cls, pattern, 1 if matches_itself else len(attributes))
    pairs = [*zip(attributes, pattern.patterns), *zip(pattern.kwd_attrs, pattern.kwd_patterns)]
    found = True
    if matches_itself and pattern.patterns:  # such as `int(v)`
        found = matches(ev, frame, subject, pattern.patterns[0], names)
    for name, inner in pairs:
        try:
            with ev.journal.catching():
                value = get_attribute(ev, subject, name)
        except AttributeError:
            return False
        found = both(found, matches(ev, frame, value, inner, names))
        if found is False:
            break
    return found


def _check_parts(cls: type, pattern: Value, most: int) -> None:
    """Raise TypeError if a class pattern has more than `most` positional parts."""
    given = len(pattern.patterns)
    if given > most:
        raise TypeError(
            f"{cls.__name__}() accepts {most} positional sub-pattern{'s' if most != 1 else ''} "
            f"({given} given)"
        )
