"""The `duograph tune` command: measures each device's best settings, such as tile sizes.

`cli.main` runs it. The backends store the results and use them from then on.
"""

from __future__ import annotations

import sys

from ..backend import registry
from ..errors import DuographError
from ..placement import device_of

__all__ = ["tune"]


def tune(name: str | None) -> int:
    """Tune a device, all devices of a backend, or all devices; print the results.

    Returns the exit status.
    """
    try:
        chosen = _chosen(name)
    except DuographError as error:
        print(f"duograph tune: {error}", file=sys.stderr)
        return 1
    for backend, index in chosen:
        lines = 0
        for line in registry.backend(backend).tune(index):
            print(f"{backend}:{index} {line}", flush=True)
            lines += 1
        if not lines:
            print(f"{backend}:{index} has nothing to tune")
    return 0


def _chosen(name: str | None) -> list[tuple[str, int]]:
    """Return the devices to tune, as (backend name, index), from the command's argument.

    It is None for all devices, a backend's name, or a device such as "OpenCL:1".
    """
    if name is not None and ":" in name:
        device = device_of(name)
        return [(device.name, device.index)]
    if name is not None:
        names = [device_of(name).name]
    else:
        names = [n for n, entry in registry.entries().items() if registry.problem_of(entry) is None]
    return [(n, device.index) for n in names for device in registry.backend(n).devices()]
