"""Results of blocks of statements, and values of variables whose binding is uncertain.

The evaluation of statements passes `Flow` upwards; the other classes are values of variables,
resolved when the variable is read (`evaluation.variables`).
"""

from __future__ import annotations

from ..types import Flag, Value

__all__ = ["Flow", "Maybe", "NORMAL", "NOTHING", "Undefined", "Unjoined"]


class Flow:
    """The way in which a block of statements ended. At most one of the three flags holds.

    Attributes:
        ret, brk, cont: whether it returned, broke out of its loop, continued with the next
            iteration. Each is a Python bool if that is known, else a bool of the graph.
        value: the returned value.
        dead: whether it raised an error for certain.
    """

    __slots__ = ("ret", "brk", "cont", "value", "dead")

    def __init__(
        self,
        ret: Flag = False,
        brk: Flag = False,
        cont: Flag = False,
        value: Value = None,
        dead: bool = False,
    ) -> None:
        self.ret = ret
        self.brk = brk
        self.cont = cont
        self.value = value
        self.dead = dead

    @property
    def normal(self) -> bool:
        """Whether control certainly reached the end of the block."""
        return self.ret is False and self.brk is False and self.cont is False and not self.dead

    @property
    def certain(self) -> bool:
        """Whether control certainly left the block before its end."""
        return self.ret is True or self.brk is True or self.cont is True or self.dead


NORMAL = Flow()


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()  # the return value of a loop that has not returned yet


class Undefined:
    """A variable that only one branch binds: reading it is an error.

    Attributes:
        where: the branch that does not bind it.
    """

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where

    def __repr__(self) -> str:
        return f"Undefined({self.name})"


class Unjoined(Undefined):
    """A variable that holds a different new object after each branch: reading it raises `error`."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name, "")
        self.error = error


class Maybe:
    """A variable bound by code that may not run; reading it checks `bound` when the graph runs."""

    def __init__(self, name: str, value: Value, bound: Flag) -> None:
        self.name = name
        self.value = value
        self.bound = bound
