"""The CPU backend of duograph: C kernels behind cffi. This module holds its plugin hook and imports
nothing heavy.
"""

from duograph.backend.hookspecs import hookimpl


@hookimpl
def duograph_backend():
    """The backend `CPU`."""
    from duograph.backend.protocol import BackendSpec

    return BackendSpec("CPU", _make, priority=50)


def _make():
    from .backend import CPU

    return CPU()
