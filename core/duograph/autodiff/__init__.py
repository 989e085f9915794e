"""Reverse-mode differentiation: one gradient rule per op serves the eager tape and graphs.

`linearize` differentiates a graph; `tape` records eager calls; `transforms` has the public
functions (`grad`, `vjp`, ...). No rule may look at the values of tensors.
"""
