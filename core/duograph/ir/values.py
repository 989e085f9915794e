"""Symbolic Python values in graphs: numbers and objects known only when the graph runs.

The front end computes with them as with Python numbers: each operation appends a node to the graph
under construction. They have no value at compile time. Code that needs a value, such as `if x:`,
must get the error `NeedsValue`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import ArgumentError
from ..runtime_state import thread_state
from ..types import BOOL, FLOAT, INT, HostType, TensorType
from .control import scalar, to_host

if TYPE_CHECKING:
    from .builder import GraphBuilder

__all__ = ["GraphScalar", "GraphObject", "NeedsValue", "kind_of", "EXAMPLES"]

# A number of each host type; dtype promotion looks at its class.
EXAMPLES: dict[HostType, bool | int | float] = {BOOL: True, INT: 1, FLOAT: 1.0}


class NeedsValue(ArgumentError):
    """Raised if compile-time code needs a value that is known only when the graph runs."""


def kind_of(value: object) -> HostType | None:
    """Return the graph type (bool, int or float) of a Python or symbolic number, else None."""
    if isinstance(value, GraphScalar):
        return value._type
    if isinstance(value, enum.Enum):
        return None
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT
    return FLOAT if isinstance(value, float) else None


class HostValue:
    """Base class of symbolic values of a graph that are Python values instead of tensors."""

    __slots__ = ("_builder", "_id", "_type")
    _builder: GraphBuilder
    _id: int
    _type: HostType

    def __init__(self, builder: GraphBuilder, id_: int, type_: HostType) -> None:
        self._builder = builder
        self._id = id_
        self._type = type_

    def _unknown(self, *_: object, **__: object) -> NoReturn:
        raise NeedsValue(
            f"got a Python {self._type.name} that is known only when the compiled function runs, "
            "where a value is needed while compiling"
        )

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __len__ = _unknown
    __iter__ = __array__ = __format__ = _unknown

    def __repr__(self) -> str:
        if getattr(thread_state.builder, "staged", False):
            self._unknown()
        return f"{type(self).__name__}(%{self._id}: {self._type})"


class GraphObject(HostValue):
    """A Python object that is known only when the graph runs.

    It can only be passed to Python functions that the graph calls.
    """

    __slots__ = ()
    __lt__ = __le__ = __gt__ = __ge__ = __copy__ = __deepcopy__ = HostValue._unknown


def _binary(function: str, reflected: bool = False) -> Any:
    def method(self: GraphScalar, other: object) -> GraphScalar:
        if kind_of(other) is None:
            return NotImplemented
        x, y = (other, self) if reflected else (self, other)
        return self.apply(function, x, y)

    return method


def _unary(function: str) -> Callable[[GraphScalar], GraphScalar]:
    return lambda self: self.apply(function, self)


class GraphScalar(HostValue):
    """A symbolic Python bool, int or float, known only when the graph runs.

    Its operators append nodes that compute what Python's operators compute.
    """

    __slots__ = ()

    def __copy__(self) -> GraphScalar:
        return self

    def __deepcopy__(self, memo: object) -> GraphScalar:
        return self

    def apply(self, function: str, *operands: object) -> GraphScalar:
        """Append a `scalar` node, which applies a function of Python numbers when the graph runs.

        Args:
            function: name in `SCALAR_FUNCTIONS`, such as "add".
            operands: Python or symbolic numbers.

        Returns:
            The symbolic result.
        """
        builder: Any = thread_state.builder or self._builder
        return builder.append(
            scalar, tuple(builder.host(v) for v in operands), {"function": function}
        )

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("truediv"), _binary("truediv", True)
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _binary("floordiv", True)
    __mod__, __rmod__ = _binary("mod"), _binary("mod", True)
    _integer_power, __rpow__ = _binary("pow"), _binary("pow", True)

    def __pow__(self, other: object) -> object:
        if isinstance(other, int) and other < 0 and self._type is not FLOAT:
            return self.apply("float", self) ** float(other)  # as Python: the result is a float
        return self._integer_power(other)

    __and__, __rand__ = _binary("and"), _binary("and", True)
    __or__, __ror__ = _binary("or"), _binary("or", True)
    __xor__, __rxor__ = _binary("xor"), _binary("xor", True)
    __lshift__, __rlshift__ = _binary("lshift"), _binary("lshift", True)
    __rshift__, __rrshift__ = _binary("rshift"), _binary("rshift", True)
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __neg__, __pos__, __abs__, __invert__ = (
        _unary("neg"),
        _unary("pos"),
        _unary("abs"),
        _unary("invert"),
    )

    __hash__ = HostValue._unknown

    def __round__(self, digits: object = None) -> GraphScalar:
        return self.apply("round", self) if digits is None else self.apply("round", self, digits)


def number_of(x: Any, kind: HostType) -> Any:
    """Convert a number to a Python int, float or bool, as `int(x)`, `float(x)` and `bool(x)` do.

    For a symbolic number or a one-element graph tensor, this appends a node that converts it when
    the graph runs, and returns the symbolic result.
    """
    if isinstance(x, GraphScalar):
        return x if x._type is kind else x.apply(kind.name, x)
    if isinstance(getattr(x, "_type", None), TensorType):
        builder: Any = thread_state.builder or x._builder
        return builder.append(to_host, (builder.operand(x, None),), {"kind": kind})
    return {BOOL: bool, INT: int, FLOAT: float}[kind](x)
