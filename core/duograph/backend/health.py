"""Defines the facts that a backend reports when `duograph doctor` examines a device.

`Backend.examine` returns them and the command prints them. The module holds data alone.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """One fact about a machine, and the command that repairs what is wrong, if anything.

    Attributes:
        what: the part examined, such as "C compiler".
        state: "good"; "slow": programs run, but slower than they could; "bad": something important
            is missing; "absent": the part is missing, but only some programs need it.
        text: what was found.
        remedy: a shell command that repairs the part; "" if nothing needs repair.
    """

    what: str
    state: str
    text: str
    remedy: str = ""
