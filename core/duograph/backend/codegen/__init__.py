"""The kernel printer of the C family: symbolic scalars, dialects, and what prints the one in the
other.

Backends use it and it knows none of them. `trace_scalar` runs an op's `scalar` slot on symbolic
scalars, `print_function` prints the expression as a function of a dialect, whose `prelude()` holds
the mathematics.
"""

from .body_scalar import run_body
from .dialect import C, Dialect
from .expression import Expr, Scalars, compute_dtype, s
from .printer import print_expression, print_function, trace_scalar

__all__ = [
    "C", "Dialect", "Expr", "Scalars", "compute_dtype", "print_expression", "print_function", "run_body", "s",
    "trace_scalar",
]  # fmt: skip
