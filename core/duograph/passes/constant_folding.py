"""Constant folding: rewrite rules that compute calls with constant operands at compile time.

A fold must produce the same bits as a kernel. The trait `Traits.folds` of an op names the dtype
kinds for which the op's NumPy reference has the bits of the kernels; other dtypes are not folded.
Functions of Python numbers are folded with the same Python functions that a running program calls.
`simplify` applies the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dims import symbols_in
from ..dtype import DType
from ..ir.control import (
    SCALAR_FUNCTIONS,
    HostConstant,
    host_constant,
    scalar,
    scalar_type,
    to_host,
    to_tensor,
)
from ..ir.graph import Attributes, FrozenArray
from ..ir.values import GraphScalar
from ..op import Op
from ..types import BOOL, FLOAT, INT, HostType, TensorType
from .matched_ops import cast, constant, fill
from .patterns import Value, call, known, rule
from .rewriting import Found, GraphValue, Rewriter, RewriteRule

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["HOST_FOLDS", "fold_constants"]

# The largest constant, in elements, that folding makes.
MAX_ELEMENTS = 1024
# The largest int, in bits, that folding makes.
MAX_BITS = 4096

HOST_KINDS: dict[HostType, type] = {BOOL: bool, INT: int, FLOAT: float}
X = Value("x")


def fold_constants(
    g: Rewriter, op: Op, operands: Sequence[int | None], attributes: Attributes
) -> Found | None:
    """Compute an op call on constants at compile time; return the constant as a value, or None.

    `operands` are ids of values of the new graph of `g`, to which a node for the constant is
    appended. Returns None if an operand is not a constant, if an operand or the result is too
    large, or if the dtype of an operand is not in `Traits.folds` of the op.
    """
    arrays: list[Array] = []
    types: list[TensorType] = []
    for i in operands:
        array = g.array(i, MAX_ELEMENTS)
        if i is None or array is None:
            return None
        type_ = g.types[i]
        assert isinstance(type_, TensorType)
        if type_.dtype.kind not in op.traits.folds:
            return None
        arrays.append(array)
        types.append(type_)
    result = op.result_types(tuple(types), attributes)
    if not isinstance(result, TensorType) or symbols_in(result.shape):
        return None
    if not 0 < result.size <= MAX_ELEMENTS:
        return None
    assert op.reference_rule is not None
    with np.errstate(all="ignore"):
        array = np.asarray(op.reference_rule(*op.arguments(arrays), **attributes))
    return made_constant(g, array.astype(result.dtype.np, copy=False), result)


def made_constant(g: Rewriter, array: Array, type_: TensorType) -> Found:
    """Append a node for the constant `array` to the new graph; return the node's value.

    The node is a `fill` if all elements are equal, else a `constant`. `type_` has the array's shape
    and dtype.
    """
    assert array.shape == type_.shape and array.dtype == type_.dtype.np, (array.dtype, type_)
    first = array.reshape(-1)[:1]
    same = np.full(array.shape, first[0]).astype(array.dtype)
    if array.tobytes() == same.tobytes() and first[0] == first[0]:
        attributes = {"shape": type_.shape, "value": first[0].item(), "dtype": type_.dtype}
        return _one(g.append(fill, (), attributes))
    return _one(g.append(constant, (), {"value": FrozenArray(array)}))


def made_host_constant(g: Rewriter, value: object) -> Found:
    """Append a `host_constant` node for a Python object to the new graph; return its value."""
    return _one(g.append(host_constant, (), {"value": HostConstant(value)}))


def _one(made: GraphValue) -> GraphValue:
    return made


def fold_cast(g: Rewriter, x: GraphValue, to: DType) -> Found | None:
    """Compute the cast of a constant at compile time; return the constant, or None.

    Returns None if `x` is not a constant. Returns None also if the result of a kernel might differ
    by even one bit: for narrowing floats, and for floats outside the range of an integer dtype.
    """
    array = g.array(x._id, MAX_ELEMENTS)
    if array is None or not array.size or to.kind == "c":
        return None
    type_ = x._type
    assert isinstance(type_, TensorType)
    source = type_.dtype
    if source.kind not in "biuf":
        return None
    if source.kind == "f" and to.kind == "f" and to.itemsize < source.itemsize:
        return None
    if source.kind == "f" and to.kind in "iu":
        limits = np.iinfo(to.np)
        wide = array.astype(np.float64)
        if not np.all((wide > limits.min) & (wide < limits.max)):
            return None
    return made_constant(g, array.astype(to.np), TensorType.of(type_.shape, to))


def fold_scalar(g: Rewriter, xs: tuple[GraphScalar, ...], function: str) -> Found | None:
    """Compute a function of constant Python numbers at compile time; return the constant, or None.

    `function` is the name of the function. The result is None, and the call stays in the graph, if
    an operand is not known, the function raises, or its result would be very large or of another
    class than the graph declares.
    """
    values = [g.known(x) for x in xs]
    if any(v is None for v in values) or _too_large(function, values):
        return None
    try:
        value = SCALAR_FUNCTIONS[function](*values)
    except (ArithmeticError, ValueError, TypeError):
        return None
    kind = scalar_type(function, [x._type for x in xs])
    return made_host_constant(g, value) if type(value) is HOST_KINDS[kind] else None


def _too_large(function: str, values: Sequence[Any]) -> bool:
    """Return whether `function` of these values may be an int of more than MAX_BITS bits."""
    if function not in ("pow", "lshift", "mul") or not all(isinstance(v, int) for v in values):
        return False
    a, b = (abs(v) for v in values)
    if function == "pow":
        bits = b * a.bit_length()
    else:
        bits = a.bit_length() + (b.bit_length() if function == "mul" else b)
    return bool(bits > MAX_BITS)


def fold_to_host(g: Rewriter, x: GraphValue, kind: HostType) -> Found | None:
    """Convert a constant tensor of one element to a Python number at compile time.

    Returns None if the tensor is not a constant, or its element is not finite. `kind` is the type
    of the number.
    """
    array = g.array(x._id, MAX_ELEMENTS)
    if array is None or array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        return None
    return made_host_constant(g, HOST_KINDS[kind](array.item()))


def fold_to_tensor(g: Rewriter, value: bool | int | float, dtype: DType) -> Found | None:
    """Convert a known Python number to a constant tensor at compile time.

    Returns None for complex dtypes. Returns None also for an integer dtype if the number is not an
    int or is outside the range of the dtype.
    """
    if dtype.kind == "c":
        return None
    if dtype.kind in "iu":
        limits = np.iinfo(dtype.np)
        if not isinstance(value, int) or not limits.min <= value <= limits.max:
            return None
    with np.errstate(all="ignore"):
        array = np.asarray(value).astype(dtype.np)
    return made_constant(g, array, TensorType.of((), dtype))


HOST_FOLDS: list[RewriteRule] = [
    rule("cast(constant) -> constant", call(cast, X, dtype="to"), fold_cast),
    rule("f(numbers) -> number", call(scalar, rest="xs", function="function"), fold_scalar),
    rule("to_host(constant) -> number", call(to_host, X, kind="kind"), fold_to_host),
    rule(
        "to_tensor(number) -> constant",
        call(to_tensor, known("value"), dtype="dtype"),
        fold_to_tensor,
    ),
]
