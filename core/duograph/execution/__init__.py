"""Runs ops and graphs on a backend: eager calls, lowering, memory planning, the step executor.

`lower` turns a graph into an executable; `eager` serves single op calls. Nothing here reads Python
source or derives gradients.
"""
