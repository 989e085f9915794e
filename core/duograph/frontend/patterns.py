"""Patterns of `match`: whether one fits, and the names that it binds."""

from __future__ import annotations

import ast
import operator
from typing import Any

from ..errors import UnsupportedSyntaxError
from .branches import truth
from .frames import Frame, store
from .trace import Trace

__all__ = ["matches"]


def matches(t: Trace, frame: Frame, subject: Any, pattern: Any) -> Any:
    """Whether a pattern fits a value: a Python bool, or a bool of the graph for a value pattern on
    a tensor.
    """
    from .calls import native
    from .expressions import evaluate

    if isinstance(pattern, ast.MatchValue):
        return truth(t, native(t, operator.eq, (subject, evaluate(t, frame, pattern.value)), {}))
    if isinstance(pattern, ast.MatchSingleton):
        return subject is pattern.value
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            found = matches(t, frame, subject, pattern.pattern)
            if found is not True:
                return found
        if pattern.name is not None:
            store(t, frame, pattern.name, subject)
        return True
    if isinstance(pattern, ast.MatchOr):
        for p in pattern.patterns:
            found = matches(t, frame, subject, p)
            if not isinstance(found, bool):
                raise _refused("got alternatives on a Tensor inside jit")
            if found:
                return True
        return False
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(t, frame, subject, pattern.patterns)
    if isinstance(pattern, ast.MatchMapping):
        if not isinstance(subject, dict):
            return False
        keys = [evaluate(t, frame, k) for k in pattern.keys]
        if any(k not in subject for k in keys):
            return False
        if not all(
            _known(matches(t, frame, subject[k], p)) for k, p in zip(keys, pattern.patterns)
        ):
            return False
        if pattern.rest is not None:
            store(t, frame, pattern.rest, {k: v for k, v in subject.items() if k not in keys})
        return True
    if isinstance(pattern, ast.MatchClass):
        return _class(t, frame, subject, pattern)
    raise _refused(f"got the pattern {type(pattern).__name__!r} inside jit")


def _refused(what: str) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(f"Match: {what}", construct="Match", remedy="Use `if` and `elif`")


def _known(found: Any) -> bool:
    if not isinstance(found, bool):
        raise _refused("got a value on a Tensor inside a larger pattern")
    return found


def _sequence(t: Trace, frame: Frame, subject: Any, patterns: Any) -> bool:
    if not isinstance(subject, (list, tuple)):
        return False
    stars = [i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
    if not stars:
        return len(subject) == len(patterns) and all(
            _known(matches(t, frame, v, p)) for v, p in zip(subject, patterns)
        )
    star = stars[0]
    after = len(patterns) - star - 1
    if len(subject) < star + after:
        return False
    pairs = [*zip(subject[:star], patterns[:star])]
    pairs += zip(subject[len(subject) - after :], patterns[star + 1 :])
    if not all(_known(matches(t, frame, v, p)) for v, p in pairs):
        return False
    if patterns[star].name is not None:
        store(t, frame, patterns[star].name, list(subject[star : len(subject) - after]))
    return True


def _class(t: Trace, frame: Frame, subject: Any, pattern: Any) -> bool:
    from .attributes import get_attribute
    from .builtin_functions import _isinstance
    from .expressions import evaluate

    cls = evaluate(t, frame, pattern.cls)
    if not _known(_isinstance(t, subject, cls)):
        return False
    names = list(getattr(cls, "__match_args__", ()))
    if pattern.patterns and not names:
        if len(pattern.patterns) != 1:
            return False
        return _known(matches(t, frame, subject, pattern.patterns[0]))
    pairs = [*zip(names, pattern.patterns), *zip(pattern.kwd_attrs, pattern.kwd_patterns)]
    return all(
        hasattr(subject, n) and _known(matches(t, frame, get_attribute(t, subject, n), p))
        for n, p in pairs
    )
