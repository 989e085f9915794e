"""The front end: evaluates the Python source of a function into a graph.

Values known at compile time are computed by Python immediately; operations on tensors become graph
nodes. An `if` or a loop on a known value is decided or unrolled; on a tensor it becomes a `switch`
or a `while_loop`. `compiler.evaluate` is the only caller.

Modules import each other in this order only:

- `source`, `diagnostics`, `libraries`: syntax trees, error messages with source lines, and whose
  code a function is.
- `state`: what an evaluation has read and written, and how a branch is undone.
- `values`: kinds of value that exist only during an evaluation.
- `evaluation`: Python itself. `dispatch` holds the table from syntax node class to function, which
  the modules after it fill: expressions, statements, calls, built-in functions.

Terms of this package:

- To *evaluate* or *trace* source is to compute what is known, at *compile time*, and to append
  graph nodes for the rest, which is computed at *run time*: each time the finished graph runs.
  *Evaluated code* is the source that is evaluated in this way.
- A *graph value* (graph tensor, graph number, graph bool) is known only at run time. A *graph
  condition* is a graph bool on which a branch or a loop depends.
- An object is *from outside* the function if evaluated code did not make it: a global, an
  attribute of `self`, an argument. Compiling must not change such objects.
- A *location* is what an assignment or a method can change: a variable, an attribute, a dict item,
  the content of a list, dict or set, the value of a tensor.
- A *capture* is a value from outside that the graph contains as a constant. A *guard* compares the
  captures with the present values before each call.
- A *host call* is a graph node that runs Python code at run time.
- The *journal* is the undo log: the earlier content of each location that an unfinished branch has
  written.
- `jit_syntax_level` is STRICT or LAX. STRICT refuses code that only Python can run. LAX makes it a
  host call or, where that is impossible, runs the whole function *line by line*, uncompiled.
"""
