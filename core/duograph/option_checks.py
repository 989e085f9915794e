"""Checks of options: warnings for those without a meaning here, errors for those that are refused.

A public function passes the options that it does not use to `check_options`, which does what the
table of options says. Every warning comes once in a process. Any module may import this one, which
imports only the table and the modules of errors and hints.
"""

from __future__ import annotations

import os
import sys
import warnings

from .advice import like_keyword
from .errors import ArgumentError, ArgumentValueError, OptionWarning
from .option_table import OPTIONS, REFUSED, WORKS, Option, options_of

__all__ = ["check_options", "forget_warnings", "warn_moot", "warn_unused"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

_said: set[tuple[str, str]] = set()  # the options that this process has warned of


def check_options(owner: str, **given: object) -> None:
    """Warn of given options that have no meaning here, and refuse those that are not offered.

    Each option is warned of once in a process, and only if its value differs from its default.

    Args:
        owner: the public function or class, as the option table names it.
        given: values by option name.

    Raises:
        ArgumentError: an option that the table does not list.
        ArgumentValueError: a refused option with another value than its default.
    """
    asked: list[Option] = []
    for name, value in given.items():
        option = OPTIONS.get((owner, name))
        if option is None:
            known = ", ".join(o.name for o in options_of(owner))
            meant = like_keyword(name, _parameters_of_caller())
            raise ArgumentError(
                f"{owner}: got the unknown option {name!r}{meant or '; the other options are '}"
                f"{'' if meant else known}"
            )
        if option.status == WORKS or _asks_nothing(value, option.default):
            continue
        if option.status == REFUSED:
            raise ArgumentValueError(f"{owner}: got {name}, which is not offered; {option.about}")
        asked.append(option)
    _warn(asked)


def _parameters_of_caller() -> tuple[str, ...]:
    """Return the parameter names of the function that called `check_options`."""
    code = sys._getframe(2).f_code
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def warn_moot(owner: str) -> None:
    """Warn, once in a process, that the whole callable `owner` has no meaning in duograph."""
    _warn([OPTIONS[owner, ""]])


def _asks_nothing(value: object, default: object) -> bool:
    """Return whether an option's value is its default."""
    if value is default:
        return True
    return isinstance(value, (bool, int, float, str)) and value == default


def _warn(options: list[Option]) -> None:
    """Warn of those options that this process has not warned of; one warning for each reason."""
    names: dict[str, list[str]] = {}
    for option in options:
        if (option.owner, option.name) not in _said:
            _said.add((option.owner, option.name))
            names.setdefault(option.about, []).append(option.name)
    for about, found in names.items():
        owner, listed = options[0].owner, ", ".join(found)
        subject = f"{owner}: {listed}" if listed else owner
        verb = "have" if len(found) > 1 else "has"
        _warn_user(f"{subject} {verb} no meaning here: {about}")


def warn_unused(owner: str, name: str, instead: str = "") -> None:
    """Warn, once in a process, that a working option has no effect with the other options given.

    Args:
        owner, name: callable and option; a row of the option table.
        instead: the end of the warning; by default it is taken from the table.
    """
    if (owner, name) not in _said:
        _said.add((owner, name))
        text = instead or f"has no effect here: it {OPTIONS[owner, name].about}"
        _warn_user(f"{owner}: {name} {text}")


def _warn_user(text: str) -> None:
    """Issue a warning that names the innermost line of code outside duograph."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(text, OptionWarning, stacklevel=level)


def forget_warnings() -> None:
    """Forget which warnings were given, so that each option is warned of again; for tests."""
    _said.clear()
