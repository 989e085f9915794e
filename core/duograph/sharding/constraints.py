"""Sharding constraints on values of code that is being compiled; other code runs unchanged.

`Cell.shard`, `Primitive.shard`, `parallel.shard` and `ops.reshard` call these functions. The op is
found by its name, because the base of the primitive classes, which families of ops import, needs
this module.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError
from ..op import OPS
from ..runtime_state import staged_builder
from ..tensor import Tensor
from .layouts import Placement, check_divisible
from .mode import dividing

__all__ = ["constrained", "divided"]


def constrained(owner: str, x: Tensor, placement: Placement) -> Tensor:
    """Return `x`, constrained to `placement` in code that is compiled for several ranks.

    Raises:
        ShapeError: the placement does not fit the shape; `owner` is what asked for it.
    """
    if staged_builder() is None or dividing() is None:
        return x
    check_divisible(owner, x.shape, placement)
    return OPS["sharding_constraint"](x, placement=placement, owner=owner)


def divided(
    owner: str, values: Sequence[object], placements: Sequence[Placement]
) -> tuple[object, ...]:
    """Return arguments or results in which tensor number i is constrained to placement number i.

    Raises:
        ArgumentError: another number of tensors than layouts.
    """
    tensors = sum(isinstance(x, Tensor) for x in values)
    if tensors != len(placements):
        raise ArgumentError(
            f"{owner}: got {tensors} tensors for {len(placements)} layouts; wanted one each"
        )
    rest = iter(placements)
    return tuple(constrained(owner, x, next(rest)) if isinstance(x, Tensor) else x for x in values)
