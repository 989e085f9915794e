"""Sharding: one program for all ranks, whose tensors are divided among them.

Code sees whole tensors; `Layout` says how some of them are divided. `compiler.evaluate` hands the
traced graph, gradients and optimiser included, to `partition`, which decides the layout of every
value (`propagation`, from the index equations of `equations`), writes the shapes of one rank, and
inserts collectives where a value is needed in another layout (`redistribution`).

The pass runs after differentiation. Gradients of the whole program are thus exact by construction,
and their layouts and sums are decided like those of all other values: the sum over a divided batch
is an ordinary contraction. A pass before differentiation would need a pair of collectives that are
each other's gradient at every edge of a divided region, and would not see optimisers.
"""
