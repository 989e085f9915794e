"""The CUDA backend will live here.

It is not a backend yet: it registers no entry point, so duograph neither lists nor loads it.
"""
