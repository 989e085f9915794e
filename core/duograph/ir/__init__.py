"""The graph: flat, ordered, typed, closed."""

from . import text as text  # installs the printer behind `str(graph)`
