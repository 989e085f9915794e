"""`match`: tests whether a pattern fits a value, and binds its names.

A value pattern on a tensor is a graph condition; inside a larger pattern it is refused.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Sequence

from ...errors import UnsupportedSyntaxError
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.flow import NORMAL, Flow
from .attributes import get_attribute
from .blocks import run_block
from .branches import select
from .builtin_functions import is_instance
from .dispatch import evaluate, syntax
from .native import native
from .operators import condition
from .truth import truth
from .variables import store


@syntax(ast.Match)
def _match(ev: Evaluation, frame: Frame, node: Value) -> Flow:
    subject = evaluate(ev, frame, node.subject)
    return _cases(ev, frame, subject, node.cases, matches)


def _cases(
    ev: Evaluation, frame: Frame, subject: Value, cases: Sequence[Value], matches: Value
) -> Flow:
    """Evaluate the first case that fits."""
    if not cases:
        return NORMAL
    case = cases[0]
    found = matches(ev, frame, subject, case.pattern)
    if found is True and case.guard is not None:
        found = condition(ev, frame, case.guard)
    if found is True:
        return run_block(ev, frame, case.body)
    if found is False:
        return _cases(ev, frame, subject, cases[1:], matches)
    return select(
        ev,
        found,
        lambda: run_block(ev, frame, case.body),
        lambda: _cases(ev, frame, subject, cases[1:], matches),
        "the result",
        ("next case", "case"),
        frame.vars,
    )


def matches(ev: Evaluation, frame: Frame, subject: Value, pattern: Value) -> Value:
    """Return whether a pattern fits a value: a bool, or one of the graph.

    The latter is possible for a value pattern on a tensor only.
    """
    if isinstance(pattern, ast.MatchValue):
        return truth(ev, native(ev, operator.eq, (subject, evaluate(ev, frame, pattern.value)), {}))
    if isinstance(pattern, ast.MatchSingleton):
        return subject is pattern.value
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            found = matches(ev, frame, subject, pattern.pattern)
            if found is not True:
                return found
        if pattern.name is not None:
            store(ev, frame, pattern.name, subject)
        return True
    if isinstance(pattern, ast.MatchOr):
        for p in pattern.patterns:
            found = matches(ev, frame, subject, p)
            if not isinstance(found, bool):
                raise _refused("got alternatives on a Tensor inside jit")
            if found:
                return True
        return False
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(ev, frame, subject, pattern.patterns)
    if isinstance(pattern, ast.MatchMapping):
        if not isinstance(subject, dict):
            return False
        keys = [evaluate(ev, frame, k) for k in pattern.keys]
        if any(k not in subject for k in keys):
            return False
        if not all(
            _known_at_compile_time(matches(ev, frame, subject[k], p))
            for k, p in zip(keys, pattern.patterns)
        ):
            return False
        if pattern.rest is not None:
            store(ev, frame, pattern.rest, {k: v for k, v in subject.items() if k not in keys})
        return True
    if isinstance(pattern, ast.MatchClass):
        return _class(ev, frame, subject, pattern)
    raise _refused(f"got the pattern {type(pattern).__name__!r} inside jit")


def _refused(what: str) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(f"Match: {what}", construct="Match", remedy="Use `if` and `elif`")


def _known_at_compile_time(found: Value) -> bool:
    """Return a match result that must be known at compile time."""
    if not isinstance(found, bool):
        raise _refused("got a value on a Tensor inside a larger pattern")
    return found


def _sequence(ev: Evaluation, frame: Frame, subject: Value, patterns: Value) -> bool:
    if not isinstance(subject, (list, tuple)):
        return False
    stars = [i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
    if not stars:
        return len(subject) == len(patterns) and all(
            _known_at_compile_time(matches(ev, frame, v, p)) for v, p in zip(subject, patterns)
        )
    star = stars[0]
    after = len(patterns) - star - 1
    if len(subject) < star + after:
        return False
    pairs = [*zip(subject[:star], patterns[:star])]
    pairs += zip(subject[len(subject) - after :], patterns[star + 1 :])
    if not all(_known_at_compile_time(matches(ev, frame, v, p)) for v, p in pairs):
        return False
    if patterns[star].name is not None:
        store(ev, frame, patterns[star].name, list(subject[star : len(subject) - after]))
    return True


def _class(ev: Evaluation, frame: Frame, subject: Value, pattern: Value) -> bool:
    cls = evaluate(ev, frame, pattern.cls)
    if not _known_at_compile_time(is_instance(ev, subject, cls)):
        return False
    names = list(getattr(cls, "__match_args__", ()))
    if pattern.patterns and not names:
        if len(pattern.patterns) != 1:
            return False
        return _known_at_compile_time(matches(ev, frame, subject, pattern.patterns[0]))
    pairs = [*zip(names, pattern.patterns), *zip(pattern.kwd_attrs, pattern.kwd_patterns)]
    return all(
        hasattr(subject, n)
        and _known_at_compile_time(matches(ev, frame, get_attribute(ev, subject, n), p))
        for n, p in pairs
    )
