"""The signature of an op: its parameters, and the values that its attributes accept.

`op.py` reads the parameters of a defining function with `parameters_of`, binds the arguments of
calls with `values_of`, and makes attribute values hashable with `freeze`. This module must not
import ops or tensors.
"""

from __future__ import annotations

import inspect
import opcode
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .dtype import DType
from .errors import ArgumentError

__all__ = [
    "Axes", "Axis", "NewAxis", "Number", "Parameter", "documented", "freeze", "has_body",
    "parameters_of", "values_of",
]  # fmt: skip

if TYPE_CHECKING:
    from .op import Op


def freeze(value: Any) -> Hashable:
    """Return an attribute value in hashable form.

    Lists and small arrays become tuples, NumPy scalars become Python numbers, and a tensor that was
    passed for an attribute becomes its value.
    """
    kind = value.__class__
    if kind in (int, float, bool, str, DType) or value is None:
        return value
    if kind is tuple or kind is list:
        return tuple([freeze(v) for v in value])
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return freeze(value.tolist())
    if isinstance(value, dict):
        return tuple((k, freeze(v)) for k, v in value.items())
    concrete = getattr(value, "_attribute_value", None)
    if concrete is not None:  # a tensor passed for an attribute
        return freeze(concrete())
    if isinstance(value, (list, tuple)):
        return tuple([freeze(v) for v in value])
    return value


# Annotations of attributes that kernels index with. The public functions normalise what users give;
# these are the normalised forms, and `Op.check_ranges` checks them against the first operand.
Axis: TypeAlias = int  # an axis in [0, ndim); 0 for a 0-d operand
NewAxis: TypeAlias = int  # the position of an axis to add, in [0, ndim]
Axes: TypeAlias = Sequence[int]  # distinct axes in [0, ndim)
# The annotation of an attribute that becomes an element of any dtype.
Number: TypeAlias = bool | int | float | complex


class _Accepted(NamedTuple):
    """Which values an attribute of an op accepts, and how error messages describe them.

    Attributes:
        text: the description, such as "an int of 64 bits".
        accepts: predicate of a value.
        fits: predicate of an accepted value and the number of axes of the first operand; None if
            there is no range to check.
    """

    text: str
    accepts: Callable[[object], bool]
    fits: Callable[[Any, int], bool] | None = None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and value.__class__ is not bool and -(2**63) <= value < 2**63


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1023)


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


def _tuple_of(accepts: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all([accepts(v) for v in value])


def _pair(value: object) -> bool:
    return _ints(value) and len(value) == 2  # type: ignore[arg-type]


_ints = _tuple_of(_is(int))
_INTS = _Accepted("a tuple of ints", _ints)

# By annotation. An attribute with any other annotation is checked by the rules that read it.
_ACCEPTED = {
    "int": _Accepted("an int of 64 bits", _is_int),
    "float": _Accepted("a number", _is_number),
    "Number": _Accepted("a number", lambda v: isinstance(v, complex) or _is_number(v)),
    "bool": _Accepted("True or False", _is(bool)),
    "str": _Accepted("a string", _is(str)),
    "DType": _Accepted("a dtype", _is(DType)),
    "Sequence[int]": _INTS,
    "Ints": _INTS,
    "tuple[int, ...]": _INTS,
    "Sequence[float]": _Accepted("a tuple of numbers", _tuple_of(_is_number)),
    "Pairs": _Accepted("a tuple of pairs of ints", _tuple_of(_pair)),
    "Axis": _Accepted("an axis", _is_int, lambda axis, n: 0 <= axis < (n or 1)),
    "NewAxis": _Accepted("a position for a new axis", _is_int, lambda axis, n: 0 <= axis <= n),
    "Axes": _Accepted(
        "a tuple of distinct axes",
        _ints,
        lambda axes, n: len(set(axes)) == len(axes) and all([0 <= a < n for a in axes]),
    ),
}


# Annotations of attributes that are an int or a tuple of ints.
INT_ANNOTATIONS = frozenset(
    {"int", "Axis", "NewAxis", "Axes", "Ints", "Sequence[int]", "tuple[int, ...]"}
)


class Parameter:
    """A parameter of an op's signature: a tensor operand or an attribute.

    Attributes:
        kind: "tensor", "optional" (a tensor or None), "list" (a sequence of tensors) or
            "attribute".
        accepted: the values that an attribute accepts, or None if its annotation does not restrict
            them, so that only the rules of the op can check them.
    """

    __slots__ = ("name", "kind", "annotation", "accepted", "default", "required")

    def __init__(self, name: str, annotation: object, default: object) -> None:
        self.name = name
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        self.annotation = text
        self.kind = _kind_of(text)
        self.accepted = _ACCEPTED.get(text)
        self.required = default is inspect.Parameter.empty
        self.default = None if self.required else default


def parameters_of(function: Callable[..., object]) -> list[Parameter]:
    """Return the parameters of a function that defines an op, read from its code object.

    `inspect.signature` would double the import time of the package.
    """
    assert isinstance(function, FunctionType)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults: dict[str, object] = dict(function.__kwdefaults__ or {})
    values = function.__defaults__ or ()
    defaults.update(zip(names[code.co_argcount - len(values) : code.co_argcount], values))
    annotations = function.__annotations__
    return [
        Parameter(n, annotations.get(n, ""), defaults.get(n, inspect.Parameter.empty))
        for n in names
    ]


# The kind of a parameter (see `Parameter`) with this annotation.
def _kind_of(annotation: str) -> str:
    text = annotation.replace(" ", "")
    if text == "Tensor":
        return "tensor"
    if text in ("Tensor|None", "Optional[Tensor]"):
        return "optional"
    if text.startswith(("Sequence[Tensor", "tuple[Tensor", "list[Tensor")):
        return "list"
    return "attribute"


class Signature(Protocol):
    """The part of an op that `values_of` reads: its name and parameters."""

    name: str
    parameters: list[Parameter]

    @property
    def __signature__(self) -> inspect.Signature: ...


def values_of(op: Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> list[object]:
    """Return a value for each parameter of an op, taken from a call's arguments or from defaults.

    Raises:
        ArgumentError: too many arguments, a missing one, an unknown one, or two values for one.
    """
    parameters = op.parameters
    if len(args) > len(parameters):
        raise ArgumentError(
            f"{op.name}: got {len(args)} positional arguments, wanted at most "
            f"{len(parameters)}: {op.name}{op.__signature__}"
        )
    values = list(args)
    if not kwargs and len(args) == len(parameters):
        return values
    used = 0
    for p in parameters[len(args) :]:
        if p.name in kwargs:
            values.append(kwargs[p.name])
            used += 1
        elif p.required:
            raise ArgumentError(
                f"{op.name}: got no value for {p.name!r}; wanted {op.name}{op.__signature__}"
            )
        else:
            values.append(p.default)
    if used != len(kwargs):
        index = {p.name: i for i, p in enumerate(parameters)}
        bad = [k for k in kwargs if index.get(k, -1) < len(args)]
        known = [k for k in bad if k in index]
        raise ArgumentError(
            f"{op.name}: got {'two values for ' if known else 'the unknown argument '}"
            f"{(known or bad)[0]!r}; wanted {op.name}{op.__signature__}"
        )
    return values


# The opcodes of a function that only returns a constant.
_IDLE = {
    opcode.opmap[name]
    for name in ("RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST")
    if name in opcode.opmap
}


def has_body(function: Callable[..., object]) -> bool:
    """Return whether a function contains any code besides its docstring."""
    assert isinstance(function, FunctionType)
    # an opcode and its argument are a byte each
    return not _IDLE.issuperset(function.__code__.co_code[::2])


def documented(
    function: Callable[..., Any], of: Op, signature: Callable[..., object] | None = None
) -> Callable[..., Any]:
    """Give a function the name and documentation of the op `of`; return the function.

    Its signature becomes that of `signature`, or of the function that defines the op.
    """
    function.__name__ = of.name if signature is None else of.__wrapped__.__name__
    function.__qualname__ = function.__name__
    function.__doc__ = of.__doc__
    function.__module__ = of.__module__
    function.__wrapped__ = signature or of.__wrapped__  # type: ignore[attr-defined]
    if signature is not None:
        function.__annotations__ = signature.__annotations__
    else:
        function.op = of  # type: ignore[attr-defined]
    return function
