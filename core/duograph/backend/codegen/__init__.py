"""Code generation for languages of the C family: C, OpenCL C and CUDA C.

Kernels of single ops: `trace_scalar` runs an op's `scalar` rule on symbolic scalars, and
`print_function` prints the resulting expression as a function in the language that a `Dialect`
describes. `Dialect.prelude()` is the source of the mathematical functions that the generated
function calls.

Kernels of fused regions (ops compiled as one kernel): `region_plan` derives a loop nest from the
graph of a region. `scheduling`, `row_schedule` and `column_schedule` turn the loop nest into a
`LoopProgram` for one kind of device. `loop_printer` generates source from it in any dialect.

Terms of both kinds: A *row* is a run of adjacent elements along the last axis or axes. A reduction
along rows leaves one element per row; a reduction over *columns* adds whole rows to each other. A
*label* is the name under which a kernel reads an operand; an operand that is read with different
strides has several labels. Upper-case parts of names in documentation, as in ``LABEL_row``, stand
for such a name.

Backends call this package. It imports no backend and runs no compiler.
"""

from .body_scalar import run_body
from .dialect import C, Dialect
from .expression import Expr, Scalars, compute_dtype, s
from .printer import print_expression, print_function, trace_scalar

__all__ = [
    "C", "Dialect", "Expr", "Scalars", "compute_dtype", "print_expression", "print_function",
    "run_body", "s", "trace_scalar",
]  # fmt: skip
