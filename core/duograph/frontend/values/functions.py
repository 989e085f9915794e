"""Functions as values of the evaluation: a `def`, a lambda, or a choice between callables.

`evaluation.functions` makes and calls them. This module must not evaluate source.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import TYPE_CHECKING, NoReturn

from ...errors import UnsupportedSyntaxError
from ...runtime_state import thread_state
from ..source import Source
from ..state.captures import same
from ..types import Flag, Value
from .nested import depends_on_graph

if TYPE_CHECKING:
    from ..state.calls import Frame

__all__ = ["Choice", "Function", "same_function"]


class Function:
    """A Python function whose source is traced into the graph when evaluated code calls it.

    Python code that runs at compile time can also call the object; that call is evaluated as well.

    Attributes:
        source: the syntax tree of the function.
        defaults, kw_defaults: default values of its parameters.
        globals: the global variables of its module.
        parent: the frame around a function that compiled code defines; None for other functions.
        closure: the closure cells of its free variables, by name.
        original: the Python function from which it was made; None if compiled code defines it.
    """

    def __init__(
        self,
        source: Source,
        defaults: tuple[Value, ...],
        kw_defaults: dict[str, Value],
        globals_: dict[str, Value],
        parent: Frame | None = None,
        closure: dict[str, CellType] | None = None,
        original: FunctionType | None = None,
    ) -> None:
        self.source = source
        self.__name__ = source.name
        self.__qualname__ = source.name
        self.defaults = defaults
        self.kw_defaults = kw_defaults
        self.globals = globals_
        self.parent = parent
        self.closure = closure or {}
        self.original = original

    def __call__(self, /, *args: Value, **kwargs: Value) -> Value:
        """Trace a call that Python code makes at compile time; return the result.

        Raises:
            RuntimeError: the compilation to which the function belongs has ended.
        """
        builder: Value = thread_state.builder
        if builder is None or not builder.staged:
            raise RuntimeError(f"{self!r} belongs to a compiled function that has ended")
        return builder.evaluation.call(self, args, kwargs)

    def as_python(self) -> FunctionType:
        """Return the original Python function, for Python code that runs with the graph.

        Raises:
            UnsupportedSyntaxError: compiled code defines the function.
        """
        if self.original is None:
            raise UnsupportedSyntaxError(
                f"{self.__name__}: got a function that is defined inside jit for Python code that "
                "works on data that are known only when the function runs; define it outside"
            )
        return self.original

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


def same_function(a: Value, b: Value) -> bool:
    """Return whether two functions compute the same: same code, equal defaults and closures.

    The result is False if a default value of one of them depends on the graph.
    """
    return a is b or (
        isinstance(a, Function)
        and isinstance(b, Function)
        and a.source.node is b.source.node
        and a.parent is b.parent
        and list(a.closure.items()) == list(b.closure.items())
        and not depends_on_graph((a.defaults, a.kw_defaults, b.defaults, b.kw_defaults))
        and same(a.defaults, b.defaults)
        and same(tuple(a.kw_defaults.items()), tuple(b.kw_defaults.items()))
    )


class Choice:
    """A choice between two callables by a graph bool; a call of the choice becomes a `switch`.

    Attributes:
        cond: the graph bool.
        then: the callable if `cond` is true.
        orelse: the callable if `cond` is false.
    """

    __slots__ = ("cond", "orelse", "then")

    def __init__(self, cond: Flag, orelse: Value, then: Value) -> None:
        self.cond = cond
        self.orelse = orelse
        self.then = then

    def as_python(self) -> NoReturn:
        """Raise UnsupportedSyntaxError: Python code cannot call this choice."""
        raise UnsupportedSyntaxError(
            "function: got one of two functions, chosen by a condition on a Tensor, for Python "
            "code that runs with the graph; call it inside the compiled function"
        )
