"""Compiled functions: `jit`, its options, its cache of programs, and `explain`.

The front end evaluates source into graphs, `execution` lowers them; this package decides when to
compile and which program serves a call. Users call it; `nn.Cell` calls `graph_call`.
"""

from __future__ import annotations

from .decorator import jit, ms_function
from .function import JitFunction, created_functions, jit_stats
from .modes import compile_cell, graph_call, show_cell
from .options import JitConfig, jit_class, lazy_inline, ms_class, mutable, no_inline

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
    "show_cell",
]
