"""The folder that `compat.alias` puts on the PYTHONPATH of child processes.

It holds nothing but `sitecustomize`, which Python imports by itself when it starts. Nothing else
may import from here.
"""
