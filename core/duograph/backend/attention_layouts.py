"""Axis orders of the operands of attention ops, part of the seam between core and backends.

The ops of `duograph.ops.attention` have an attribute `layout`; backends with kernels for them and
the ops themselves read its meaning here.
"""

from __future__ import annotations

__all__ = ["AXES"]

# Layout -> the axes of batch (B), heads (N), sequence positions (S) and features (D).
AXES = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "SBND": (1, 2, 0, 3)}
