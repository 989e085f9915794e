"""Graph op that says how a value is divided among ranks; `sharding.partition` removes it.

`Cell.shard`, `Primitive.shard` and `parallel.reshard` call `constrained`.
"""

from __future__ import annotations

from ..op import op
from ..runtime_state import staged_builder
from ..sharding.layouts import Placement, check_divisible
from ..sharding.mode import dividing
from ..tensor import Tensor
from .movement import identity

__all__ = ["constrained", "sharding_constraint"]


@op(name="sharding_constraint", graph_only=True)
def sharding_constraint(x: Tensor, placement: Placement, owner: str):
    """Graph op: `x`, divided among ranks as `placement` says; `owner` asked for it."""
    return identity(x)


@sharding_constraint.bprop
def _(x, out, dout, placement, owner):
    return (sharding_constraint(dout, placement=placement, owner=owner),)


def constrained(owner: str, x: Tensor, placement: Placement) -> Tensor:
    """Return `x`; in code that is compiled for several ranks it is divided as `placement` says.

    Raises:
        ShapeError: the placement does not fit the shape; `owner` is what asked for it.
    """
    if staged_builder() is None or dividing() is None:
        return x
    check_divisible(owner, x.shape, placement)
    return sharding_constraint(x, placement=placement, owner=owner)
