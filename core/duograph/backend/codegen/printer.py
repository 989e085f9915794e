"""Generates source code of functions in a dialect of C from scalar expressions.

`loop_printer` and backends that generate kernels of single ops call this module. An example of an
expression and its function:

```
    where(x > 0, x, alpha * expm1(x))        DG_FN f32 elu_f32_at(f32 x, f32 alpha) {
                                    ->           const f32 t0 = alpha * dg_expm1_f32(x);
                                                 return (x > 0.0f) ? x : t0;
                                             }
```

A value that is used more than once is computed into a variable, and so is a branch of a selection
that calls a function. The module decides nothing about loops or memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import cast

from ...dims import is_symbolic
from ...dtype import DType, bfloat16, bool_, float16, float32, float64, int64, uint32, uint64
from ...errors import DTypeError
from .dialect import SUFFIX, Dialect
from .expression import NARROW, Expr, compute_dtype, narrow, s

__all__ = ["is_heavy", "print_expression", "print_function", "trace_scalar"]

# Infix operators; an operand that is one gets parentheses.
_INFIX = {"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^"}

_CHEAP = _INFIX | {
    "input",
    "const",
    "cast",
    "where",
    "neg",
    "abs",
    "sqrt",
    "rsqrt",
    "copysign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "not",
    "~",
    "sign",
}


def trace_scalar(
    rule: Callable[..., Expr],
    inputs: Sequence[tuple[str, DType]],
    attributes: Mapping[str, object],
    result: DType,
) -> Expr:
    """Return the expression that an op's `scalar` rule computes for operands of given dtypes.

    Args:
        rule: the rule, a function of (`Scalars`, operands, attributes).
        inputs: name and stored dtype of each operand.
        attributes: Python values, or `Expr` for those known only at run time.
        result: stored dtype of the result. The expression is cast to `compute_dtype(result)`.
    """
    operands = [Expr("input", compute_dtype(d), (), name) for name, d in inputs]
    real = compute_dtype(result)
    value = s.cast(rule(s, *operands, **attributes), real)
    return value if real is result else narrow(value)


class _Printer:
    """Generates C-like source of a scalar expression; subexpressions used twice get variables.

    Variables are called `prefix` plus a number. `lines` holds their definitions in order.
    """

    def __init__(self, dialect: Dialect, prefix: str = "t") -> None:
        self.dialect = dialect
        self.prefix = prefix
        self.lines: list[str] = []
        self.names: dict[Hashable, str] = {}
        self.keys: dict[int, Hashable] = {}
        self.uses: dict[Hashable, int] = {}

    def key(self, e: Expr) -> Hashable:
        """Return a dict key for an expression; structurally equal expressions have equal keys."""
        found = self.keys.get(id(e))
        if found is None:
            value = repr(e.value) if e.op == "const" else e.value
            found = (e.op, e.dtype, value, tuple(self.key(a) for a in e.args))
            self.keys[id(e)] = found
        return found

    def count(self, e: Expr) -> None:
        """Add to the counts in `uses` how often an expression uses each of its subexpressions.

        The expression itself is counted once.
        """
        key = self.key(e)
        self.uses[key] = self.uses.get(key, 0) + 1
        if self.uses[key] == 1:
            for a in e.args:
                self.count(a)

    def text(self, e: Expr) -> str:
        """Return the source of an expression, or the name of the variable that already holds it."""
        if e.op == "input":
            return str(e.value)
        if e.op == "const":
            return self.constant(e)
        key = self.key(e)
        name = self.names.get(key)
        if name is not None:
            return name
        text = self.operation(e)
        return self.line(e, text) if self.uses[key] > 1 else text

    def inner(self, e: Expr) -> str:
        """Return the source of an expression for use as an operand, in parentheses if needed."""
        text = self.text(e)
        if e.op == "const":
            return f"({text})" if text.startswith("-") else text
        if self.key(e) in self.names or e.op == "input":
            return text
        weak = e.op in _INFIX or e.op in ("where", "neg", "not", "~")
        return f"({text})" if weak and not _closed(text) else text

    def branch(self, e: Expr) -> str:
        """Return the source of an expression as one branch of a ``?:`` selection.

        A branch that calls a function is computed into a variable before the selection. The
        compiler then sees no jump around the call, which would prevent vectorisation of the loop.
        """
        if e.op not in ("input", "const") and self.key(e) not in self.names and _calls(e):
            return self.line(e, self.operation(e))
        return self.inner(e)

    def line(self, e: Expr, text: str) -> str:
        """Append a line that defines a variable as `text`, the source of `e`; return its name."""
        name = f"{self.prefix}{len(self.names)}"
        self.names[self.key(e)] = name
        self.lines.append(f"const {SUFFIX[e.dtype]} {name} = {text};")
        return name

    def constant(self, e: Expr) -> str:
        """Return the source literal of a constant scalar."""
        value, dtype = cast("complex", e.value), e.dtype
        if dtype is bool_:
            return "1" if value else "0"
        if is_symbolic(value):
            return f"(({SUFFIX[dtype]}){value})"
        if dtype.is_integer:
            if dtype is int64:
                if value == -(2**63):
                    return f"(-{2**63 - 1}{self.dialect.int64_suffix} - 1)"
                return f"{value}{self.dialect.int64_suffix}"
            if dtype is uint64:
                return f"{value}{self.dialect.uint64_suffix}"
            if dtype is uint32:
                return f"{value}u"
            if value == -(2**31):
                return f"(-{2**31 - 1} - 1)"
            return str(value)
        if dtype.is_complex:
            part = float32 if SUFFIX[dtype] == "c64" else float64
            re, im = (self.real(v, part) for v in (value.real, value.imag))
            return f"dg_make_{SUFFIX[dtype]}({re}, {im})"
        return self.real(cast("float", value), dtype)

    def real(self, value: float, dtype: DType) -> str:
        """Return the source literal of a real number, as a float32 or float64 constant."""
        bits32 = dtype is float32
        if math.isnan(value):
            return "DG_NAN_F32" if bits32 else "(f64)DG_NAN_F32"
        if math.isinf(value):
            inf = "DG_INF_F32" if bits32 else "(f64)DG_INF_F32"
            return inf if value > 0 else f"-{inf}"
        if bits32:
            rounded = float32.np.type(value)
            if rounded in (float("inf"), float("-inf")):
                return self.real(float(rounded), dtype)
            text = str(rounded) if abs(value) < 1e6 else repr(float(rounded))
        else:
            text = repr(value)
        if "e" not in text and "." not in text:
            text += ".0"
        return text + ("f" if bits32 else "")

    def operation(self, e: Expr) -> str:
        """Return the source text of an expression that is an operator or a function call."""
        op, dtype = e.op, e.dtype
        if op == "cast":
            return self.cast(e)
        if op == "where":
            c, x, y = e.args
            if dtype.is_complex:
                return f"dg_select_{SUFFIX[dtype]}({self.text(c)}, {self.text(x)}, {self.text(y)})"
            return f"{self.inner(c)} ? {self.branch(x)} : {self.branch(y)}"
        if e.value is NARROW and op in self.dialect.narrow:
            return f"dg_{'divide' if op == '/' else op}_narrow_f32({self.arguments(e)})"
        operand = e.args[0].dtype
        if operand.is_complex and op in ("+", "-", "*", "/", "==", "!=", "neg"):
            name = {"+": "add", "-": "sub", "*": "mul", "/": "div", "==": "equal", "!=": "equal"}
            call = f"dg_{name.get(op, op)}_{SUFFIX[operand]}({self.arguments(e)})"
            return f"!{call}" if op == "!=" else call
        if op in _INFIX:
            return self.infix(e)
        if op == "neg":
            if dtype.is_integer:
                return f"({SUFFIX[dtype]})(0 - ({_unsigned(dtype)}){self.inner(e.args[0])})"
            return f"-{self.inner(e.args[0])}"
        if op == "not":
            return f"!{self.inner(e.args[0])}"
        if op == "~":
            return f"({SUFFIX[dtype]})~{self.inner(e.args[0])}"
        if op in ("make",):
            return f"dg_make_{SUFFIX[dtype]}({self.arguments(e)})"
        return f"dg_{op}_{SUFFIX[operand]}({self.arguments(e)})"

    def arguments(self, e: Expr) -> str:
        """Return the source of a call's arguments, separated by commas."""
        return ", ".join(self.text(a) for a in e.args)

    def infix(self, e: Expr) -> str:
        """Return the source of a binary operator and its operands.

        Signed integers are computed as unsigned, so that they wrap instead of overflowing.
        """
        op, dtype = e.op, e.dtype
        x, y = (self.inner(a) for a in e.args)
        if op in ("+", "-", "*") and dtype.kind in "iu":
            unsigned = _unsigned(dtype)
            if unsigned == SUFFIX[dtype]:
                return f"{x} {op} {y}"
            return f"({SUFFIX[dtype]})(({unsigned}){x} {op} ({unsigned}){y})"
        if op == "/" and dtype.kind in "biu":
            raise DTypeError(f"scalar rule: / of {dtype.name}; use floor_divide or trunc_divide")
        if op in ("+", "*") and dtype is bool_:
            return f"{x} {'|' if op == '+' else '&'} {y}"
        return f"{x} {op} {y}"

    def cast(self, e: Expr) -> str:
        """Return the source of the dtype conversion `e`.

        A conversion from floats to integers calls a function of the prelude, because C leaves the
        result undefined for values out of the integers' range.
        """
        (x,) = e.args
        if e.value is float16 or e.value is bfloat16:
            name = SUFFIX[e.value]
            return f"dg_from_{name}(dg_to_{name}({self.text(x)}))"
        target, source = e.dtype, x.dtype
        if source.is_floating and target.is_integer:
            s_, t_ = SUFFIX[source], SUFFIX[target]
            if target.itemsize < 4:
                return f"({t_})dg_{s_}_to_i32({self.text(x)})"
            if target is uint32:
                return f"(u32)dg_{s_}_to_i64({self.text(x)})"
            return f"dg_{s_}_to_{t_}({self.text(x)})"
        return f"({SUFFIX[target]}){self.inner(x)}"


def _calls(e: Expr) -> bool:
    """Return whether the source generated for an expression calls a function."""
    simple = _INFIX | {"input", "const", "cast", "where", "neg", "not", "~", "abs", "make"}
    return e.op not in simple or any(_calls(a) for a in e.args)


def _closed(text: str) -> bool:
    """Return whether one pair of matching parentheses encloses the whole source text."""
    if not text.startswith("("):
        return False
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def _unsigned(dtype: DType) -> str:
    """Return the unsigned C type, "u32" or "u64", in which integers of `dtype` wrap on overflow."""
    return "u64" if dtype.itemsize == 8 else "u32"


def is_heavy(e: Expr) -> bool:
    """Return whether a scalar expression costs more to compute than plain arithmetic.

    It does if it calls a function such as exp. For such a *heavy* expression, fewer elements
    suffice to make another thread worthwhile, and a kernel stores values rather than computing them
    twice.
    """
    return e.op not in _CHEAP or any(is_heavy(a) for a in e.args)


def print_expression(dialect: Dialect, e: Expr, prefix: str = "t") -> tuple[list[str], str]:
    """Return (lines that define variables for repeated subexpressions, source of the expression).

    The names of the variables begin with `prefix`.
    """
    printer = _Printer(dialect, prefix)
    printer.count(e)
    text = printer.text(e)
    return printer.lines, text


def print_function(
    dialect: Dialect, name: str, parameters: Sequence[tuple[str, DType]], e: Expr
) -> str:
    """Return the source of an inlined function `name` that computes a scalar expression.

    `parameters` are the names and stored dtypes of its inputs.
    """
    lines, text = print_expression(dialect, e)
    head = ", ".join(f"{SUFFIX[compute_dtype(d)]} {p}" for p, d in parameters)
    body = "".join(f"    {line}\n" for line in [*lines, f"return {text};"])
    return f"{dialect.function} {SUFFIX[e.dtype]} {name}({head}) {{\n{body}}}\n"
