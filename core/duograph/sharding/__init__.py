"""Sharding: an SPMD partitioner, in the manner of GSPMD.

Compiled code is written for global tensors, and `Layout` gives the sharding of some of them.
`compiler.divide` hands the traced graph, gradients and optimiser included, to `partition`, which
propagates layouts to all values (`propagation`, along the equations of `equations`), rewrites the
graph for the local shards of one rank, and inserts collectives where a value is needed in another
layout (`redistribution`).

Along each mesh axis a value is sharded, replicated or a partial sum (DTensor: Shard, Replicate,
Partial). The *index equation* of an op is an einsum-like equation of its dimensions.

The pass runs after differentiation. Gradients are thus those of the global program, and their
layouts and reductions are decided like those of all other values: the sum over a sharded batch is
an ordinary contraction. A pass before differentiation would need a pair of collectives that are
each other's transpose at every edge of a sharded region (f and g in Megatron), and could not
partition optimisers.
"""
