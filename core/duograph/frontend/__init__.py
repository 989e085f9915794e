"""From Python source to a graph: the function's syntax tree is evaluated in stages.

What is known while compiling is computed by Python there and then; what depends on a tensor becomes
nodes. An `if` or a loop on a known value is decided or unrolled, on a tensor it becomes `switch` or
`while_loop`.

- `source`: the syntax tree of a function, with its place in the file.
- `builder`: the graph builder of evaluated source: sub-graphs take what they use of the graph
  around them.
- `trace`: one evaluation: what was read from outside, what is written, and how to undo a branch.
- `join`, `branches`, `loops`: what two branches, or the turns of a loop, make of a value.
- `expressions`, `statements`, `calls`, `builtins`: Python, one function per kind of syntax.
"""
