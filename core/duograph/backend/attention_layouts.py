"""The axis orders ("layouts") of query, key and value that the attention ops accept.

The ops of `duograph.ops.attention` have an attribute `layout`, such as "BNSD". The ops, and the
backends that have kernels for them, look up here which axis is which. The module holds data alone.
"""

from __future__ import annotations

__all__ = ["AXES"]

# Layout -> the axes of batch (B), heads (N), sequence positions (S) and features (D).
AXES = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "SBND": (1, 2, 0, 3)}
