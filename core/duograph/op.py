"""The definition of an op: signature, documentation, rules and calls.

The families in `ops` define each op once with `@op`. In the signature of the function a parameter
annotated `Tensor` is an operand, `Tensor | None` an optional operand, and `Sequence[Tensor]` a
variadic operand, which must be the only one; all others are attributes. A function with a body
defines a composite, one without defines a primitive. Rules are attached with the slots of the op.
This module must not name a particular op, backend or builder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .dtype import DType, float32, promote
from .errors import ArgumentError, DTypeError, UnsupportedOpError
from .op_signature import freeze, has_body, parameters_of, values_of
from .runtime_state import runtime_state, thread_state
from .traits import ACCUMULATED, NO_TRAITS, Traits
from .types import TensorType, elementwise_type

if TYPE_CHECKING:
    from .effects import Effect

__all__ = ["Op", "op", "OPS", "NO_GRAD"]

# Every op by name, filled by the modules that ops/__init__.py lists and by plugins.
OPS: dict[str, Op] = {}


class _NoGrad:
    """A rule returns NO_GRAD for an operand that has no gradient by definition (an index, a mask)."""

    def __repr__(self) -> str:
        return "NO_GRAD"


NO_GRAD = _NoGrad()
_ABSENT: Any = object()


class Builder(Protocol):
    """Receives op calls: the eager builder runs them, a graph builder appends nodes."""

    def apply(self, op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any: ...


# Tensors made of Python numbers that were operands beside a tensor: (its type, class, value) -> tensor.
# Floating zeros are not kept, because 0.0 and -0.0 are equal keys.
numbers: dict[tuple[TensorType, type, Any], Any] = {}


def drop_tables() -> None:
    """Discard every prepared call, because a rule, a plugin or the device target changed."""
    for known in OPS.values():
        known.table.clear()


def rules_changed() -> None:
    """Invalidate everything that was made from rules, after a rule of some op was replaced."""
    runtime_state.rules_version += 1
    runtime_state.settings_version = object()
    for known in OPS.values():
        known.table.clear()
        known.expanded.clear()


class Op:
    """One op: signature, documentation and rules. Call it like the function that defined it.

    Attributes:
        name: unique name, by which backends know the op.
        public: the function that users call; it applies the `normaliser` where there is one.
        primitives: spellings of the primitive classes; see `ops.primitive`.
        result_dtype: dtype of the result of an element-wise op: a dtype, a function of the first
            operand's dtype, or None for the dtype of the last operand.
        table: prepared calls by operand types (and attributes), read by the fast path.
        is_composite: True when the defining function has a body, which calls other ops.
        differentiable: False when no operand ever has a gradient (comparisons, argmax).
        host: True when the size of the result depends on values; the op runs on the host.
        alias: True when the result shares the operand's buffer, perhaps with another shape; backends
            are not called.
        graph_only: True for ops that exist only in graphs (control flow, host values): they have no
            name in `ops` and no kernels.
        traits: facts that graph passes and code generators rely on.
        is_reduction: generated loops can accumulate this reduction.
        is_view: every element of the result is an unchanged element of the operand.
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
        primitive: str | Sequence[str] = (),
        result: DType | Callable[[DType], DType] | None = None,
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
        self.primitives = (primitive,) if isinstance(primitive, str) else tuple(primitive)
        self.result_dtype = result
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
        self.is_reduction = traits.reduction in ACCUMULATED
        self.is_view = alias or traits.broadcasts
        self.is_composite = composite
        self.body: Callable[..., Any] | None = function if composite else None
        self.table: dict[Any, Callable[..., Any]] = {}
        self.expanded: dict[Any, Any] = {}
        self.infer_rule: Callable[..., Any] | None = None
        self.bprop_rule: Callable[[Mapping[str, Any]], Callable[..., Any]] | None = None
        self.reference_rule: Callable[..., Any] | None = None
        self.scalar_rule: Callable[..., Any] | None = None
        if elementwise and composite:
            self.scalar_rule = self._scalar_of_body
        self.decompose_rule: Callable[..., Any] | None = None
        self.parameters = parameters_of(function)
        kinds = [p.kind for p in self.parameters]
        self.n_operands = sum(k != "attribute" for k in kinds)
        self.variadic = "list" in kinds
        self.has_optional = "optional" in kinds
        if self.variadic and self.n_operands != 1:
            raise ValueError(f"{name}: a variadic operand must be the only operand")
        self.attribute_names = tuple(p.name for p in self.parameters if p.kind == "attribute")
        self.real_attributes = tuple(
            p.name for p in self.parameters if p.kind == "attribute" and p.annotation == "float"
        )
        self._index = {p.name: i for i, p in enumerate(self.parameters)}
        self.function = self._make_function(kinds)
        # what users call under the op's name; `normaliser` replaces it
        self.public: Callable[..., Any] = self.function
        self.has_normaliser = False

    # ---- rule slots -----------------------------------------------------------------------------

    def normaliser(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: the signature that users call, where it differs from that of the definition.

        `rule(*args, **kwargs)` takes the user's arguments. It returns those of the op as a tuple,
        in the order of the definition, or a finished result that is not a tuple. Framework code
        that calls the op passes the arguments of the definition and skips the rule.
        """
        call_op = self.function

        def public(*args: Any, **kwargs: Any) -> Any:
            found = rule(*args, **kwargs)
            return call_op(*found) if found.__class__ is tuple else found

        self.has_normaliser = True
        self.public = _documented(public, self, rule)
        return rule

    def infer(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(*operand_types, **attributes)` returns one TensorType or a tuple of them.

        Default: an element-wise op has the broadcast shape and the dtype that its `result` says; the
        body of any other composite is traced.
        """
        self.infer_rule = rule
        return rule

    def reference(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(*arrays, **attributes)` computes the result with NumPy and defines the op.

        Default: the body of a composite.
        """
        self.reference_rule = rule
        return rule

    def scalar(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(s, *scalars, **attributes)` returns the scalar expression of an element.

        Attaching it makes the op element-wise. Default for a composite with ``elementwise=True``:
        the expression that its body computes.
        """
        self.scalar_rule = rule
        self.elementwise = True
        return rule

    def _scalar_of_body(self, s: Any, *scalars: Any, **attributes: Any) -> Any:
        """Scalar rule of an element-wise composite: run its body on symbolic scalars."""
        return runtime_state.scalar_of_body(s, self, scalars, attributes)

    def decompose(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: the op in terms of other ops, with its own signature, for backends without a kernel."""
        self.decompose_rule = rule
        return rule

    def bprop(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Slot: `rule(*operands, out, dout, **attributes)` returns the cotangents of the operands.

        There is one cotangent, or NO_GRAD, for each operand. Default: the body of a composite is
        differentiated.

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
        """Return the function that applies the op, with the fast path for its kind of signature.

        It looks up the prepared call by the types of the operands, and dispatches when there is
        none. `operator_function` is the variant without keywords, for Python's operators.
        """
        if kinds == ["tensor", "tensor"]:
            return self._make_binary()
        if kinds == ["tensor"]:
            return self._make_unary()
        if (
            "attribute" in kinds[: self.n_operands]
            or self.variadic
            or self.n_operands == len(kinds)
        ):
            function = _plain_call(self._call_bound)
        else:
            function = self._make_with_attributes(len(kinds))
        self.operator_function = _documented(function, self)
        return self.operator_function

    def _make_binary(self) -> Callable[..., Any]:
        table = self.table

        def binary(x: Any, y: Any) -> Any:
            if runtime_state.staging:
                return dispatch(self, (x, y), {})
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
                return dispatch(self, (x, y), {})
            return call(x, y)

        call_named = self._call_bound

        def binary_named(x: Any = _ABSENT, y: Any = _ABSENT, /, *rest: Any, **kwargs: Any) -> Any:
            if kwargs or rest or y is _ABSENT:
                return call_named(*[a for a in (x, y) if a is not _ABSENT], *rest, **kwargs)
            return binary(x, y)

        self.operator_function: Callable[..., Any] = binary
        return _documented(binary_named, self)

    def _make_unary(self) -> Callable[..., Any]:
        table = self.table

        def unary(x: Any) -> Any:
            if runtime_state.staging:
                return dispatch(self, (x,), {})
            try:
                call = table[x._type]
            except (KeyError, AttributeError):
                call = None
            if call is None:
                return dispatch(self, (x,), {})
            return call(x)

        self.operator_function = unary
        call_bound = self._call_bound

        def unary_named(x: Any = _ABSENT, /, *rest: Any, **kwargs: Any) -> Any:
            if kwargs or rest or x is _ABSENT:
                return call_bound(*[a for a in (x,) if a is not _ABSENT], *rest, **kwargs)
            return unary(x)

        return _documented(unary_named, self)

    def _make_with_attributes(self, n: int) -> Callable[..., Any]:
        """The function of an op whose `n` parameters are operands followed by attributes."""
        table, k, call_bound = self.table, self.n_operands, self._call_bound

        def general(*args: Any, **kwargs: Any) -> Any:
            # All arguments by position, with hashable attributes and no floats, are the key already;
            # a float would find the entry of the int that it equals.
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

        return general

    def _call_bound(self, *args: Any, **kwargs: Any) -> Any:
        operands, attributes = self.bind(args, kwargs)
        if runtime_state.staging:
            return dispatch(self, operands, attributes)
        try:
            call = self.table.get(
                self.key([None if x is None else x._type for x in operands], attributes)
            )
        except (AttributeError, TypeError):
            call = None
        if call is None:
            return dispatch(self, operands, attributes)
        return call(*operands)

    def key(self, types: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> Any:
        """Return the key of `table`.

        Floats are keyed by their text, which tells 1.0 from 1 and -0.0 from 0.0 and makes NaN equal
        to itself.
        """
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
        """Split the arguments of a call into operands and frozen attributes.

        An absent optional operand is None; the operands of a variadic op come flat.
        """
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        for p, value in zip(self.parameters, values_of(self, args, kwargs), strict=True):
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
        """Raise ArgumentError when an attribute does not fit its annotation."""
        for name, value in attributes.items():
            accepted = self.parameters[self._index[name]].accepted
            if accepted is not None and not accepted.accepts(value):
                raise ArgumentError(f"{self.name}: got {name}={value!r}; wanted {accepted.text}")

    # ---- types ----------------------------------------------------------------------------------

    def arguments(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Return flat operands as the rules take them: one sequence for a variadic op."""
        return (tuple(operands),) if self.variadic else tuple(operands)

    def result_types(
        self, types: tuple[TensorType | None, ...], attributes: Mapping[str, Any]
    ) -> Any:
        """Return the type of the result, or a tuple of types, for promoted and plain operands."""
        if self.infer_rule is not None:
            return self.infer_rule(*self.arguments(types), **attributes)
        if (self.elementwise or self.result_dtype) and not self._computes_in_float(types):
            result = self.result_dtype
            if result is not None and not isinstance(result, DType):
                first = next(t for t in types if t is not None)
                result = result(first.dtype)
            return elementwise_type(self.name, *types, dtype=result)
        if self.body is None:
            raise UnsupportedOpError(f"{self.name}: has no infer rule and no body")
        graph = runtime_state.expand_body(self, types, attributes)
        found = tuple(graph.types[i] for i in graph.outputs)
        return found[0] if graph.single else found

    def _computes_in_float(self, types: tuple[TensorType | None, ...]) -> bool:
        """Return whether a composite mixes integer operands with float attributes."""
        return (
            self.is_composite
            and bool(self.real_attributes)
            and any(t is not None and t.dtype.kind in "biu" for t in types)
        )

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


def _documented(
    function: Callable[..., Any], of: Op, signature: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Give a function the name and documentation of an op, and the signature of another function."""
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


def _op_by_name(name: str) -> Op:
    return OPS[name]


def dispatch(op: Op, operands: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Pass an op call for which no prepared call exists to the current builder.

    The builder is that of the thread, else that of the first operand which belongs to a graph, else
    the eager one.
    """
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


def op(
    *, name: str | None = None, composite: bool | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Op]:
    """Define an op from a function; see the module's docstring.

    Args:
        name: the op's name; default the function's, without a trailing underscore.
        composite: whether the function has a body; found by looking when None.
        method: name, or names, of the Tensor methods with the same signature.
        operators, reflected: special methods such as ``__add__`` and ``__radd__``.
        primitive: spelling, or spellings, of the primitive classes, such as ``"Exp"`` or
            ``"Elu(alpha=1.0)(x)"``; see `ops.primitive`.
        result: dtype of the result of an element-wise op; see `Op.result_dtype`.
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
            composite=has_body(function) if composite is None else composite,
            traits=traits,
            **options,
        )
        OPS[own] = made
        return made

    return define
