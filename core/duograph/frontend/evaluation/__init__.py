"""The evaluation of Python source into a graph: expressions, statements, calls, branches, loops.

Handlers register in the tables of `dispatch` when their module is imported; `evaluator` imports all
of them. Modules import each other in the order that `docs/architecture.md` lists, without cycles.
"""
