"""The plugin module of the Template device: one hook, nothing heavy.

duograph finds this module by the entry point in pyproject.toml, and loads it when somebody first
asks about devices. Import your driver in `_make`, which is called when the device is first used,
never here.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """The hook through which duograph finds this device."""
    # The name is what users write: set_context(device_target="Template"). With no device_target,
    # the available device of the highest priority is taken; the CPU has 50. None: only when it is
    # named. seam_version is the version of the plugin interface that this was written for; duograph
    # refuses another major version and says which side to upgrade.
    return BackendSpec("Template", _make, priority=None, seam_version=(1, 0))


def _make() -> Backend:
    from .backend import Template

    return Template()
