"""Compiled functions: `jit`, its options, its cache of programs, and `explain`.

The front end evaluates source into graphs, and `execution` lowers the graphs. This package decides
when to compile and which program serves a call. Users call it; `nn.Cell` calls `graph_call`.

Terms of this package:

- A *program* (`CompiledProgram`) is a function compiled for one *signature*: the types of the
  Tensor arguments and the values of the others, as they stand in a cache key (`JitKey`).
- A *state tensor* is a tensor, such as a Parameter, that a program reads and that is not an
  argument.
- A *capture* is a value from outside the function that its program contains as a constant. The
  program's *guard* compares the captures with the present values before each call. If one has
  changed, the policy `stale_captures` decides: compile again, warn, raise, or use the old value.
- A *handle* owns a device buffer, the memory of one tensor; only the backend looks inside.
- A function that cannot be compiled runs *line by line*, as ordinary Python.
"""

from __future__ import annotations

from .decorator import jit, ms_function
from .function import JitFunction
from .modes import compile_cell, explain_cell, graph_call, show_cell
from .options import JitConfig, jit_class, lazy_inline, ms_class, mutable, no_inline
from .statistics import created_functions, jit_stats

__all__ = [
    "JitFunction",
    "created_functions",
    "jit",
    "ms_function",
    "jit_stats",
    "JitConfig",
    "jit_class",
    "ms_class",
    "mutable",
    "lazy_inline",
    "no_inline",
    "compile_cell",
    "graph_call",
    "explain_cell",
    "show_cell",
]
