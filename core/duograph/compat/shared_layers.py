"""Layers that MindSpore has both in `nn` and in `mint.nn`, as one class; `mint.nn` defines them.

`paths.PATHS` makes them available in `nn`, which must not import `mint` itself; nothing in duograph
imports this module directly.
"""

from __future__ import annotations

from ..mint.nn import Linear

__all__ = ["Linear"]
