"""Layers that MindSpore has in `nn` and in `mint.nn`, as one class; `mint.nn` defines them.

The table of paths serves them in `nn`, which itself may not import `mint`; nothing in duograph
imports this module.
"""

from __future__ import annotations

from ..mint.nn import Linear

__all__ = ["Linear"]
