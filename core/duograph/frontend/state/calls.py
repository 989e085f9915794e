"""The stack of user calls that are being evaluated, with the local variables of each call.

`evaluation.functions` pushes a frame for each call of a user's function. Name lookup is in
`evaluation.variables`; this module must only hold the data.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from types import CellType
from typing import TYPE_CHECKING

from ..types import Value
from .journal import Scope

if TYPE_CHECKING:
    from ...nn.cell import Cell
    from ..diagnostics import Span
    from ..evaluation.recursion import OpenCall
    from ..values.functions import Function

__all__ = ["CallStack", "Frame"]


class Frame:
    """Local variables and scope of one call of a user's function that is being traced.

    Attributes:
        function: the called function, which has the attributes `source`, `globals` and `closure` as
            well.
        source: the syntax tree of the function.
        vars: the values of the local variables that are bound, by name.
        globals: the global variables of the function's module.
        closure: the closure cells of the function's free variables, by name.
        locals: the names that are local.
        parent: the frame of the enclosing function; None at module level.
        depth: the nesting depth of the graph in which the call began.
        node: the syntax node that is being evaluated.
        first: the first argument, to which `super()` refers.
        temporaries: the values of expressions in the statements that are being evaluated, which are
            possibly not bound to a name yet.
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
        "temporaries",
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
        self.temporaries: list[Value] = []

    def inner(self, names: frozenset[str], depth: int) -> Frame:
        """Return a new frame for a comprehension that binds `names`; its parent is this frame."""
        made = Frame(self.function, depth)
        made.parent = self
        made.locals = names
        made.node = self.node
        made.first = self.first
        made.temporaries = self.temporaries
        return made


class ErrorTrail:
    """The source spans at which an exception left the calls that are being traced.

    Attributes:
        error: the exception.
        conditions: the number of open graph conditions where it was raised.
        spans: one pair (depth of the call stack, span) per call that the exception left, the
            innermost first.
    """

    __slots__ = ("error", "conditions", "spans")

    def __init__(self, error: BaseException, conditions: int) -> None:
        self.error = error
        self.conditions = conditions
        self.spans: list[tuple[int, Span]] = []


class CallStack:
    """The stack of user function calls that are being traced.

    Attributes:
        frames: one frame per call, outermost first.
        open_calls: per function definition, its calls being evaluated, to detect recursion.
        trails: the `ErrorTrail` of each exception raised so far, by id. An exception is the user's
            object, which may be raised again later: nothing is stored on it.
        raised_outside: exceptions from outside the function that evaluated code raised, by id.
        open_cells: the Cells that are being called, outermost first.
        stage: the pipeline stage of the innermost of these Cells that has one, or None.
        part: the micro-batch that a `PipelineCell` among them is computing, or None.
        handled: the exceptions whose `except` clauses, `finally` blocks or `__exit__` calls are
            being traced, outermost first.
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.open_calls: dict[ast.AST, list[OpenCall]] = {}
        self.trails: dict[int, ErrorTrail] = {}
        self.raised_outside: dict[int, BaseException] = {}
        self.open_cells: list[Cell] = []
        self.stage: int | None = None
        self.part: int | None = None
        self.handled: list[BaseException] = []

    @contextlib.contextmanager
    def handling(self, error: BaseException) -> Iterator[None]:
        """Return a context manager for tracing code that runs while `error` is handled."""
        self.handled.append(error)
        try:
            yield
        finally:
            self.handled.pop()

    def conditions_of(self, error: BaseException, default: int) -> int:
        """Return how many graph conditions surrounded the code that raised an error.

        `default` is returned for an error that is not recorded.
        """
        trail = self.trails.get(id(error))
        return default if trail is None else trail.conditions
