"""The folder that `compat.alias` adds to the PYTHONPATH of child processes.

It holds only `sitecustomize`, a module that Python imports automatically when it starts. No other
module may import this package.
"""
