"""What a script asks about one kind of device (`mindspore.device_context`).

Users import it; nothing in the package does. `cpu` is about the host; `ascend` refuses.
"""

from __future__ import annotations

from . import cpu

__all__ = ["cpu"]
