"""The stack of calls that are being evaluated, and the variables of each.

`evaluation.functions` pushes a frame per call of a user's function. Name lookup is in
`evaluation.variables`; this module only holds the data.
"""

from __future__ import annotations

import ast
from types import CellType
from typing import TYPE_CHECKING

from ..types import Value
from .journal import Scope

if TYPE_CHECKING:
    from ..evaluation.recursion import OpenCall
    from ..values.functions import Function

__all__ = ["CallStack", "Frame"]


class Frame:
    """The variables of one call.

    Attributes:
        function: the function that is called; `source`, `globals` and `closure` are its own.
        vars: the local variables that are bound.
        locals: the names that are local.
        parent: the frame of the function around; None at module level.
        depth: the depth of the graph in which the call began.
        node: the piece of syntax that is being evaluated.
        first: the first argument, which `super()` refers to.
    """

    __slots__ = (
        "function",
        "source",
        "vars",
        "parent",
        "globals",
        "closure",
        "depth",
        "node",
        "locals",
        "first",
    )

    def __init__(self, function: Function, depth: int) -> None:
        self.function = function
        self.source = function.source
        self.vars = Scope(depth)
        self.parent: Frame | None = function.parent
        self.globals: dict[str, Value] = function.globals
        self.closure: dict[str, CellType] = function.closure
        self.depth = depth
        self.node: ast.AST = self.source.node
        self.locals: frozenset[str] = self.source.locals
        self.first: Value = None

    def inner(self, names: frozenset[str], depth: int) -> Frame:
        """The frame of a comprehension that binds these names."""
        made = Frame(self.function, depth)
        made.parent = self
        made.locals = names
        made.node = self.node
        made.first = self.first
        return made


class CallStack:
    """Calls that are being evaluated.

    Attributes:
        frames: of the user's functions, outermost first.
        open_calls: per function definition, its calls that are being evaluated (for recursion).
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.open_calls: dict[ast.AST, list[OpenCall]] = {}
