"""Primitive classes: the form `ops.Gather(batch_dims)(input, indices, axis)` of MindSpore's ops.

A spelling such as ``"Elu(alpha=1.0)(x)"`` on an op or a function is enough for a class: first the
parameters of the constructor, then those of the call. `ops/__init__.py` collects the classes. A
class is written by hand only when its constructor checks or computes something.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from ..dtype import int32, int64
from ..errors import ArgumentError
from ..op import OPS, Op

__all__ = ["Primitive", "primitive", "primitive_class", "spelled_classes"]

F = TypeVar("F", bound=Callable[..., Any])
_EMPTY = inspect.Parameter.empty


class Primitive:
    """Base of the primitive classes (`mindspore.ops.Primitive`).

    A subclass names its `op`; an instance holds attributes and is called on operands.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.Add()(ms.Tensor([1]), ms.Tensor([2]))
        Tensor(shape=[1], dtype=Int64, value= [3])
    """

    op: Op | None = None

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The primitive's name."""
        return getattr(self, "_name", None) or type(self).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert self.op is not None, f"{type(self).__name__} names no op"
        return self.op(*args, **kwargs)

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any]) -> Primitive:
        """Return an instance with the attributes of an op, as the getter of a gradient rule sees it."""
        made = cls.__new__(cls)
        made._name = None
        for key, value in attributes.items():
            setattr(made, key, value)
        return made

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Record an attribute on this instance; returns the instance."""
        setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Spelled(Primitive):
    """Base of the classes that a spelling defines."""

    function: Callable[..., Any]
    constructor: inspect.Signature
    call: inspect.Signature | None  # None: the call passes its arguments on as they are
    targets: Mapping[str, str]  # parameter of the class -> parameter of the function
    _bound: Mapping[str, object] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        given = _bind(type(self).__name__, self.constructor, args, kwargs)
        self._bound = {self.targets.get(key, key): value for key, value in given.items()}
        for key, value in given.items():
            setattr(self, key, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is None:
            return type(self).function(*args, **self._bound, **kwargs)
        given = _bind(type(self).__name__, self.call, args, kwargs)
        named = {self.targets[key]: value for key, value in given.items()}
        return type(self).function(**named, **self._bound)


def _bind(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{name}: {error}") from None
    bound.apply_defaults()
    return bound.arguments


class _Item(NamedTuple):
    """One parameter of a spelling, ``name``, ``name=default`` or ``name:parameter=default``."""

    name: str
    target: str
    default: object

    @property
    def parameter(self) -> inspect.Parameter:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(self.name, kind, default=self.default)


_CONSTANTS = {"None": None, "True": True, "False": False, "()": (), "int32": int32, "int64": int64}


def _items(text: str) -> list[_Item]:
    items = []
    for part in filter(None, text.split(", ")):
        left, _, default = part.partition("=")
        name, _, target = left.partition(":")
        items.append(_Item(name, target or name, _constant(default) if default else _EMPTY))
    return items


def _constant(text: str) -> object:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "'\"":
        return text[1:-1]
    return float(text) if "." in text or "e" in text else int(text)


def primitive_class(
    spelling: str, function: Callable[..., Any], op: Op | None = None, doc: str | None = None
) -> type[Primitive]:
    """Return the primitive class of a spelling.

    Args:
        spelling: the name, the constructor's parameters and the call's parameters, such as
            ``"Argmax(axis=-1, output_type=int32)(x)"``. ``name:parameter`` passes a value for a
            parameter of `function` that has another name. The parameters of the call stand for
            those of `function` that the constructor leaves, in order; without them the call
            passes its arguments on.
        function: called with the values of both.
        op: the op to which gradient rules registered for the class belong.
        doc: documentation, where the generated line is not enough.
    """
    name, *groups = [part.rstrip(")") for part in spelling.split("(", 2)]
    if not groups and op is not None and function is op.function:
        doc = doc or f"Primitive form of `ops.{op.name}`: `{name}()(...)` takes the same arguments."
        return type(name, (Primitive,), {"op": op, "__doc__": doc, "__module__": __package__})
    groups = spelling[len(name) :].removeprefix("(").removesuffix(")").split(")(")
    constructor = _items(groups[0])
    call: list[_Item] | None = None
    targets = {item.name: item.target for item in constructor}
    if len(groups) > 1:
        call = _items(groups[1])
        code = inspect.unwrap(function).__code__
        taken = {item.target for item in constructor}
        left = [n for n in code.co_varnames[: code.co_argcount] if n not in taken]
        explicit = {item.target for item in call if item.target != item.name}
        left = [n for n in left if n not in explicit]
        for item in call:
            targets[item.name] = item.target if item.target in explicit else left.pop(0)
    shown = getattr(function, "__name__", name).rstrip("_")
    attributes: dict[str, object] = {
        "op": op,
        "function": staticmethod(function),
        "constructor": inspect.Signature([item.parameter for item in constructor]),
        "call": None if call is None else inspect.Signature([item.parameter for item in call]),
        "targets": targets,
        "__signature__": inspect.Signature([item.parameter for item in constructor]),
        "__doc__": doc or f"Primitive form of `ops.{shown}`: `{spelling}`.",
        "__module__": __package__,
    }
    return type(name, (_Spelled,), attributes)


def primitive(*spellings: str, op: Op | None = None) -> Callable[[F], F]:
    """Name the primitive classes of a function; see `primitive_class` for the spellings."""

    def mark(function: F) -> F:
        made = [primitive_class(text, function, op) for text in spellings]
        function.primitive_classes = (*getattr(function, "primitive_classes", ()), *made)  # type: ignore[attr-defined]
        return function

    return mark


def spelled_classes(families: Iterable[ModuleType]) -> dict[str, type[Primitive]]:
    """Return the class of every spelling on an op or on a function of these modules."""
    classes = [primitive_class(text, o.public, o) for o in OPS.values() for text in o.primitives]
    for family in families:
        for value in vars(family).values():
            classes += getattr(value, "primitive_classes", ())
    return {cls.__name__: cls for cls in classes}
