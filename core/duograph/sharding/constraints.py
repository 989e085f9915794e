"""Sharding constraints on values of code that is being compiled; in other code they do nothing.

`Cell.shard`, `Primitive.shard`, `parallel.shard` and `ops.reshard` call these functions. The op
`sharding_constraint` is looked up by name and not imported, because importing it here would be
circular.
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

    In all other code, `x` is returned unchanged.

    Raises:
        ShapeError: the placement does not fit the shape; `owner` names the caller in the message.
    """
    if staged_builder() is None or dividing() is None:
        return x
    check_divisible(owner, x.shape, placement)
    return OPS["sharding_constraint"](x, placement=placement, owner=owner)


def divided(
    owner: str, values: Sequence[object], placements: Sequence[Placement]
) -> tuple[object, ...]:
    """Return `values` with the i-th tensor among them constrained to the i-th placement.

    The values are the arguments or results of a call. Values that are no tensors are returned
    unchanged, and so are all values outside code that is compiled for several ranks.

    Raises:
        ArgumentError: the numbers of tensors and placements differ; `owner` names the caller.
        ShapeError: a placement does not fit its tensor.
    """
    tensors = sum(isinstance(x, Tensor) for x in values)
    if tensors != len(placements):
        raise ArgumentError(
            f"{owner}: got {tensors} tensors for {len(placements)} layouts; wanted one each"
        )
    rest = iter(placements)
    return tuple(constrained(owner, x, next(rest)) if isinstance(x, Tensor) else x for x in values)
