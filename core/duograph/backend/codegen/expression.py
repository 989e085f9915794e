"""Defines symbolic scalars: typed expression trees that the `scalar` rules of ops build.

A rule receives `s`, whose methods are the mathematical functions, and its operands as `Expr`, which
have Python's operators. Planners and code generators read the trees; nothing here generates source
or evaluates::

    @softsign.scalar
    def _(s, x):
        return x / (1 + s.abs(x))

Both sides of an operator have the same dtype; a Python number takes the dtype of the other side.
float16 and bfloat16 operands arrive as float32 (`compute_dtype`) and the result is rounded once,
when it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np

from ...dims import as_float, as_integer, is_symbolic
from ...dtype import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)  # fmt: skip
from ...errors import DTypeError

__all__ = [
    "NARROW", "Expr", "Number", "Scalars", "compute_dtype", "keeps", "narrow", "real_dtype", "s",
]  # fmt: skip

Number: TypeAlias = bool | int | float | complex
Operand: TypeAlias = "Expr | Number"
# The name of an input, the value of a constant, the stored dtype of a cast.
Value: TypeAlias = str | Number | DType | None


def compute_dtype(dtype: DType) -> DType:
    """Return the dtype in which elements of `dtype` are computed: float32 for 16-bit floats."""
    return float32 if dtype is float16 or dtype is bfloat16 else dtype


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of a complex dtype's real part; any other dtype unchanged."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


class Expr:
    """An immutable node of a symbolic scalar expression: an input, constant or function.

    Attributes:
        op: ``"input"``, ``"const"``, ``"cast"``, an infix operator such as ``"+"``, or a function's
            name.
        dtype: dtype of the value.
        args: operand nodes.
        value: name of an input, value of a constant, stored dtype of a cast; NARROW for an operator
            or function whose error must only be small beside that of rounding to 16 bits.
    """

    __slots__ = ("op", "dtype", "args", "value")
    __hash__ = object.__hash__

    def __init__(
        self, op: str, dtype: DType, args: tuple[Expr, ...] = (), value: Value = None
    ) -> None:
        self.op = op
        self.dtype = dtype
        self.args = args
        self.value = value

    def __repr__(self) -> str:
        if self.op in ("input", "const"):
            return f"{self.value}"
        return f"{self.op}({', '.join(map(repr, self.args))})"

    def __bool__(self) -> bool:
        raise DTypeError("scalar rule: a symbolic scalar has no truth value; use s.where")

    def __add__(self, other: Expr | Number) -> Expr:
        return _arithmetic("+", self, other)

    def __radd__(self, other: Expr | Number) -> Expr:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Expr | Number) -> Expr:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: Expr | Number) -> Expr:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Expr | Number) -> Expr:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: Expr | Number) -> Expr:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: Expr | Number) -> Expr:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: Expr | Number) -> Expr:
        return _arithmetic("/", other, self)

    def __neg__(self) -> Expr:
        return Expr("neg", self.dtype, (self,))

    def __lt__(self, other: Expr | Number) -> Expr:
        return _comparison("<", self, other)

    def __le__(self, other: Expr | Number) -> Expr:
        return _comparison("<=", self, other)

    def __gt__(self, other: Expr | Number) -> Expr:
        return _comparison(">", self, other)

    def __ge__(self, other: Expr | Number) -> Expr:
        return _comparison(">=", self, other)

    def __eq__(self, other: Expr | Number) -> Expr:  # type: ignore[override]
        return _comparison("==", self, other)

    def __ne__(self, other: Expr | Number) -> Expr:  # type: ignore[override]
        return _comparison("!=", self, other)

    def __and__(self, other: Expr | Number) -> Expr:
        return _bitwise("&", self, other)

    def __or__(self, other: Expr | Number) -> Expr:
        return _bitwise("|", self, other)

    def __xor__(self, other: Expr | Number) -> Expr:
        return _bitwise("^", self, other)

    def __invert__(self) -> Expr:
        """Return the expression node for `~x`: logical not for bool, bitwise for integers.

        Raises:
            DTypeError: `x` is neither bool nor an integer.
        """
        if self.dtype.kind not in "biu":
            raise DTypeError(f"scalar rule: ~ of {self.dtype.name}; wanted bool or an integer")
        return Expr("not" if self.dtype is bool_ else "~", self.dtype, (self,))


def constant(value: Number, dtype: DType) -> Expr:
    """Return a constant node for a Python number, converted to the Python type that fits the dtype.

    For the dtypes float16 and bfloat16 the number is rounded to them, as in a tensor that holds it,
    and the node has dtype float32 (`compute_dtype`). A number that is computed from sizes stays
    symbolic.
    """
    stored, dtype = dtype, compute_dtype(dtype)
    if is_symbolic(value) and (dtype.is_floating or dtype.is_integer):
        kept = as_float(value) if dtype.is_floating else as_integer(value)
        made = Expr("const", dtype, (), kept)
        return made if stored is dtype else Expr("cast", dtype, (made,), stored)
    if stored is not dtype:
        with np.errstate(over="ignore"):
            value = float(np.float64(value).astype(stored.np))  # type: ignore[arg-type]
    if dtype is bool_:
        value = bool(value)
    elif dtype.is_integer:
        value = int(value)  # type: ignore[arg-type]
    elif dtype.is_floating:
        value = float(value)  # type: ignore[arg-type]
    else:
        value = complex(value)
    return Expr("const", dtype, (), value)


def _is_number(x: Expr) -> bool:
    """Return whether a symbolic scalar is a constant other than NaN."""
    return x.op == "const" and x.value == x.value


def _pair(what: str, a: Operand, b: Operand) -> tuple[Expr, Expr]:
    """Convert the two operands of operator `what` to symbolic scalars of the same dtype.

    A Python number becomes a constant of the other operand's dtype.

    Raises:
        DTypeError: the operands are symbolic scalars of different dtypes.
    """
    if not isinstance(a, Expr):
        assert isinstance(b, Expr)
        a = constant(a, b.dtype)
    elif not isinstance(b, Expr):
        b = constant(b, a.dtype)
    if a.dtype is not b.dtype:
        raise DTypeError(
            f"scalar rule: {what} of {a.dtype.name} and {b.dtype.name}; "
            "cast one to the other's dtype"
        )
    return a, b


def _arithmetic(op: str, a: Operand, b: Operand) -> Expr:
    a, b = _pair(op, a, b)
    return Expr(op, a.dtype, (a, b))


def _comparison(op: str, a: Operand, b: Operand) -> Expr:
    return Expr(op, bool_, _pair(op, a, b))


def _bitwise(op: str, a: Operand, b: Operand) -> Expr:
    a, b = _pair(op, a, b)
    if a.dtype.kind not in "biu":
        raise DTypeError(f"scalar rule: {op} of {a.dtype.name}; wanted bool or integers")
    return Expr(op, a.dtype, (a, b))


def _unary(name: str) -> Callable[[Scalars, Expr], Expr]:
    """Return a new method for `Scalars` that builds the expression `name` of one scalar."""

    def function(self: Scalars, x: Expr) -> Expr:
        return Expr(name, x.dtype, (x,))

    function.__name__ = name
    function.__doc__ = f"Return the expression `{name}` of a scalar; it has the scalar's dtype."
    return function


def _binary(name: str) -> Callable[[Scalars, Operand, Operand], Expr]:
    """Return a new method for `Scalars` that builds the expression `name` of two scalars."""

    def function(self: Scalars, x: Operand, y: Operand) -> Expr:
        x, y = _pair(name, x, y)
        return Expr(name, x.dtype, (x, y))

    function.__name__ = name
    function.__doc__ = (
        f"Return the expression `{name}` of two scalars of one dtype, which the result also has."
    )
    return function


# `Expr.value` of float32 operators and functions whose result is rounded to 16 bits.
NARROW = "narrow"
# Functions of which a small error of an operand makes a small error of the value.
_SMOOTH = frozenset({
    "+", "-", "*", "/", "neg", "abs", "exp", "tanh", "log", "log1p", "sqrt", "rsqrt",
})  # fmt: skip


def narrow(e: Expr) -> Expr:
    """Return a float32 expression whose value the caller rounds to float16 or bfloat16.

    Its operators and functions are marked `NARROW`, so that a dialect may compute those in its
    `narrow` by faster instructions. Operands of comparisons, of functions that round to integers,
    and of other functions that could make a great difference of a small error are not marked.
    """
    if e.dtype is not float32:
        return e
    if e.op == "where":
        condition, *branches = e.args
        return Expr("where", e.dtype, (condition, *map(narrow, branches)))
    if e.op not in _SMOOTH:
        return e
    return Expr(e.op, e.dtype, tuple([narrow(a) for a in e.args]), NARROW)


def keeps(e: Expr, dtype: DType) -> bool:
    """Return whether a value is certain to be one of `dtype` if all its inputs are.

    That is so if the expression only selects among inputs, or changes their signs.
    """
    if e.op == "const":
        value = cast("float", e.value)
        return float(dtype.np.type(value)) == value
    if e.op == "where":
        return all(keeps(a, dtype) for a in e.args[1:])
    return e.op == "input" or (e.op in ("neg", "abs") and keeps(e.args[0], dtype))


class Scalars:
    """The mathematical functions, such as `s.exp(x)`, that an op's `scalar` rule may call.

    Each builds an expression. Most take floating and, where mathematics defines them, complex
    scalars; `round` rounds halves to even. For integers there are `floor_divide`, `remainder` (with
    the sign of the divisor), `fmod`, `trunc_divide`, `pow` and shifts.
    """

    inf = float("inf")
    nan = float("nan")

    exp = _unary("exp")
    exp2 = _unary("exp2")
    expm1 = _unary("expm1")
    log = _unary("log")
    log1p = _unary("log1p")
    log2 = _unary("log2")
    log10 = _unary("log10")
    sqrt = _unary("sqrt")
    rsqrt = _unary("rsqrt")
    cbrt = _unary("cbrt")
    sin = _unary("sin")
    cos = _unary("cos")
    tan = _unary("tan")
    asin = _unary("asin")
    acos = _unary("acos")
    atan = _unary("atan")
    sinh = _unary("sinh")
    cosh = _unary("cosh")
    tanh = _unary("tanh")
    asinh = _unary("asinh")
    acosh = _unary("acosh")
    atanh = _unary("atanh")
    erf = _unary("erf")
    erfc = _unary("erfc")
    lgamma = _unary("lgamma")
    floor = _unary("floor")
    ceil = _unary("ceil")
    trunc = _unary("trunc")
    round = _unary("round")
    conj = _unary("conj")
    pow = _binary("pow")
    atan2 = _binary("atan2")
    hypot = _binary("hypot")
    fmod = _binary("fmod")
    remainder = _binary("remainder")
    floor_divide = _binary("floor_divide")
    trunc_divide = _binary("trunc_divide")
    copysign = _binary("copysign")
    nextafter = _binary("nextafter")
    shift_left = _binary("shift_left")
    shift_right = _binary("shift_right")

    def abs(self, x: Expr) -> Expr:
        """Return the absolute value of a scalar, or the (real) magnitude of a complex one."""
        return Expr("abs", real_dtype(x.dtype), (x,))

    def sign(self, x: Expr) -> Expr:
        """Return the sign of a scalar: -1, 0 or 1; NaN for NaN."""
        if x.dtype.is_integer:
            return Expr("sign", x.dtype, (x,))
        signed = self.where(x > 0, 1, self.where(x < 0, self.const(-1, x.dtype), x))
        return signed

    def real(self, x: Expr) -> Expr:
        """Return the real part of a scalar; a scalar that is not complex is returned unchanged."""
        return Expr("real", real_dtype(x.dtype), (x,)) if x.dtype.is_complex else x

    def imag(self, x: Expr) -> Expr:
        """Return the imaginary part of a scalar; 0 for a scalar that is not complex."""
        return (
            Expr("imag", real_dtype(x.dtype), (x,))
            if x.dtype.is_complex
            else self.const(0, x.dtype)
        )

    def complex(self, re: Expr, im: Expr) -> Expr:
        """Return the complex scalar with a given real and imaginary part."""
        re, im = _pair("complex", re, im)
        return Expr("make", complex64 if re.dtype is float32 else complex128, (re, im))

    def minimum(self, x: Expr | Number, y: Expr | Number) -> Expr:
        """Return the smaller of two scalars; NaN if either is NaN."""
        x, y = _pair("minimum", x, y)
        if _is_number(y):
            return self.where(x >= y, y, x)
        less = x < y
        return self.where(less | (x != x) if x.dtype.is_floating else less, x, y)

    def maximum(self, x: Expr | Number, y: Expr | Number) -> Expr:
        """Return the greater of two scalars; NaN if either is NaN."""
        x, y = _pair("maximum", x, y)
        if _is_number(y):
            return self.where(x <= y, y, x)
        greater = x > y
        return self.where(greater | (x != x) if x.dtype.is_floating else greater, x, y)

    def isnan(self, x: Expr) -> Expr:
        """Return whether a scalar is NaN, as a bool expression."""
        if x.dtype.kind in "biu":
            return self.const(False, bool_)
        return x != x

    def isinf(self, x: Expr) -> Expr:
        """Return whether a scalar, or a part of a complex one, is infinite: a bool expression."""
        if x.dtype.is_complex:
            return self.isinf(self.real(x)) | self.isinf(self.imag(x))
        if not x.dtype.is_floating:
            return self.const(False, bool_)
        return self.abs(x) == self.inf

    def isfinite(self, x: Expr) -> Expr:
        """Return whether a scalar is neither NaN nor infinite, as a bool expression."""
        if x.dtype.is_complex:
            return self.isfinite(self.real(x)) & self.isfinite(self.imag(x))
        if not x.dtype.is_floating:
            return self.const(True, bool_)
        return self.abs(x) < self.inf

    def where(self, condition: Expr, x: Operand, y: Operand) -> Expr:
        """Return an expression that equals `x` where a condition holds, else `y`.

        The kernel computes `x` and `y` in any case and then selects one value.
        """
        x, y = _pair("where", x, y)
        return Expr("where", x.dtype, (self.truth(condition), x, y))

    def truth(self, x: Expr) -> Expr:
        """Return the bool expression `x != 0`; a bool scalar is returned unchanged."""
        return x if x.dtype is bool_ else x != 0

    def const(self, value: Number, dtype: DType) -> Expr:
        """Return a symbolic scalar for a Python number, of the given dtype."""
        return constant(value, dtype)

    def cast(self, x: Expr | Number, dtype: DType) -> Expr:
        """Return a scalar converted to another dtype.

        Conversion to float16 or bfloat16 rounds the value to 16 bits but keeps it as float32.
        """
        if not isinstance(x, Expr):
            return constant(x, dtype)
        target = compute_dtype(dtype)
        if target is not dtype:
            return Expr("cast", target, (self.cast(x, target),), dtype)
        if x.dtype is target:
            return x
        if target is bool_:
            return x != 0
        if x.dtype.is_complex and not target.is_complex:
            return self.cast(self.real(x), target)
        if target.is_complex:
            re, im = self.real(x), self.imag(x)
            part = real_dtype(target)
            return Expr("make", target, (self.cast(re, part), self.cast(im, part)))
        return Expr("cast", target, (x,), target)


s = Scalars()
