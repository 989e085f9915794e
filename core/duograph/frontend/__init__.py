"""The front end: evaluates the Python source of a function into a graph.

Values known at compile time are computed by Python at once; operations on tensors become graph
nodes. An `if` or a loop on a known value is decided or unrolled; on a tensor it becomes a `switch`
or a `while_loop`. `compiler.evaluate` is the only caller.

Modules import each other in this order only:

- `source`, `diagnostics`, `libraries`: syntax trees, error messages with source lines, and whose
  code a function is.
- `state`: what an evaluation has read and written, and how a branch is undone.
- `values`: kinds of value that exist only during an evaluation.
- `evaluation`: Python itself. `dispatch` holds the table from syntax node class to function, which
  the modules after it fill: expressions, statements, calls, built-in functions.
"""
