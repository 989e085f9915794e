"""Running ops and graphs: prepared calls, lowering for a backend, the straight-line executor."""
