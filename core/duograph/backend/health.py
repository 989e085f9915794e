"""The facts that a backend reports when `duograph doctor` examines a device.

`Backend.examine` returns them and the command prints them. The module holds data alone.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """One fact about a machine, and the command that mends it.

    Attributes:
        what: the thing, such as "C compiler".
        state: "good"; "slow": programs run, but slower than they could; "bad": something important
            is missing; "absent": it is not there, and only some programs need it.
        text: what was found.
        remedy: a command for a shell; "" if there is nothing to mend.
    """

    what: str
    state: str
    text: str
    remedy: str = ""
