"""Functions by which scripts query one kind of device (`mindspore.device_context`).

Users import it; nothing in the package does. `cpu` describes the host's processor. For the other
devices of MindSpore, such as `ascend`, `compat` raises an error.
"""

from __future__ import annotations

from . import cpu

__all__ = ["cpu"]
