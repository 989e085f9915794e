"""Graphs (the intermediate representation): nodes, types, printed form, builder and verifier.

The front end and the tape build graphs, `passes` rewrites them, and `execution` runs them. The ops
of control flow are defined here too.
"""

from . import text as text  # installs the printer behind `str(graph)`
