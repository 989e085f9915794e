"""The graph: flat, ordered, typed, closed."""
