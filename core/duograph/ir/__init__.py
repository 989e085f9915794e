"""Graphs (the intermediate representation): nodes, types, printed form, builder and verifier.

The front end and the tape build graphs, `passes` rewrites them, and `execution` runs them. The ops
of control flow are also defined here.

Terms of this package:

- A *value* of a graph is a parameter or a result of a node. Its number, the *value id*, indexes the
  graph's list of types.
- A *symbolic* tensor or number stands for a value while a graph is built; it has a type and no
  data.
- A *host value* is a value that is a Python number or another Python object, not a tensor.
- A *sub-graph* is a graph in an attribute of a node, such as a branch or a loop body. It is
  *closed*: it reads only its own parameters, which the node passes.
- A *region* is a node whose sub-graph one generated kernel computes.
"""

from . import text as text  # installs the printer behind `str(graph)`
