"""Graphs: their nodes and types, text form, verifier and builder, and the ops of control flow.

The front end and the tape build graphs, `passes` rewrites them, and `runtime` runs them.
"""

from . import text as text  # installs the printer behind `str(graph)`
