"""The state of one evaluation: what it has read and written, and how a branch is undone.

`state.evaluation.Evaluation` holds one object of each class in this package; the modules of
`frontend.evaluation` read and change them. Nothing here evaluates source.
"""
