"""Results of blocks of statements, and values of variables whose binding is uncertain.

The evaluation of a block returns a `Flow` to the statement around it. The other classes are values
of variables, which are resolved when the variable is read (`evaluation.variables`). The objects
only hold data; nothing here evaluates source.
"""

from __future__ import annotations

from ..types import Flag, Value

__all__ = ["Flow", "Maybe", "NORMAL", "NOTHING", "Undefined", "Unjoined"]


class Flow:
    """How a block of statements ended: normally, or by return, break, continue or an error.

    Attributes:
        ret, brk, cont: whether the block ended by `return`, `break` or `continue`; at most one of
            them is true. Each is a Python bool if known at compile time, else a bool that the graph
            computes.
        value: the returned value, if `ret` is or may be true.
        dead: whether the block always raises an error.
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
        """Whether control is known to reach the end of the block of statements."""
        return self.ret is False and self.brk is False and self.cont is False and not self.dead

    @property
    def certain(self) -> bool:
        """Whether control is known to leave the block of statements before its end."""
        return self.ret is True or self.brk is True or self.cont is True or self.dead


NORMAL = Flow()


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()  # return value of a loop before any `return`


class Undefined:
    """Value of a variable that only one branch of a graph condition binds; reading it is an error.

    Attributes:
        name: the name of the variable.
        where: the branch that does not bind the variable.
    """

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where

    def __repr__(self) -> str:
        return f"Undefined({self.name})"


class Unjoined(Undefined):
    """Value of a variable that each branch of a graph condition binds to a different new object.

    Attributes:
        error: the error to raise when the variable is read.
    """

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name, "")
        self.error = error


class Maybe:
    """Value of a variable that is bound only by code which a graph condition may skip.

    Reading the variable appends a node that checks `bound` when the graph runs.

    Attributes:
        name: the name of the variable.
        value: its value if it is bound.
        bound: whether it is bound, as a Python bool or a bool of the graph.
    """

    def __init__(self, name: str, value: Value, bound: Flag) -> None:
        self.name = name
        self.value = value
        self.bound = bound
