"""The plugin module of the Template backend: one hook and no heavy imports.

duograph finds this module by the entry point in pyproject.toml, and imports it when a program first
needs a device. Import your driver in `_make`, which is called when the device is first used, and
not in this module.
"""

from __future__ import annotations

from duograph.backend.hookspecs import hookimpl
from duograph.backend.protocol import Backend, BackendSpec


@hookimpl
def duograph_backend() -> BackendSpec:
    """Return the registration record of the Template backend; duograph calls this hook."""
    # Users write the name: set_context(device_target="Template"). Without a device_target, duograph
    # uses the available backend of highest priority; the CPU has 50. None: only by name.
    # seam_version is the version of the plugin interface that this was written for; duograph
    # refuses another major version and says which side to upgrade.
    return BackendSpec("Template", _make, priority=None, seam_version=(1, 5))


def _make() -> Backend:
    from .backend import Template

    return Template()
