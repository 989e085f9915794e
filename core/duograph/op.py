"""Ops, their rule slots, and the door through which every call of one goes.

An op is defined once, by a function whose signature says what it takes: a parameter annotated
`Tensor` is an operand, `Tensor | None` an optional one, `Sequence[Tensor]` a variadic one (then it
is the only one); the rest are attributes. A body makes it a composite, no body a primitive. Rules
are attached to the op object with its slots.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from .dtype import DType, float32, promote
from .errors import ArgumentError, DTypeError, UnsupportedOpError
from .runtime_state import runtime_state, thread_state
from .traits import NO_TRAITS, Traits
from .types import TensorType

if TYPE_CHECKING:
    from .effects import Effect
    from .ir.graph import Graph

__all__ = ["Op", "op", "OPS", "NO_GRAD", "freeze"]

# Every op by name; filled by the modules that ops/__init__.py lists, and by plugins.
OPS: dict[str, Op] = {}


class _NoGrad:
    """A rule returns NO_GRAD for an operand that has no gradient by definition (an index, a mask)."""

    def __repr__(self) -> str:
        return "NO_GRAD"


NO_GRAD = _NoGrad()
_ABSENT: Any = object()


class Builder(Protocol):
    """Where a call of an op goes: eager runs it, graph appends it."""

    def apply(self, op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any: ...


Tracer: TypeAlias = "Callable[[Op, tuple[TensorType | None, ...], Mapping[str, Any]], Graph]"
_tracer: Tracer | None = None


def install_tracer(tracer: Tracer) -> None:
    """Set the function that traces the body of a composite into a graph (`ir.builder.expand`)."""
    global _tracer
    _tracer = tracer


# 0-d tensors made of the Python numbers that met a tensor of some type: (type, class, value) -> tensor.
# Zeros of floats are not kept here: 0.0 and -0.0 are equal keys.
numbers: dict[tuple[TensorType, type, Any], Any] = {}


def drop_tables() -> None:
    """Forget every prepared call: a rule, a plugin or the device_target changed."""
    for known in OPS.values():
        known.table.clear()


def rules_changed() -> None:
    """Rules of some op were replaced: everything made from rules is made anew."""
    runtime_state.rules_version += 1
    runtime_state.settings_version = object()
    for known in OPS.values():
        known.table.clear()
        known.expanded.clear()


def freeze(value: Any) -> Any:
    """A hashable attribute value: lists become tuples, NumPy scalars Python ones, small arrays
    tuples.
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
    if concrete is not None:  # a Tensor given where an attribute is wanted
        return freeze(concrete())
    if isinstance(value, (list, tuple)):
        return tuple([freeze(v) for v in value])
    return value


class _Wanted:
    """What an attribute with some annotation may be."""

    __slots__ = ("kinds", "items", "text")

    def __init__(self, text: str, kinds: Any, items: Any = None) -> None:
        self.text = text
        self.kinds = kinds
        self.items = items  # kinds of the elements of a tuple

    def takes(self, value: Any) -> bool:
        """Whether a frozen value is one."""
        if not isinstance(value, self.kinds):
            return False
        return self.items is None or all(isinstance(v, self.items) for v in value)


# By annotation. Attributes with any other annotation are checked by what reads them.
_WANTED = {
    "int": _Wanted("an int", int),
    "float": _Wanted("a number", (int, float)),
    "bool": _Wanted("a bool", bool),
    "str": _Wanted("a str", str),
    "DType": _Wanted("a dtype", DType),
    "Sequence[int]": _Wanted("a tuple of ints", tuple, int),
    "Sequence[float]": _Wanted("a tuple of numbers", tuple, (int, float)),
}


class _Parameter:
    __slots__ = ("name", "kind", "wanted", "default", "required")

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name = name
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        self.kind = _classify(text)  # tensor, optional, list, attribute
        self.wanted = _WANTED.get(text)
        self.required = default is inspect.Parameter.empty
        self.default = None if self.required else default


def _parameters(function: Callable[..., Any]) -> list[_Parameter]:
    """The parameters of a function, read from its code: `inspect.signature` would double the import
    time.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = dict(function.__kwdefaults__ or {})
    given = function.__defaults__ or ()
    defaults.update(zip(names[code.co_argcount - len(given) : code.co_argcount], given))
    annotations = function.__annotations__
    return [
        _Parameter(n, annotations.get(n, ""), defaults.get(n, inspect.Parameter.empty))
        for n in names
    ]


def _classify(text: str) -> str:
    text = text.replace(" ", "")
    if text == "Tensor":
        return "tensor"
    if text in ("Tensor|None", "Optional[Tensor]"):
        return "optional"
    if text.startswith(("Sequence[Tensor", "tuple[Tensor", "list[Tensor")):
        return "list"
    return "attribute"


class Op:
    """One op: signature, documentation and rules. Call it like the function that defined it.

    Attributes:
        name: unique name; what a backend sees.
        table: prepared calls by operand types (and attributes), read by the fast path.
        is_composite: True when the defining function has a body made of ops.
        differentiable: False when no operand ever has a gradient (comparisons, argmax).
        host: True when the size of the result depends on values; runs on the host.
        alias: True when the result is the operand's handle, perhaps of another shape; no backend is
            asked.
        graph_only: True for what only graphs have (control flow, host values): no name in `ops`, no
            backend.
        traits: facts that graph passes and code generators rely on.
        real_attributes: names of the attributes annotated `float`; kernels take them as numbers.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        composite: bool,
        method: str | Sequence[str] | None = None,
        operators: Sequence[str] = (),
        reflected: Sequence[str] = (),
        primitive: str | None = None,
        dtypes: Sequence[DType] | None = None,
        promote: str | None = None,
        promote_from: int = 0,
        effects: Sequence[Effect] = (),
        differentiable: bool = True,
        host: bool = False,
        elementwise: bool = False,
        alias: bool = False,
        graph_only: bool = False,
        traits: Traits = NO_TRAITS,
    ) -> None:
        self.name = name
        self.__name__ = name
        self.__qualname__ = name
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function
        self.methods = (method,) if isinstance(method, str) else tuple(method or ())
        self.operators = tuple(operators)
        self.reflected = tuple(reflected)
        self.primitive_name = primitive
        self.dtypes = None if dtypes is None else frozenset(dtypes)
        if promote not in (None, "common", "float"):
            raise ValueError(f"{name}: promote is None, 'common' or 'float', got {promote!r}")
        self.promote = promote
        self.promote_from = promote_from
        self.effects = tuple(effects)
        self.differentiable = differentiable
        self.host = host
        self.elementwise = elementwise
        self.alias = alias
        self.graph_only = graph_only
        self.traits = traits
        self.is_composite = composite
        self.body: Callable[..., Any] | None = function if composite else None
        self.table: dict[Any, Callable[..., Any]] = {}
        self.expanded: dict[Any, Any] = {}
        self.infer_rule: Callable[..., Any] | None = None
        self.bprop_rule: Callable[[Mapping[str, Any]], Callable[..., Any]] | None = None
        self.reference_rule: Callable[..., Any] | None = None
        self.scalar_rule: Callable[..., Any] | None = None
        self.decompose_rule: Callable[..., Any] | None = None
        self.parameters = _parameters(function)
        kinds = [p.kind for p in self.parameters]
        self.n_operands = sum(k != "attribute" for k in kinds)
        self.variadic = "list" in kinds
        self.has_optional = "optional" in kinds
        if self.variadic and self.n_operands != 1:
            raise ValueError(f"{name}: a variadic operand must be the only operand")
        self.attribute_names = tuple(p.name for p in self.parameters if p.kind == "attribute")
        self.real_attributes = tuple(
            p.name for p in self.parameters if p.wanted is _WANTED["float"]
        )
        self._index = {p.name: i for i, p in enumerate(self.parameters)}
        self.function = self._make_function(kinds)

    # ---- rule slots -----------------------------------------------------------------------------

    def infer(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(*operand_types, **attributes)` -> TensorType, or a tuple of them."""
        self.infer_rule = rule
        return rule

    def reference(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(*arrays, **attributes)` -> array(s). This is the op's meaning."""
        self.reference_rule = rule
        return rule

    def scalar(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(s, *scalars, **attributes)` -> scalar expression; makes the op elementwise."""
        self.scalar_rule = rule
        self.elementwise = True
        return rule

    def decompose(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: the op made of other ops, for backends without a kernel; the op's own signature."""
        self.decompose_rule = rule
        return rule

    def bprop(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(*operands, out, dout, **attributes)` -> one cotangent, or NO_GRAD, per
        operand.

        Raises:
            ArgumentError: the rule does not take the operands, `out` and `dout`.
        """
        self._check_rule_arity(rule)

        def getter(attributes: Mapping[str, Any]) -> Callable[..., Any]:
            if not attributes:
                return rule
            return lambda *args: rule(*args, **attributes)

        self.bprop_rule = getter
        return rule

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__)

    def _check_rule_arity(self, rule: Callable[..., Any]) -> None:
        code = rule.__code__
        names = code.co_varnames[: code.co_argcount]
        positional = [n for n in names if n not in self.attribute_names]
        star = bool(code.co_flags & inspect.CO_VARARGS)
        wanted = self.n_operands + 2
        if not star and len(positional) != wanted:
            operands = ", ".join(p.name for p in self.parameters if p.kind != "attribute")
            raise ArgumentError(
                f"{self.name}: the bprop takes {len(positional)} arguments, wanted {wanted}: "
                f"({operands}, out, dout)"
            )

    # ---- calling --------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _op_by_name, (self.name,)

    def _make_function(self, kinds: list[str]) -> Callable[..., Any]:
        """The function behind operators and methods: the fast path for this signature."""
        table = self.table
        if kinds == ["tensor", "tensor"]:

            def binary(x: Any, y: Any) -> Any:
                if runtime_state.staging:
                    return door(self, (x, y), {})
                try:
                    call = table[x._type, y._type]
                except KeyError:
                    call = None
                except AttributeError:  # a number: its tensor is kept, see numbers
                    try:
                        if hasattr(x, "_type"):
                            y = numbers[x._type, y.__class__, y]
                        else:
                            x = numbers[y._type, x.__class__, x]
                        call = table.get((x._type, y._type))
                    except (KeyError, TypeError, AttributeError):
                        call = None
                if call is None:
                    return door(self, (x, y), {})
                return call(x, y)

            call_named = self._call_bound

            def binary_named(
                x: Any = _ABSENT, y: Any = _ABSENT, /, *rest: Any, **kwargs: Any
            ) -> Any:
                if kwargs or rest or y is _ABSENT:
                    return call_named(*[a for a in (x, y) if a is not _ABSENT], *rest, **kwargs)
                return binary(x, y)

            self.operator_function: Callable[..., Any] = binary
            return _documented(binary_named, self)
        if kinds == ["tensor"]:

            def unary(x: Any) -> Any:
                if runtime_state.staging:
                    return door(self, (x,), {})
                try:
                    call = table[x._type]
                except (KeyError, AttributeError):
                    call = None
                if call is None:
                    return door(self, (x,), {})
                return call(x)

            self.operator_function = unary

            call_bound = self._call_bound

            def unary_named(x: Any = _ABSENT, /, *rest: Any, **kwargs: Any) -> Any:
                if kwargs or rest or x is _ABSENT:
                    return call_bound(*[a for a in (x,) if a is not _ABSENT], *rest, **kwargs)
                return unary(x)

            return _documented(unary_named, self)

        call_bound = self._call_bound
        n, k = len(kinds), self.n_operands
        leading = not self.variadic and "attribute" not in kinds[:k]

        def general(*args: Any, **kwargs: Any) -> Any:
            # all arguments by position, attributes hashable and no floats: they are the key already
            # (a float would find the entry of the int that it equals)
            if (
                len(args) == n
                and not kwargs
                and not runtime_state.staging
                and float not in map(type, args[k:])
            ):
                try:
                    if k == 1:
                        call = table.get((args[0]._type, *args[1:]))
                    else:
                        call = table.get((*[x._type for x in args[:k]], *args[k:]))
                except (AttributeError, TypeError):
                    call = None
                if call is not None:
                    return call(*args[:k])
            return call_bound(*args, **kwargs)

        if not leading or k == n:
            general = _plain_call(call_bound)
        self.operator_function = _documented(general, self)
        return self.operator_function

    def _call_bound(self, *args: Any, **kwargs: Any) -> Any:
        operands, attributes = self.bind(args, kwargs)
        if runtime_state.staging:
            return door(self, operands, attributes)
        try:
            call = self.table.get(
                self.key([None if x is None else x._type for x in operands], attributes)
            )
        except (AttributeError, TypeError):
            call = None
        if call is None:
            return door(self, operands, attributes)
        return call(*operands)

    def key(self, types: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> Any:
        """Key of `table`. Floats go in as text: 1.0 is not 1, -0.0 not 0.0, and NaN equals itself."""
        if attributes:
            return (
                *types,
                *[repr(v) if v.__class__ is float else v for v in attributes.values()],
            )
        if len(types) == 1 and not self.variadic:
            return types[0]
        return tuple(types)

    def bind(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Operands (None where an optional one is absent; flat when variadic) and frozen
        attributes.
        """
        parameters = self.parameters
        if len(args) > len(parameters):
            raise ArgumentError(
                f"{self.name}: got {len(args)} positional arguments, wanted at most "
                f"{len(parameters)}: {self.name}{self.__signature__}"
            )
        values: list[Any] = list(args)
        if kwargs or len(args) < len(parameters):
            used = 0
            for p in parameters[len(args) :]:
                if p.name in kwargs:
                    values.append(kwargs[p.name])
                    used += 1
                elif p.required:
                    raise ArgumentError(
                        f"{self.name}: got no value for {p.name!r}; "
                        f"wanted {self.name}{self.__signature__}"
                    )
                else:
                    values.append(p.default)
            if used != len(kwargs):
                bad = [k for k in kwargs if self._index.get(k, -1) < len(args)]
                known = [k for k in bad if k in self._index]
                raise ArgumentError(
                    f"{self.name}: got {'two values for ' if known else 'the unknown argument '}"
                    f"{(known or bad)[0]!r}; wanted {self.name}{self.__signature__}"
                )
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        for p, value in zip(parameters, values, strict=True):
            kind = p.kind
            if kind == "attribute":
                attributes[p.name] = freeze(value)
            elif kind == "list":
                if not isinstance(value, (list, tuple)):
                    raise ArgumentError(
                        f"{self.name}: got {type(value).__name__} for {p.name!r}; "
                        f"wanted a tuple or list of Tensors"
                    )
                if not value:
                    raise ArgumentError(
                        f"{self.name}: got an empty {type(value).__name__} for {p.name!r}; "
                        f"wanted at least one Tensor"
                    )
                operands.extend(value)
            else:
                if value is None and kind == "tensor":
                    raise ArgumentError(f"{self.name}: got None for {p.name!r}; wanted a Tensor")
                operands.append(value)
        return tuple(operands), attributes

    def check_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Raise ArgumentError when an attribute is nothing that its annotation says."""
        for name, value in attributes.items():
            wanted = self.parameters[self._index[name]].wanted
            if wanted is not None and not wanted.takes(value):
                raise ArgumentError(f"{self.name}: got {name}={value!r}; wanted {wanted.text}")

    # ---- types ----------------------------------------------------------------------------------

    def arguments(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Flat operands as the op's functions take them: one sequence when variadic."""
        return (tuple(operands),) if self.variadic else tuple(operands)

    def result_types(
        self, types: tuple[TensorType | None, ...], attributes: Mapping[str, Any]
    ) -> Any:
        """Types of the results for promoted, plain operand types: one type, or a tuple."""
        if self.infer_rule is not None:
            return self.infer_rule(*self.arguments(types), **attributes)
        if self.body is None:
            raise UnsupportedOpError(f"{self.name}: has no infer rule and no body")
        assert _tracer is not None
        graph = _tracer(self, types, attributes)
        found = tuple(graph.types[i] for i in graph.outputs)
        return found[0] if graph.single else found

    def infer_types(
        self, types: tuple[TensorType | None, ...], attributes: Mapping[str, Any]
    ) -> tuple[TensorType, ...]:
        """`result_types`, always as a tuple."""
        found = self.result_types(types, attributes)
        return found if isinstance(found, tuple) else (found,)

    def promoted_dtype(self, types: Sequence[TensorType | None]) -> DType | None:
        """The dtype that operands are cast to first, or None when this op promotes nothing."""
        if self.promote is None:
            return None
        target: DType | None = None
        for t in types[self.promote_from :]:
            if t is not None:
                target = t.dtype if target is None else promote(target, t.dtype)
        if target is not None and self.promote == "float" and target.kind in "biu":
            target = float32
        return target

    def check_dtypes(self, types: Sequence[TensorType | None]) -> None:
        """Raise DTypeError when an operand has a dtype that this op does not take."""
        if self.dtypes is None:
            return
        for i, t in enumerate(types):
            if t is not None and i >= self.promote_from and t.dtype not in self.dtypes:
                names = [p.name for p in self.parameters if p.kind != "attribute"]
                name = names[min(i, len(names) - 1)]
                allowed = ", ".join(d.name for d in sorted(self.dtypes, key=lambda d: d.index))
                raise DTypeError(
                    f"{self.name}: {name} has dtype {t.dtype.name}; wanted one of {allowed}"
                )


def _plain_call(call_bound: Callable[..., Any]) -> Callable[..., Any]:
    def general(*args: Any, **kwargs: Any) -> Any:
        return call_bound(*args, **kwargs)

    return general


def _documented(function: Callable[..., Any], of: Op) -> Callable[..., Any]:
    function.__name__ = of.name
    function.__qualname__ = of.name
    function.__doc__ = of.__doc__
    function.__module__ = of.__module__
    function.__wrapped__ = of.__wrapped__  # type: ignore[attr-defined]
    function.op = of  # type: ignore[attr-defined]
    return function


def _op_by_name(name: str) -> Op:
    return OPS[name]


def door(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """The one road of an op call that no prepared call serves: to the current builder."""
    if attributes:
        op.check_attributes(attributes)
    builder = thread_state.builder
    if builder is None:
        for x in operands:
            builder = getattr(x, "_builder", None)
            if builder is not None:
                break
        else:
            builder = runtime_state.eager_builder
    return builder.apply(op, operands, attributes)


def _has_body(function: Callable[..., Any]) -> bool:
    """False when the code of the function is a docstring (or nothing) alone."""
    idle = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
    return any(step.opname not in idle for step in dis.get_instructions(function))


def op(
    *, name: str | None = None, composite: bool | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Op]:
    """Define an op from a function; see the module's docstring.

    Args:
        name: the op's name; default the function's, without a trailing underscore.
        composite: whether the function has a body; found by looking when None.
        method: name, or names, of the Tensor methods with the same signature.
        operators, reflected: special methods such as ``__add__`` and ``__radd__``.
        primitive: name of the attribute-less primitive class, such as ``"Exp"``.
        dtypes: dtypes taken (after promotion); None takes all.
        promote: ``"common"`` casts operands to their common dtype first, ``"float"`` also makes
        integers float32.
        promote_from: index of the first operand that takes part (1 for select).
        effects, differentiable, host, elementwise, graph_only: see `Op`.
        folds, reduction, gather, scatter, per_axis, broadcasts: see `traits.Traits`.

    Raises:
        ValueError: an op of that name exists.
    """

    declared = {key: options.pop(key) for key in Traits._fields if key in options}
    traits = Traits(**declared) if declared else NO_TRAITS

    def define(function: Callable[..., Any]) -> Op:
        own = name or function.__name__.rstrip("_")
        if own in OPS:
            raise ValueError(
                f"op {own!r} is defined twice: {OPS[own].__module__} and {function.__module__}"
            )
        made = Op(
            function,
            name=own,
            composite=_has_body(function) if composite is None else composite,
            traits=traits,
            **options,
        )
        OPS[own] = made
        return made

    return define
