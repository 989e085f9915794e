"""Data-parallel training: combining the gradients that ranks have computed.

`TrainOneStepCell` asks `data_parallel_reducer`; users who write their own training step call
`DistributedGradReducer`. Gradients are combined in buckets, one collective for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import ops
from ...context import get_auto_parallel_context
from ...errors import ArgumentError, ArgumentValueError
from ...ops.collective import Broadcast, reduced
from ...parameter import Parameter
from ...ranks.world import WORLD_NAMES, world
from ...tensor import Tensor
from ..cell import Cell
from ..optim.sharding import Sharding, buckets

__all__ = ["DistributedGradReducer", "data_parallel_reducer"]


class DistributedGradReducer(Cell):
    """Sum or mean of the gradients of all ranks (`mindspore.nn.DistributedGradReducer`).

    With one rank the gradients are returned unchanged.

    Args:
        parameters: the Parameters; gradients come in the same order.
        mean: whether to divide the sum by `degree`; None: as `gradients_mean` of
            `set_auto_parallel_context` says.
        degree: None: the number of ranks.
        fusion_type: has no effect: buckets are formed by size.
        group: name of the group; ``""`` for all ranks.

    Inputs:
        grads: tuple of Tensors, of the same shapes on all ranks.

    Outputs:
        Tuple of Tensors, equal on all ranks.

    Raises:
        TypeError: `mean` is not a bool, or `degree` not an int.
        ValueError: a `degree` below 1; no such group.

    Examples:
        >>> import duograph as ms
        >>> reducer = ms.nn.DistributedGradReducer([])
        >>> reducer((1, 2))
        (1, 2)
    """

    def __init__(
        self,
        parameters: object,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = "",
    ) -> None:
        super().__init__(auto_prefix=False)
        del parameters, fusion_type
        if mean is not None and not isinstance(mean, bool):
            raise ArgumentError(
                f"DistributedGradReducer: got mean={mean!r}; wanted True, False or None"
            )
        if degree is not None and (isinstance(degree, bool) or not isinstance(degree, int)):
            raise ArgumentError(f"DistributedGradReducer: got degree={degree!r}; wanted an int")
        if degree is not None and degree < 1:
            raise ArgumentValueError(
                f"DistributedGradReducer: got degree={degree}; wanted 1 or more"
            )
        self.group = group or WORLD_NAMES[0]
        members = world().group("DistributedGradReducer", self.group)
        self.size = members.size
        self.mean = bool(get_auto_parallel_context("gradients_mean")) if mean is None else mean
        self.degree = self.size if degree is None else degree

    def construct(self, grads: Any) -> Any:
        if self.size == 1:
            return grads
        found: list[Any] = []
        for bucket in buckets(grads):
            found += self._whole(bucket)
        return self._scaled(found)

    def parts(self, grads: Sequence[Tensor], sharding: Sharding) -> tuple[Tensor, ...]:
        """Return the combinations of gradients, of which this rank needs its parts alone.

        Args:
            grads: one for each Parameter.
            sharding: says which Parameters have parts; gradients of the others are returned whole.
        """
        found: list[Any] = [None] * len(grads)
        for sharded in (False, True):
            positions = [i for i, s in enumerate(sharding.sharded) if s is sharded]
            reduce = sharding.reduce_scatter if sharded else self._whole
            at = 0
            for bucket in buckets([grads[i] for i in positions]):
                for g in reduce(bucket):
                    found[positions[at]] = g
                    at += 1
        return self._scaled(found)

    def _whole(self, bucket: Sequence[Tensor]) -> Sequence[Tensor]:
        return reduced("DistributedGradReducer", bucket, "sum", self.group)

    def _scaled(self, found: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if not self.mean:
            return tuple(found)
        return tuple(ops.mul(g, 1.0 / self.degree) for g in found)


def data_parallel_reducer(
    weights: Sequence[Parameter], network: Cell
) -> DistributedGradReducer | None:
    """Return the reducer of a training step, or None if gradients are not combined.

    With `parameter_broadcast` the Parameters of the network take the values of rank 0.

    Raises:
        ArgumentValueError: `device_num` was set to another number than that of the ranks.
    """
    if get_auto_parallel_context("parallel_mode") != "data_parallel":
        return None
    size, asked = world().size, get_auto_parallel_context("device_num")
    if size == 1:
        return None
    if asked not in (1, size):
        raise ArgumentValueError(
            f"set_auto_parallel_context: got device_num={asked}; wanted {size}, the number of ranks"
        )
    if get_auto_parallel_context("parameter_broadcast"):
        parameters = list(network.get_parameters())
        for parameter, value in zip(parameters, Broadcast(0)(parameters), strict=True):
            parameter.set_data(value)
    return DistributedGradReducer(weights)
