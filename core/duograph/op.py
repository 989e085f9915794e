"""The definition of an op: its signature, documentation and rules, and the table of all ops.

The families in `ops` define each op once with `@op`. In the signature of the function a parameter
annotated `Tensor` is an operand, `Tensor | None` an optional operand, and `Sequence[Tensor]` a
variadic operand, which must be the only operand; all others are attributes. A function with a body
defines a composite op, a function without one a primitive. Rules (type inference, gradient, NumPy
reference, ...) are attached with decorators of the op. This module must not name a particular op,
backend or builder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .call_cache import cached_call
from .dtype import DType, float32, promote
from .errors import (
    ArgumentError,
    ArgumentValueError,
    DTypeError,
    GradientError,
    UnsupportedOpError,
)  # fmt: skip
from .op_calls import AttributeDict, Function, Operands, make_functions
from .op_signature import (
    INT_ANNOTATIONS,
    documented,
    freeze,
    has_body,
    parameters_of,
    values_of,
)
from .runtime_state import runtime_state, thread_state
from .traits import ACCUMULATED, NO_TRAITS, Traits
from .types import TensorType, elementwise_type

if TYPE_CHECKING:
    from .backend.prepared import PreparedCall
    from .backend.protocol import Backend
    from .effects import Effect
    from .ir.graph import Graph

__all__ = ["Op", "op", "OPS", "NO_GRAD"]

# Attributes by name, with frozen values of any type.
Attributes: TypeAlias = Mapping[str, object]

# Every op by name, filled by the modules that ops/__init__.py lists and by plugins.
OPS: dict[str, Op] = {}


class _NoGrad:
    """Type of NO_GRAD, which gradient rules return for operands that have no gradient."""

    def __repr__(self) -> str:
        return "NO_GRAD"


NO_GRAD = _NoGrad()
# Classes of attributes whose equal values may differ: 0.0 equals -0.0, and 1.0 equals 1.
_INEXACT = (float, complex)


class Op:
    """An op of the framework: signature, documentation and rules; calling it applies the op.

    Attributes:
        name: unique name, by which backends know the op.
        public: the function that users call; it applies the `normaliser` where there is one.
        call_name: the name in messages if users call the op itself; see `call_names`.
        primitives: signatures such as ``"Elu(alpha=1.0)(x)"``, from which `ops.primitive` makes the
            classes of MindSpore for the op.
        result_dtype: dtype of the result of an element-wise op: a dtype, a function of the first
            operand's dtype, or None for the dtype of the last operand.
        table: prepared calls by operand types (and attributes), read by the fast path.
        other_table: the prepared calls of the form that is not in use; see `exchange_tables`.
        prepared: dictionary from the key of a call to (backend, its kernel call); the second is
            None if the backend has no kernel. See `backend.prepared_calls`.
        is_composite: True when the defining function has a body, which calls other ops.
        differentiable: False when no operand ever has a gradient (comparisons, argmax).
        host: True when the size of the result depends on values; such an op runs on the host.
        host_fallback: True for rare functions: where a backend has no kernel, the NumPy reference
            runs on the host, even if the backend's setting `host_fallback` is "off". The size of
            the result follows from the types.
        alias: True when the result shares the operand's buffer, possibly with another shape; no
            backend is called.
        graph_only: True for ops that exist only in graphs (control flow, host values): they have no
            name in `ops` and no kernels.
        storage: True when operands and results may have the dtypes of `dtype.STORAGE`.
        traits: facts that graph passes and code generators rely on; see `traits.Traits`.
        is_reduction: whether the op is a reduction that generated loops can accumulate.
        is_view: whether every element of the result is an unchanged element of the operand.
        real_attributes: names of the attributes annotated `float`; kernels take them as numbers.
    """

    def __init__(
        self,
        function: Function,
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
        host_fallback: bool = False,
        elementwise: bool = False,
        alias: bool = False,
        graph_only: bool = False,
        storage: bool = False,
        traits: Traits = NO_TRAITS,
    ) -> None:
        self.name = name
        self.call_name = ""
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
        self.host_fallback = host_fallback
        self.elementwise = elementwise
        self.alias = alias
        self.graph_only = graph_only
        self.storage = storage or alias or graph_only
        self.traits = traits
        self.is_reduction = traits.reduction in ACCUMULATED
        self.is_view = alias or traits.broadcasts
        self.is_composite = composite
        self.body: Function | None = function if composite else None
        self.table: dict[Hashable, Function] = {}
        self.other_table: dict[Hashable, Function] = {}
        self.prepared: dict[Hashable, tuple[Backend, PreparedCall | None]] = {}
        self.expanded: dict[Hashable, Graph] = {}
        self._clear_rules()
        self._read_signature(function)

    def _clear_rules(self) -> None:
        """Set every rule of an op (type inference, gradient and others) to its default."""
        self.infer_rule: Function | None = None
        self.bprop_rule: Callable[[Attributes], Function] | None = None
        # debug mode compares the rules of others with finite differences
        self.own_rule = self.__module__.split(".")[0] == "duograph"
        self.reference_rule: Function | None = None
        self.scalar_rule: Function | None = None
        if self.elementwise and self.is_composite:
            self.scalar_rule = self._scalar_of_body
        self.decompose_rule: Function | None = None

    def _read_signature(self, function: Function) -> None:
        """Read the op's parameters from its defining function; create the function users call."""
        self.parameters = parameters_of(function)
        kinds = [p.kind for p in self.parameters]
        self.n_operands = sum(k != "attribute" for k in kinds)
        self.variadic = "list" in kinds
        self.has_optional = "optional" in kinds
        if self.variadic and self.n_operands != 1:
            raise ValueError(f"{self.name}: a variadic operand must be the only operand")
        self.attribute_names = tuple(p.name for p in self.parameters if p.kind == "attribute")
        self.real_attributes = tuple(
            p.name for p in self.parameters if p.kind == "attribute" and p.annotation == "float"
        )
        self._ints = tuple(p.name for p in self.parameters if p.annotation in INT_ANNOTATIONS)
        self._index = {p.name: i for i, p in enumerate(self.parameters)}
        self._ranged = [
            p for p in self.parameters if p.accepted is not None and p.accepted.fits is not None
        ]
        self.function, self.operator_function = make_functions(self, kinds)
        # Users call `public` under the op's name; `normaliser` replaces it.
        self.public: Function = self.function
        self.has_normaliser = False

    def alias_function(self, name: str, module: str) -> Function:
        """Return a function that applies the op and is known to users as `name` in `module`.

        Error messages call the function `name`.
        """
        made, _ = make_functions(self, [p.kind for p in self.parameters], name)
        made.__name__ = made.__qualname__ = name
        made.__module__ = module
        return made

    def forget_calls(self) -> None:
        """Discard the op's prepared calls, the kernels found for given operand types."""
        self.table.clear()
        self.other_table.clear()
        self.prepared = {}

    # ---- rule slots -----------------------------------------------------------------------------

    def normaliser(self, rule: Function) -> Function:
        """Decorator that sets how users' arguments become those of the op's definition.

        `rule(*args, **kwargs)` takes the users' arguments. It returns the op's arguments as a
        tuple, in the order of the definition, or a finished result that is not a tuple. Framework
        code calls the op with the arguments of the definition and skips the rule.
        """
        call_op = self.function

        def public(*args: object, **kwargs: object) -> object:
            found = rule(*args, **kwargs)
            return call_op(*found) if found.__class__ is tuple else found

        self.has_normaliser = True
        self.public = documented(public, self, rule)
        if not self.variadic and not self.host:
            self.public = cached_call(self.public)
        return rule

    def infer(self, rule: Function) -> Function:
        """Decorator that sets an op's type rule, `rule(*operand_types, **attributes)`.

        The rule returns the result type, or a tuple of types. Without a rule, the result of an
        element-wise op has the broadcast shape of the operands and the dtype declared by `result`;
        the types of any other composite op are found by tracing its body.
        """
        self.infer_rule = rule
        return rule

    def reference(self, rule: Function) -> Function:
        """Decorator that sets an op's NumPy reference, `rule(*arrays, **attributes)`.

        Without one, a composite op is computed by its body.
        """
        self.reference_rule = rule
        return rule

    def scalar(self, rule: Function) -> Function:
        """Decorator that sets an op's scalar rule: how one element of the result is computed.

        The rule `rule(s, *scalars, **attributes)` returns an expression over symbolic scalars, for
        code generators. Attaching it makes the op element-wise. A composite op declared
        ``elementwise=True`` has as its default the expression that its body computes.
        """
        self.scalar_rule = rule
        self.elementwise = True
        return rule

    def _scalar_of_body(self, s: object, *scalars: object, **attributes: object) -> object:
        """Return the scalar expression that an element-wise composite's body computes.

        It has the form of a scalar rule: `s` is the builder of expressions, `scalars` are the
        operands.
        """
        return runtime_state.scalar_of_body(s, self, scalars, attributes)

    def decompose(self, rule: Function) -> Function:
        """Decorator that sets an op's decomposition, `rule(*operands, **attributes)`.

        The rule computes the results by other ops. It is used where a backend has no kernel for the
        op.
        """
        self.decompose_rule = rule
        return rule

    def bprop(self, rule: Function) -> Function:
        """Decorator that sets an op's gradient rule, `rule(*operands, out, dout, **attributes)`.

        The rule returns one cotangent, or NO_GRAD, for each operand. Without a rule, the body of a
        composite op is differentiated.

        Raises:
            ArgumentError: the rule does not take the operands, `out` and `dout`.
        """
        self.check_rule_arity(rule)

        def getter(attributes: Attributes) -> Function:
            if not attributes:
                return rule
            return lambda *args: rule(*args, **attributes)

        self.bprop_rule = getter
        return rule

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__)

    def check_rule_arity(self, rule: Function) -> None:
        """Raise ArgumentError if a gradient rule does not take the operands, `out` and `dout`."""
        if not hasattr(rule, "__code__"):
            raise ArgumentError(f"{self.name}: got {rule!r} for a bprop; wanted a Python function")
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

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        return _op_by_name, (self.name,)

    def key(self, types: Sequence[TensorType | None], attributes: Attributes) -> Hashable:
        """Return the cache key of an op's prepared call for given types and attributes.

        Floats and complex numbers are replaced by their repr, which distinguishes 1.0 from 1 and
        -0.0 from 0.0 and makes NaN equal to itself. For an op without operands the key has the
        device that the thread chose, if any.
        """
        if not types and thread_state.device is not None:
            return (thread_state.device, *map(repr, attributes.values()))
        if attributes:
            return (
                *types,
                *[repr(v) if v.__class__ in _INEXACT else v for v in attributes.values()],
            )
        if len(types) == 1 and not self.variadic:
            return types[0]
        return tuple(types)

    def bind(self, args: Sequence[object], kwargs: Attributes) -> tuple[Operands, AttributeDict]:
        """Split the arguments of an op call into operands (tensors) and hashable attributes.

        An absent optional operand is None. The operands of a variadic op are not nested in a tuple.
        """
        operands: list[object] = []
        attributes: AttributeDict = {}
        for p, value in zip(self.parameters, values_of(self, args, kwargs), strict=True):
            kind = p.kind
            if kind == "attribute":
                try:
                    attributes[p.name] = freeze(value)
                except GradientError as error:
                    raise GradientError(f"{self.name}: {p.name}: {error}") from None
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

    def check_attributes(self, attributes: Attributes) -> None:
        """Raise ArgumentError if an attribute's value does not fit its annotation."""
        for name, value in attributes.items():
            accepted = self.parameters[self._index[name]].accepted
            if accepted is not None and not accepted.accepts(value):
                raise ArgumentError(f"{self.name}: got {name}={value!r}; wanted {accepted.text}")

    def use_ints(self, attributes: AttributeDict) -> None:
        """Convert bools to ints, in place, in attributes that are annotated as ints.

        True equals 1, so a call with True would otherwise share a cache key with one with 1.
        """
        for name in self._ints:
            value = attributes.get(name)
            if isinstance(value, bool):
                attributes[name] = int(value)
            elif isinstance(value, tuple) and any([isinstance(v, bool) for v in value]):
                attributes[name] = tuple([int(v) for v in value])

    def check_ranges(self, types: Sequence[TensorType | None], attributes: Attributes) -> None:
        """Raise ArgumentValueError if an axis in the attributes is negative, too large or repeated.

        The range follows from the number of axes of the first operand.
        """
        first = types[0]
        ndim = 0 if first is None else len(first.shape)
        for p in self._ranged:
            value = attributes[p.name]
            if not p.accepted.fits(value, ndim):  # type: ignore[union-attr, misc]
                raise ArgumentValueError(
                    f"{self.name}: got {p.name}={value!r} for an operand of {ndim} axes; wanted "
                    f"{p.accepted.text} in range"  # type: ignore[union-attr]
                )

    # ---- types ----------------------------------------------------------------------------------

    def arguments(self, operands: Sequence[object]) -> Operands:
        """Return operands as positional arguments of rules: one tuple for a variadic op."""
        return (tuple(operands),) if self.variadic else tuple(operands)

    def result_types(
        self, types: tuple[TensorType | None, ...], attributes: Attributes
    ) -> TensorType | tuple[TensorType, ...]:
        """Return the type, or tuple of types, of an op's results for given operand types.

        The operand types must be promoted already. Kernels rely on this check of types and
        attributes.

        Raises:
            DuographError: the operands or attributes do not fit the op.
        """
        if self._ranged:
            self.check_ranges(types, attributes)
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
        """Return whether the op converts integer or bool operands of these types to float.

        That is so for a composite op that has attributes that are real numbers.
        """
        return (
            self.is_composite
            and bool(self.real_attributes)
            and any(t is not None and t.dtype.kind in "biu" for t in types)
        )

    def infer_types(
        self, types: tuple[TensorType | None, ...], attributes: Attributes
    ) -> tuple[TensorType, ...]:
        """Return the types of an op's results as a tuple, also for a single result."""
        found = self.result_types(types, attributes)
        return found if isinstance(found, tuple) else (found,)

    def promoted_dtype(self, types: Sequence[TensorType | None]) -> DType | None:
        """Return the dtype to which operands are cast, or None when the op does not promote."""
        if self.promote is None:
            return None
        target: DType | None = None
        for t in types[self.promote_from :]:
            if target is None or t is None:
                target = target if t is None else t.dtype
            elif t.dtype is not target:
                target = promote(target, t.dtype)
        if target is not None and self.promote == "float" and target.kind in "biu":
            target = float32
        return target

    def check_dtypes(self, types: Sequence[TensorType | None]) -> None:
        """Raise DTypeError if an operand has a dtype that the op does not accept."""
        if self.dtypes is None:
            for t in () if self.storage else types:
                if t is not None and t.dtype.kind == "s":
                    raise self.no_storage(t.dtype)
            return
        for i, t in enumerate(types):
            if t is not None and i >= self.promote_from and t.dtype not in self.dtypes:
                names = [p.name for p in self.parameters if p.kind != "attribute"]
                name = names[min(i, len(names) - 1)]
                allowed = ", ".join(d.name for d in sorted(self.dtypes, key=lambda d: d.index))
                remark = (
                    "; comparisons need brackets: (x > 0) & (x < 3)"
                    if self.name.startswith("bitwise_") and t.dtype.is_floating
                    else ""
                )
                raise DTypeError(
                    f"{self.name}: {name} has dtype {t.dtype.name}; wanted one of {allowed}{remark}"
                )

    def takes(self, dtype: DType) -> bool:
        """Return whether the op's declaration names `dtype` as accepted; False if it names none."""
        return self.dtypes is not None and dtype in self.dtypes

    def no_storage(self, dtype: DType) -> DTypeError:
        """Return the error for an operand or result whose dtype can only be stored.

        Ops cannot compute with such a dtype.
        """
        return DTypeError(
            f"{self.name}: got {dtype.name}, which stores values and computes nothing; cast to "
            f"float32 before, as with x.astype(float32), and back after"
        )


def _op_by_name(name: str) -> Op:
    return OPS[name]


def op(
    *, name: str | None = None, composite: bool | None = None, **options: Any
) -> Callable[[Function], Op]:
    """Decorator that defines an op from a function's signature, annotations and body.

    Args:
        name: the op's name; default the function's, without a trailing underscore.
        composite: whether the function has a body; None reads it from the bytecode.
        method: name, or names, of the Tensor methods with the same signature.
        operators, reflected: special methods such as ``__add__`` and ``__radd__``.
        primitive: signature, or signatures, of MindSpore's classes for the op, such as ``"Exp"`` or
            ``"Elu(alpha=1.0)(x)"``; see `ops.primitive`.
        result: dtype of the result of an element-wise op; see `Op.result_dtype`.
        dtypes: accepted dtypes, after promotion; None accepts `dtype.ALL`.
        promote: ``"common"`` casts operands to their common dtype first, ``"float"`` also makes
            integers float32.
        promote_from: index of the first operand that is promoted (1 for select).
        effects, differentiable, host, host_fallback, elementwise, graph_only, storage: see `Op`.
        folds, reduction, gather, scatter, per_axis, broadcasts, checks: see `traits.Traits`.

    Raises:
        ValueError: an op of that name exists.
    """

    declared = {key: options.pop(key) for key in Traits._fields if key in options}
    traits = Traits(**declared) if declared else NO_TRAITS

    def define(function: Function) -> Op:
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
