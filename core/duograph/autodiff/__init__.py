"""Differentiation: one bprop rule per op, used by the eager tape and by compiled graphs alike."""
