"""Evaluates Python source into a graph: expressions, statements, calls, branches and loops.

`compiler.evaluate` starts an evaluation. The user's objects must never be changed during an
evaluation.

To support a new kind of syntax, write a function `(ev, frame, node)` in the module of its group
(`expressions`, `operators`, `statements`, `loop_statements`, `exceptions`, `patterns`), register it
with `@dispatch.syntax(ast.Kind)`, and add programs to `tests/frontend`. The function of an
expression returns the value, that of a statement returns a `Flow`. If code depends on a condition,
`operators.condition` evaluates the condition to a Python bool, or to a bool of the graph, for which
`branches.select` traces both branches; `blocks.run_block` traces nested statements. `evaluator`
imports all modules that register functions.

Modules import each other in this order, without cycles: spans, dispatch; host, aliasing, variables;
truth, join, branches; outside, identity; blocks, graph_loops, recursion, functions, native;
iteration, containers, attributes, operators, targets; the statements, gradients, custom_bprops,
cells, library_calls, calls, builtin_functions; evaluator.
"""
