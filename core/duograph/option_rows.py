"""Defines the rows of the table of options, and texts that rows of several modules share.

`option_table` and `option_training` write their rows with it. It imports nothing of the package, so
any module may import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["MOOT", "ONE", "REFUSED", "SINK", "WORKS", "Option", "rows"]

WORKS, MOOT, REFUSED = "works", "no meaning", "refused"
ONE = "one process runs on one device, so nothing is distributed"
SINK = "batches are fed one by one"


class Option(NamedTuple):
    """One row of the table of options that public callables accept.

    Attributes:
        owner: the public callable that takes the option, as written after ``duograph.``.
        name: its keyword; "" for a callable that as a whole has no meaning here.
        status: WORKS, MOOT (the option has no meaning here, and one warning says so) or REFUSED.
        about: what the option does, why it has no meaning here, or what to use instead.
        value: Python source of a value other than the default; the tests pass it.
        default: the value that changes nothing.
    """

    owner: str
    name: str
    status: str
    about: str
    value: str = "1"
    default: object = None


def rows(status: str, owner: str, *options: tuple[object, ...]) -> Iterator[Option]:
    """Yield an `Option` for each tuple (name, about, value, default) of one callable.

    Args:
        status: the status of all these options.
        owner: the callable.
        options: the tuples; value and default may be left out.
    """
    for name, about, *rest in options:
        yield Option(owner, str(name), status, str(about), *rest)  # type: ignore[arg-type]
