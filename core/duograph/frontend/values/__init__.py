"""The kinds of value that exist only during an evaluation, and operations on them.

Used by `frontend.evaluation`. Nothing here evaluates source or appends nodes to a graph.
"""
