"""Values that exist only while source is traced into a graph, and helper functions for them.

They represent how a block of statements ended, a variable that may be unbound (`flow`), a traced
function (`functions`) and a `range` with bounds in the graph (`ranges`). `nested` traverses nested
structures; `kinds` groups Python classes by how their objects can change. `frontend.evaluation`
uses all of them. Nothing here may evaluate source.
"""
