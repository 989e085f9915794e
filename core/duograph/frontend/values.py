"""Values that exist only while source is evaluated."""

from __future__ import annotations

from typing import Any

__all__ = ["Flow", "NORMAL", "NOTHING", "Undefined", "Unjoined", "Maybe", "Choice"]


class Flow:
    """How a block ended. Flags are Python bools where that is known, else bools of the graph; at
    most one holds.

    Attributes:
        ret, brk, cont: it returned, broke out of its loop, went on with the next turn.
        value: what it returned.
        dead: it raised.
    """

    __slots__ = ("ret", "brk", "cont", "value", "dead")

    def __init__(
        self,
        ret: Any = False,
        brk: Any = False,
        cont: Any = False,
        value: Any = None,
        dead: bool = False,
    ) -> None:
        self.ret = ret
        self.brk = brk
        self.cont = cont
        self.value = value
        self.dead = dead

    @property
    def normal(self) -> bool:
        """It went through to its end, for certain."""
        return self.ret is False and self.brk is False and self.cont is False and not self.dead

    @property
    def certain(self) -> bool:
        """It did not go through to its end, for certain."""
        return self.ret is True or self.brk is True or self.cont is True or self.dead


NORMAL = Flow()


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()  # where a value will be once there is a reason for one


class Undefined:
    """A name that only one branch binds: reading it is an error."""

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where

    def __repr__(self) -> str:
        return f"Undefined({self.name})"


class Unjoined(Undefined):
    """A name that means another new object after each of two branches: reading it is an error,
    leaving it is none.
    """

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name, "")
        self.error = error


class Choice:
    """A callable that a tensor picks; calling it is a switch.

    Attributes:
        cond: a bool of the graph.
        orelse, then: the callables.
    """

    __slots__ = ("cond", "orelse", "then")

    def __init__(self, cond: Any, orelse: Any, then: Any) -> None:
        self.cond = cond
        self.orelse = orelse
        self.then = then


class Maybe:
    """A name bound by something that may not have run: reading it checks that when the graph runs."""

    def __init__(self, name: str, value: Any, bound: Any) -> None:
        self.name = name
        self.value = value
        self.bound = bound
