"""`reshard`, and the graph op that states how a value is divided among ranks.

Users call `reshard`. `sharding.partition` removes the op from every program that it partitions, so
backends never see it.
"""

from __future__ import annotations

from ..errors import ArgumentError
from ..op import op
from ..sharding.constraints import constrained
from ..sharding.layouts import Layout, Placement, placement_of
from ..sharding.mode import mesh_ranks
from ..tensor import Tensor
from .movement import identity

__all__ = ["reshard"]


@op(name="sharding_constraint", graph_only=True)
def sharding_constraint(x: Tensor, placement: Placement, owner: str):
    """Graph op: return `x`, to be divided among ranks as `placement` says.

    `owner` is the user's function or layer that asks for it, for messages.
    """
    return identity(x)


@sharding_constraint.bprop
def _(x, out, dout, placement, owner):
    return (sharding_constraint(dout, placement=placement, owner=owner),)


def reshard(tensor: Tensor, layout: Layout) -> Tensor:
    """Divide a value among ranks, in compiled code (`mindspore.ops.reshard`).

    Args:
        tensor: Tensor of any shape.
        layout: `Layout` of its axes.

    Returns:
        Tensor of the same values. Outside compiled code, and with one rank, it is `tensor`.

    Raises:
        TypeError: another type.
        ValueError: the layout does not fit the shape.

    Examples:
        >>> import duograph as ms
        >>> layout = ms.Layout((1,), ("dp",))
        >>> print(ms.ops.reshard(ms.Tensor([1.0]), layout("dp")))
        [1.]
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"reshard: got {type(tensor).__name__}; wanted a Tensor")
    if not isinstance(layout, Layout):
        raise ArgumentError(f"reshard: got layout={layout!r}; wanted a Layout")
    return constrained("reshard", tensor, placement_of("reshard", layout, mesh_ranks()))
