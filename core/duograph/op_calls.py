"""Applies ops: makes the Python function of an op, and passes calls on to eager mode or a graph.

`Op` makes its function here when it is defined. The function looks up a prepared call, which runs a
kernel immediately, in the table of the op by the operand types; this is the fast path of eager
mode. A call without an entry there goes to a builder, which runs the op or adds it to a graph.
Nothing here must know what an op computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .call_cache import cached_call
from .call_names import leave
from .errors import DuographError
from .op_signature import documented
from .runtime_state import runtime_state, thread_state
from .types import TensorType

if TYPE_CHECKING:
    from .op import Op
    from .tensor import Tensor

# Functions that apply ops differ in signature from op to op.
Function: TypeAlias = Callable[..., Any]
# Attributes by name, with frozen values of any type.
AttributeDict: TypeAlias = dict[str, object]
# Tensors, graph values, Python numbers, and None for an absent optional operand.
Operands: TypeAlias = tuple[Any, ...]

_ABSENT = object()


class Builder(Protocol):
    """Interface of a receiver of op calls: eager mode runs them, a graph builder adds nodes."""

    def apply(self, op: Op, operands: Operands, attributes: AttributeDict) -> object: ...


# Tensors made of Python numbers that were operands beside a tensor. The key is the type of that
# tensor, the class of the number, and the number. Floating zeros are not stored, because 0.0 and
# -0.0 are equal keys.
numbers: dict[tuple[TensorType, type, object], Tensor] = {}


def make_functions(op: Op, kinds: list[str], name: str = "") -> tuple[Function, Function]:
    """Return the function that applies an op, and the variant for Python's operators.

    While no graph is being built, both look up the prepared call by the operand types; if there is
    none, they call `dispatch`. `kinds` has the kind of each parameter, see
    `op_signature.Parameter`. For an op of one or two tensors and no attributes, the variant takes
    positional operands only; for other ops, the two are the same function. Error messages call the
    op `name`, or by its own name if `name` is "".
    """
    if kinds == ["tensor", "tensor"]:
        return _binary(op, name)
    if kinds == ["tensor"]:
        return _unary(op, name)
    function = documented(_general(op, name), op)
    if name:
        function.call_name = name  # type: ignore[attr-defined]
    if not op.variadic and not op.host:
        function = cached_call(function)
    return function, function


def _binary(op: Op, name: str) -> tuple[Function, Function]:
    """Return two functions that apply an op of two tensors without attributes.

    The first takes any arguments of the op; the second, for Python's operators, takes positional
    operands only. Error messages call the op `name`, or by its own name if `name` is "".
    """
    table = op.table

    def binary(x: Any, y: Any) -> Any:
        if runtime_state.staging:
            return _named(op, name, (x, y), {})
        try:
            call = table[x._type, y._type]
        except KeyError:
            call = None
        except AttributeError:  # a Python number, whose tensor may be stored in `numbers`
            try:
                if hasattr(x, "_type"):
                    y = numbers[x._type, y.__class__, y]
                else:
                    x = numbers[y._type, x.__class__, x]
                call = table.get((x._type, y._type))
            except (KeyError, TypeError, AttributeError):
                call = None
        if call is None:
            return _named(op, name, (x, y), {})
        return call(x, y)

    general = _general(op, name)

    def binary_named(
        x: object = _ABSENT, y: object = _ABSENT, /, *rest: object, **kwargs: object
    ) -> object:
        if kwargs or rest or y is _ABSENT:
            return general(*[a for a in (x, y) if a is not _ABSENT], *rest, **kwargs)
        return binary(x, y)

    if name:
        binary_named.call_name = name  # type: ignore[attr-defined]
    return documented(binary_named, op), binary


def _unary(op: Op, name: str) -> tuple[Function, Function]:
    """Return two functions that apply an op of one tensor without attributes.

    The first takes any arguments of the op; the second, for Python's operators, takes a positional
    operand only. Error messages call the op `name`, or by its own name if `name` is "".
    """
    table = op.table

    def unary(x: Any) -> Any:
        if runtime_state.staging:
            return _named(op, name, (x,), {})
        try:
            call = table[x._type]
        except (KeyError, AttributeError):
            call = None
        if call is None:
            return _named(op, name, (x,), {})
        return call(x)

    general = _general(op, name)

    def unary_named(x: object = _ABSENT, /, *rest: object, **kwargs: object) -> object:
        if kwargs or rest or x is _ABSENT:
            return general(*[a for a in (x,) if a is not _ABSENT], *rest, **kwargs)
        return unary(x)

    if name:
        unary_named.call_name = name  # type: ignore[attr-defined]
    return documented(unary_named, op), unary


def _general(op: Op, name: str) -> Function:
    """Return a function that binds any arguments to the op's parameters and applies the op.

    Error messages call the function `name`, or by the op's own name if `name` is "".
    """

    def general(*args: object, **kwargs: object) -> object:
        try:
            operands, attributes = op.bind(args, kwargs)
        except DuographError as error:
            leave(error, name or op.call_name)
            raise
        if runtime_state.staging or (not operands and thread_state.builder is not None):
            return _named(op, name, operands, attributes)
        try:
            call = op.table.get(
                op.key([None if x is None else x._type for x in operands], attributes)
            )
        except (AttributeError, TypeError):
            call = None
        if call is None:
            return _named(op, name, operands, attributes)
        return call(*operands)

    return general


def _named(op: Op, name: str, operands: Operands, attributes: AttributeDict) -> Any:
    """Dispatch an op call; errors call the function `name` or, if that is "", `op.call_name`."""
    try:
        return dispatch(op, operands, attributes)
    except DuographError as error:
        leave(error, name or op.call_name)
        raise


def dispatch(op: Op, operands: Operands, attributes: AttributeDict) -> Any:
    """Pass an op call to the current graph builder or, if there is none, to eager mode.

    The builder is that of the thread; without one, that of the first operand that belongs to a
    graph; without such an operand, the eager builder. Returns the op's results as the builder makes
    them: tensors in eager mode, values of a graph otherwise.
    """
    if attributes:
        op.check_attributes(attributes)
        op.use_ints(attributes)
    builder = thread_state.builder
    if builder is None:
        for x in operands:
            builder = getattr(x, "_builder", None)
            if builder is not None:
                break
        else:
            builder = runtime_state.eager_builder
    return builder.apply(op, operands, attributes)
