"""Makes NumPy's elementwise functions from rows of tables: an op, a summary and an example.

`elementwise`, `trigonometry` and `logic` have the rows. A function converts its operands, calls the
op, and casts the result where `dtype` is given; it must not read the value of a Tensor.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dtype import DTypeLike
from ..tensor import Tensor
from .operands import TensorLike, as_floating, pair, tensor_of, with_dtype

__all__ = ["binary", "floating", "named", "unary", "unary_of_a"]

_ARGUMENT = "Tensor, number, (nested) sequence or NumPy array."
_TEMPLATE = """{summary}

    Args:
{arguments}
        dtype: dtype to which the result is converted; None means no conversion.

    Returns:
        Tensor of {shape}.

    Examples:
        >>> import duograph.numpy as mnp
        >>> print(mnp.{name}({example}))
        {printed}
    """


def named(
    call: Callable[..., Tensor], name: str, summary: str, example: str, printed: str
) -> Callable[..., Tensor]:
    """Set the name and docstring of a function made from a row of a table; return the function."""
    operands = [n for n in call.__annotations__ if n not in ("dtype", "return")]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = _TEMPLATE.format(
        summary=summary,
        arguments="\n".join(f"        {n}: {_ARGUMENT}" for n in operands),
        shape=f"the shape of `{operands[0]}`"
        if len(operands) == 1
        else "the operands' broadcast shape",
        name=name,
        example=example,
        printed=printed,
    )
    return call


def unary(
    name: str, op: Callable[..., Tensor], summary: str, example: str, printed: str
) -> Callable[..., Tensor]:
    """Return NumPy's function `name` for an elementwise op with one operand, `x`.

    `summary`, `example` and `printed` are the first line of its docstring, an argument, and the
    result that is printed for it.
    """

    def call(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
        return with_dtype(op(tensor_of(x)), dtype)

    return named(call, name, summary, example, printed)


def unary_of_a(
    name: str, op: Callable[..., Tensor], summary: str, example: str, printed: str
) -> Callable[..., Tensor]:
    """Return NumPy's function `name` as `unary` does, but with an operand called `a`."""

    def call(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
        return with_dtype(op(tensor_of(a)), dtype)

    return named(call, name, summary, example, printed)


def binary(
    name: str, op: Callable[..., Tensor], summary: str, example: str, printed: str
) -> Callable[..., Tensor]:
    """Return NumPy's function `name` for an elementwise op with two operands.

    The other arguments are those of `unary`.
    """

    def call(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
        return with_dtype(op(*pair(name, x1, x2)), dtype)

    return named(call, name, summary, example, printed)


def floating(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a function that calls `op` with integers and bools cast to float32."""
    return lambda *operands: op(*map(as_floating, operands))
