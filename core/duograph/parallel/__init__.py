"""Dividing programs among ranks (`mindspore.parallel`).

`Layout` says how a tensor is divided; `Cell.shard`, `Primitive.shard` and `shard` apply layouts to
some values, from which those of all others are derived. Users import the package; docs/parallel.md
is their guide.
"""

from __future__ import annotations

from ..ops import reshard
from ..sharding.layouts import Layout
from .functions import gathered, shard

__all__ = ["Layout", "gathered", "reshard", "shard"]
