"""Code generation for languages of the C family.

Single ops: `trace_scalar` runs an op's `scalar` slot on symbolic scalars, and `print_function`
prints the expression as a function of a `Dialect`, whose `prelude()` has the mathematical
functions.

Fused regions: `region_plan` derives a loop nest from the graph of a region, `scheduling` (with
`row_schedule` and `column_schedule`) turns it into a `LoopProgram` for a target, and `loop_printer`
prints that in any dialect.

Backends use this package; it knows none of them and runs no compiler.
"""

from .body_scalar import run_body
from .dialect import C, Dialect
from .expression import Expr, Scalars, compute_dtype, s
from .printer import print_expression, print_function, trace_scalar

__all__ = [
    "C", "Dialect", "Expr", "Scalars", "compute_dtype", "print_expression", "print_function",
    "run_body", "s", "trace_scalar",
]  # fmt: skip
