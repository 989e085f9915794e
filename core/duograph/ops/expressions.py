"""Element-wise operators from an expression in text, for `ops.Custom`.

`expression_function` reads the expression with Python's parser, allows arithmetic and known
functions only, and never evaluates anything else. The operator calls the framework's ops, so that
every backend can compute it, fuse it and differentiate it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentValueError
from ..op import OPS

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["expression_function"]

# Functions of an expression: ops of these names. `where(c, x, y)` is the op `select`.
FUNCTIONS = frozenset({
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "floor", "fmod", "isfinite", "isinf", "isnan", "log", "log10",
    "log1p", "log2", "maximum", "minimum", "pow", "relu", "round", "rsqrt", "sigmoid", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "where",
})  # fmt: skip
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Load,
    ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub,
    ast.UAdd, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


@functools.lru_cache(maxsize=256)
def expression_function(text: str) -> Callable[..., Tensor]:
    """Return the function of Tensors that computes an expression, element by element.

    Its parameters are the names in the expression, in the order of their first occurrence.

    Raises:
        ArgumentValueError: the text is not an expression, or has other parts than numbers, names,
            arithmetic, comparisons, `a if c else b` and known functions.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArgumentValueError(f"Custom: got the expression {text!r}: {error}") from None
    names = _operands(tree, text)
    if not names:
        raise ArgumentValueError(f"Custom: got the expression {text!r} without a name of an input")
    return _function(ast.fix_missing_locations(_Choices().visit(tree)), names)


def _operands(tree: ast.Expression, text: str) -> list[str]:
    """Return the names of an expression's inputs, in the order of their first occurrence.

    Raises ArgumentValueError, which shows `text`, if a part of the expression is not allowed.
    """
    names: dict[tuple[int, int], str] = {}
    functions = set()
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise _refused(text, f"{type(node).__name__} is not allowed")
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise _refused(text, f"{node.value!r} is no number")
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            raise _refused(text, "a chain of comparisons is not allowed")
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
                raise _refused(text, f"{ast.unparse(node.func)} is no known function")
            if node.keywords:
                raise _refused(text, "keywords are not allowed")
            functions.add(id(node.func))
        if isinstance(node, ast.Name):
            if id(node) not in functions and node.id in FUNCTIONS:
                raise _refused(text, f"{node.id} is a function, not an input")
            names[node.lineno, node.col_offset] = "" if id(node) in functions else node.id
    return [*dict.fromkeys(name for _, name in sorted(names.items()) if name)]


def _refused(text: str, why: str) -> ArgumentValueError:
    return ArgumentValueError(
        f"Custom: got the expression {text!r}: {why}; wanted numbers, names, + - * / // % **, "
        f"comparisons, `a if c else b`, and the functions {', '.join(sorted(FUNCTIONS))}"
    )


class _Choices(ast.NodeTransformer):
    """Replaces ``a if c else b`` by ``where(c, a, b)``, since the condition is a Tensor."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        where = ast.Name("where", ast.Load())
        return ast.Call(where, [node.test, node.body, node.orelse], [])


def _function(tree: ast.Expression, names: list[str]) -> Callable[..., Tensor]:
    """Return the Python function of Tensors that computes an expression.

    The function is made by `exec`, so `_operands` must have accepted the expression. `names` become
    the function's parameters, in that order.
    """
    found = {name: OPS["select" if name == "where" else name] for name in FUNCTIONS}
    arguments = ", ".join(names)
    scope: dict[str, Any] = {**found, "__builtins__": {}}
    exec(f"def expression({arguments}):\n    return {ast.unparse(tree)}", scope)
    function: Callable[..., Tensor] = scope["expression"]
    function.__module__ = __name__
    return function
