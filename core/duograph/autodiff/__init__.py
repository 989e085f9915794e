"""Reverse-mode differentiation: one bprop rule per op serves the eager tape and compiled graphs.

`linearize` differentiates a graph; `tape` records eager calls; `transforms` has the public functions.
"""
