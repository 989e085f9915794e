"""Primitive classes, MindSpore's other form of ops, such as ``ops.Gather(batch_dims)(input, ...)``.

A signature string such as ``"Elu(alpha=1.0)(x)"``, called a spelling, describes such a class: first
the parameters of the constructor, then those of the call. The decorators `@op(primitive=...)` and
`@primitive(...)` attach it to an op or a function, and `ops/__init__.py` creates the classes. A
class must be written by hand only if its constructor checks or computes something.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, TypeVar

from ..call_errors import explain_methods
from ..call_names import leave
from ..dtype import DType, int32, int64
from ..errors import ArgumentError, DuographError, UnsupportedOpError
from ..op import OPS, Op
from ..option_checks import warn_moot
from ..tensor import Tensor
from .sharded_primitives import shard_primitive

__all__ = [
    "Primitive",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "prim_arg_register",
    "prim_attr_register",
    "primitive",
    "respelled",
    "spelled_classes",
]

F = TypeVar("F", bound=Callable[..., object])
_EMPTY = inspect.Parameter.empty


class Primitive:
    """Base class of the primitive classes (`mindspore.ops.Primitive`).

    A subclass names its `op`; an instance holds attributes and is called on operands.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.Add()(ms.Tensor([1]), ms.Tensor([2]))
        Tensor(shape=[1], dtype=Int64, value= [3])
    """

    op: Op | None = None

    # How operands and results are divided among ranks; see `shard`.
    _placements: tuple[Any, Any] | None = None
    # Attributes that are no arguments of the constructor; replaced, never changed.
    _added: Mapping[str, object] = MappingProxyType({})

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        explain_methods(cls, "__init__", "__call__")

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name given to the constructor, or else the name of the class."""
        return getattr(self, "_name", None) or type(self).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.op is None:
            raise UnsupportedOpError(
                f"{self.name}: the primitive has no op; use ops.Custom to run code of your own"
            )
        try:
            return self.op(*args, **kwargs)
        except DuographError as error:
            leave(error, self.name)
            raise

    @property
    def call_name(self) -> str:
        """The name by which error messages refer to the primitive; see `call_names`."""
        return self.name

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, object]) -> Primitive:
        """Return an instance with the attributes of an op call, without running the constructor.

        A gradient rule that the user registered for the class receives this instance.
        """
        made = cls.__new__(cls)
        made._name = None
        for key, value in attributes.items():
            setattr(made, key, value)
        return made

    @property
    def attrs(self) -> dict[str, object]:
        """The arguments of the constructor and the attributes that `add_prim_attr` added, by name.

        Examples:
            >>> import duograph as ms
            >>> ms.ops.Concat(1).attrs
            {'axis': 1}
        """
        names = [n for n in inspect.signature(type(self)).parameters if n != "name"]
        given = {n: getattr(self, n) for n in names if hasattr(self, n)}
        return {**given, **self._added}

    @property
    def init_attrs(self) -> dict[str, object]:
        """The arguments of the constructor by name, and the name of the primitive."""
        given = {n: v for n, v in self.attrs.items() if n not in self._added}
        return {"name": self.name, **given}

    def add_prim_attr(self, name: str, value: object) -> Primitive:
        """Set an argument of the constructor on this instance, and return the instance.

        A name that is not such an argument is stored as an attribute, which changes no result; this
        is warned of once.
        """
        if not hasattr(self, name):
            warn_moot("ops.Primitive.add_prim_attr")
        return self._set_attr(name, value)

    def shard(self, in_strategy: object = None, out_strategy: object = None) -> Primitive:
        """Divide the operands and results of calls among ranks (`mindspore.ops.Primitive.shard`).

        It has an effect in compiled code of the parallel mode ``"semi_auto_parallel"``.

        Args:
            in_strategy: tuple with an item per operand: a `Layout`, or a tuple of the number of
                parts of each axis.
            out_strategy: the same for results.

        Raises:
            TypeError, ValueError: a strategy of another form; one that does not fit the ranks.

        Examples:
            >>> import duograph as ms
            >>> matmul = ms.ops.MatMul().shard(((1, 1), (1, 1)))
            >>> print(matmul(ms.Tensor([[2.0]]), ms.Tensor([[3.0]])))
            [[6.]]
        """
        return shard_primitive(self, in_strategy, out_strategy)

    def _set_attr(self, name: str, value: object) -> Primitive:
        """Set an attribute of the primitive, which `attrs` then lists; return the primitive.

        If the class itself defines the name, such as a method, it is listed but not overwritten.
        """
        if name not in inspect.signature(type(self)).parameters:
            self._added = {**self._added, name: value}
        if not hasattr(type(self), name):
            setattr(self, name, value)
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Remove an attribute that `add_prim_attr` added, if there is one; return the instance."""
        if name in self._added:
            self._added = {n: v for n, v in self._added.items() if n != name}
            self.__dict__.pop(name, None)
        return self

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """Store the names of operands and results as attributes of the primitive.

        The attributes are `input_names` and `output_names`.
        """
        self._set_attr("input_names", inputs)
        self._set_attr("output_names", outputs)

    def set_prim_instance_name(self, name: str) -> Primitive:
        """Set the attribute `instance_name`, and return the instance."""
        vars(self).update(instance_name=name)
        return self

    def set_device(self, device_target: str) -> Primitive:
        """Store a device's name as the attribute `primitive_target`; return the primitive.

        It has no effect: a call still runs on the device of its operands.
        """
        warn_moot("ops.Primitive.set_device")
        return self._set_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> Primitive:
        """Store the number of a pipeline stage, which has no effect; return the primitive."""
        warn_moot("ops.Primitive.set_stage")
        return self._set_attr("stage", stage)

    def place(self, role: str, rank_id: int) -> None:
        """Store the role and rank of a process as an attribute.

        It has no effect: every call runs in this process.
        """
        warn_moot("ops.Primitive.place")
        self._set_attr("place", (role, rank_id))

    def recompute(self, mode: bool = True) -> Primitive:
        """Store the request to recompute results in the backward pass; return the primitive.

        It has no effect on a single op, which is warned of once; use `Cell.recompute` instead.
        """
        warn_moot("ops.Primitive.recompute")
        return self._set_attr("recompute", mode)

    def __repr__(self) -> str:
        """Return name and attributes as MindSpore does, such as ``Prim[Concat]<axis=1>``."""
        hidden = ("input_names", "output_names")
        given = [f"{n}={v}" for n, v in self.attrs.items() if n not in hidden]
        return f"Prim[{self.name}]" + (f"<{', '.join(given)}>" if given else "")


class PrimitiveWithInfer(Primitive):
    """Base class of user-defined primitives that infer the shape and dtype of their results.

    It exists so that programs for MindSpore can define their classes
    (`mindspore.ops.PrimitiveWithInfer`). A call of a primitive whose class attribute `op` is not
    set raises UnsupportedOpError; use `ops.Custom` to run other code.
    """


class PrimitiveWithCheck(Primitive):
    """Base class of user-defined primitives that check their operands.

    It exists so that programs for MindSpore can define their classes
    (`mindspore.ops.PrimitiveWithCheck`). A call of a primitive whose class attribute `op` is not
    set raises UnsupportedOpError; use `ops.Custom` to run other code.
    """


def prim_attr_register(fn: F) -> F:
    """Wrap the constructor of a primitive class so that its arguments become attributes.

    See `mindspore.ops.prim_attr_register`.

    Examples:
        >>> import duograph as ms
        >>> class Scale(ms.ops.PrimitiveWithInfer):
        ...     @ms.ops.prim_attr_register
        ...     def __init__(self, factor=2):
        ...         pass
        >>> Scale(3)
        Prim[Scale]<factor=3>
    """
    if not inspect.isfunction(fn):
        raise ArgumentError(f"prim_attr_register: got {fn!r}; wanted the function `__init__`")
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def initialize(self: Primitive, *args: object, **kwargs: object) -> None:
        self._name = None
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)
        fn(self, *args, **kwargs)

    return initialize  # type: ignore[return-value]


prim_arg_register = prim_attr_register


def _bind(
    name: str, signature: inspect.Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> dict[str, object]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{name}: {error}") from None
    bound.apply_defaults()
    return bound.arguments


def shown_parameter(name: str, default: object) -> str:
    """Return a parameter as a signature shows it: ``axis=-1``, or ``axis`` without a default."""
    if default is inspect.Parameter.empty:
        return name
    return f"{name}={default.name if isinstance(default, DType) else repr(default)}"


class _Item(NamedTuple):
    """One parameter in a class's signature string, such as ``axis=-1`` in ``"Sort(axis=-1)"``.

    Its text is ``name``, ``name=default`` or ``name:parameter=default``.

    Attributes:
        name: name of the parameter.
        target: parameter of the function to which the value is passed.
        default: default value, or _EMPTY if there is none.
    """

    name: str
    target: str
    default: object

    @property
    def parameter(self) -> inspect.Parameter:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(self.name, kind, default=self.default)

    def __str__(self) -> str:
        return shown_parameter(self.name, self.default)


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


def is_exported(function: Callable[..., Any]) -> bool:
    """Return whether `ops` exports a function: its module lists it in `__all__`.

    A function that was defined inside another one counts as exported unless its ``__name__`` is
    private, because wrappers get the name of the exported function that they call.
    """
    name = getattr(function, "__name__", "_")
    if "<locals>" in getattr(function, "__qualname__", ""):
        return not name.startswith(("_", "<"))
    return name in getattr(inspect.unwrap(function), "__globals__", {}).get("__all__", ())


def described(function: Callable[..., Any], shown: str) -> str:
    """Return the docstring of a primitive class that calls `function`.

    `shown` is how the class is constructed and called, such as ``"Sort(axis=-1)(x)"``. A function
    that `ops` does not export is not mentioned, because users cannot look it up.
    """
    of = f" of `ops.{function.__name__}`" if is_exported(function) else ""
    return f"Primitive class{of}, constructed and called as `{shown}`."


def primitive_class(
    spelling: str, function: Callable[..., object], op: Op | None = None
) -> type[Primitive]:
    """Create the primitive class that a string such as ``"Argmax(axis=-1)(x)"`` describes.

    A call of an instance calls `function` with the arguments that the constructor stored and those
    of the call.

    Args:
        spelling: ``Name(constructor's parameters)(call's parameters)``. A parameter written
            ``name:parameter`` passes its value to that parameter of `function`; without
            ``:parameter``, a constructor's parameter passes it to the parameter of the same name.
            The other parameters of the call may have any names: the first passes its value to the
            first parameter of `function` that no other one names, and so on. Without the second
            parentheses, all arguments of the call are passed on unchanged.
        function: the function that computes the result.
        op: the op under which gradient rules that users register for the class are stored; None if
            there is none.
    """
    name, *_ = spelling.split("(", 1)
    groups = spelling[len(name) :].removeprefix("(").removesuffix(")").split(")(")
    constructor = _items(groups[0])
    members: dict[str, object] = {"op": op, "__module__": __package__}
    if op is not None and function is op.function and not constructor and len(groups) == 1:
        members["__doc__"] = (
            f"Primitive class of `ops.{op.name}`: `{name}()(...)` takes the function's arguments."
        )
        return type(name, (Primitive,), members)
    if constructor:
        members["__init__"] = _initializer(name, constructor)
    call = _items(groups[1]) if len(groups) > 1 else None
    members["__call__"] = _caller(name, function, constructor, call)
    called = "..." if call is None else ", ".join(map(str, call))
    shown = f"{name}({', '.join(map(str, constructor))})({called})"
    members["__doc__"] = described(function, shown)
    return type(name, (Primitive,), members)


_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _initializer(name: str, items: list[_Item]) -> Callable[..., None]:
    """Create the `__init__` of a primitive class, which stores its arguments as attributes.

    `items` are the constructor's parameters; `name` is the name of the class in errors.
    """
    signature = inspect.Signature([item.parameter for item in items])
    names = [item.name for item in items]
    defaults = [item.default for item in items]
    required = sum(default is _EMPTY for default in defaults)

    def initialize(self: Primitive, *args: object, **kwargs: object) -> None:
        self._name = None
        n = len(args)
        if kwargs or not required <= n <= len(names):
            args = tuple(_bind(name, signature, args, kwargs).values())
        elif n < len(names):
            args = (*args, *defaults[n:])
        for key, value, default in zip(names, args, defaults):
            if isinstance(value, Tensor) and value.size != 1 and isinstance(default, (int, str)):
                raise ArgumentError(
                    f"{name}: got a Tensor for {key}; wanted a value such as {default!r}. An "
                    f"object of {name} takes the data: {name}()(x)"
                )
            setattr(self, key, value)

    shown = [_SELF, *signature.parameters.values()]
    initialize.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return initialize


def _caller(
    name: str, function: Callable[..., object], constructor: list[_Item], call: list[_Item] | None
) -> Callable[..., object]:
    """Create the `__call__` of a primitive class, which calls `function`.

    `function` gets the arguments of the call and those that the constructor stored as attributes.
    `constructor` and `call` are the parameters of the constructor and of `__call__`; if `call` is
    None, the call's arguments are passed on unchanged. `name` is the name of the class in errors.
    """
    pairs = [(item.target, item.name) for item in constructor]

    def kept(self: Primitive) -> dict[str, object]:
        return {target: getattr(self, key) for target, key in pairs}

    def pass_on(self: Primitive, *args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kept(self), **kwargs)
        except DuographError as error:
            leave(error, name)
            raise

    if call is None:
        return pass_on
    code = inspect.unwrap(function).__code__
    parameters = code.co_varnames[: code.co_argcount]
    explicit = {item.target for item in constructor}
    explicit |= {item.target for item in call if item.target != item.name}
    left = [n for n in parameters if n not in explicit]
    order = [item.target if item.target in explicit else left.pop(0) for item in call]
    signature = inspect.Signature([item.parameter for item in call])
    # Fast path: all arguments are positional, and the function takes them first and then those of
    # the constructor, so no argument has to be passed by name.
    keys = [item.name for item in constructor]
    straight = [*order, *[item.target for item in constructor]]
    count = len(order) if straight == list(parameters[: len(straight)]) else -1

    def named(self: Primitive, *args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) == count and not kwargs:
                return function(*args, *[getattr(self, key) for key in keys])
            values = _bind(name, signature, args, kwargs).values()
            return function(**dict(zip(order, values)), **kept(self))
        except DuographError as error:
            leave(error, name)
            raise

    shown = [_SELF, *signature.parameters.values()]
    named.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return named


def respelled(function: Callable[..., object], name: str, **names: str) -> Callable[..., object]:
    """Return `function` under another name and with other names of parameters.

    Args:
        function: the function; its own names of parameters remain valid.
        name: name of the returned function.
        names: the parameter of `function` for each new name, such as ``x="input"``.
    """
    old = inspect.signature(function)
    new_of = {target: new for new, target in names.items()}
    shown = [p.replace(name=new_of.get(p.name, p.name)) for p in old.parameters.values()]

    def call(*args: object, **kwargs: object) -> object:
        if kwargs:
            kwargs = {names.get(key, key): value for key, value in kwargs.items()}
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    call.__module__ = function.__module__
    call.__signature__ = old.replace(parameters=shown)  # type: ignore[attr-defined]
    if hasattr(function, "op"):
        call.op = function.op  # type: ignore[attr-defined]
    return call


def primitive(*spellings: str, op: str | None = None) -> Callable[[F], F]:
    """Return a decorator that attaches signature strings of primitive classes to a function.

    Such a string, for example ``"Argmax(axis=-1)(x)"``, names a class, the parameters of its
    constructor and those of a call; `primitive_class` makes the class. `op` is the name of the op
    under which gradient rules that users register for the classes are stored.
    """

    def mark(function: F) -> F:
        known = getattr(function, "primitive_spellings", ())
        added = [(text, op) for text in spellings]
        function.primitive_spellings = (*known, *added)  # type: ignore[attr-defined]
        return function

    return mark


def spelled_classes(families: Iterable[ModuleType]) -> dict[str, type[Primitive]]:
    """Create the primitive classes whose signature strings are attached to ops or functions.

    `families` are the modules of the ops and functions. Returns the classes by name.
    """
    classes = [primitive_class(text, o.public, o) for o in OPS.values() for text in o.primitives]
    for family in families:
        for value in vars(family).values():
            for text, name in getattr(value, "primitive_spellings", ()):
                if value.__module__ == family.__name__:
                    owner = OPS[name] if name is not None else getattr(value, "op", None)
                    classes.append(primitive_class(text, value, owner))
    return {cls.__name__: cls for cls in classes}
