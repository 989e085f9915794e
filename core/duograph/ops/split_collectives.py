"""Graph ops: start and wait of an asynchronous collective, between which kernels run.

The pass `overlap_collectives` replaces synchronous collectives by them; user code must not call
them. The handle that a start returns and a wait takes is a Python object, `ranks.buckets.Started`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import DType
from ..effects import Communicates
from ..op import op
from ..ranks import buckets
from ..ranks.world import world
from ..tensor import Tensor
from ..types import OBJECT, TensorType

__all__ = ["finish_collective", "start", "start_collective"]


@op(
    name="start_collective", composite=False, graph_only=True, differentiable=False,
    effects=(Communicates(),),
)  # fmt: skip
def start_collective(
    inputs: Sequence[Tensor], collective: str, options: Sequence[object], group: str
):
    """Graph op: start a collective of tensors in a group; return its handle.

    Args:
        inputs: operands of the collective.
        collective: name of the synchronous op, such as "all_reduce".
        options: for "all_reduce", one item, the reduction, such as "sum"; for "all_gather_parts",
            the shapes of the gathered tensors; ignored for "reduce_scatter_parts", which sums.
        group: name of the group.
    """


@start_collective.infer
def _(types, collective, options, group):
    return OBJECT


@op(
    name="finish_collective", composite=False, graph_only=True, differentiable=False,
    effects=(Communicates(),),
)  # fmt: skip
def finish_collective(started: Tensor, shapes: Sequence[object], dtype: DType):
    """Graph op: wait for a started collective; return its tensors.

    `started` is the handle of `start_collective`, and `shapes` and `dtype` are those of the
    tensors.
    """


@finish_collective.infer
def _(started, shapes, dtype):
    return tuple(TensorType.of(tuple(s), dtype) for s in shapes)


def start(
    collective: str, options: Sequence[Any], group: str, arrays: Sequence[Any]
) -> buckets.Started:
    """Start a collective of arrays in a group; return its handle.

    The arrays are on the host, or on a device that the group's engine serves. `collective` is the
    name of the synchronous op, such as "all_reduce". `options` is a list of the reduction for
    "all_reduce", and the shapes of the gathered tensors for "all_gather_parts".
    "reduce_scatter_parts" ignores it, and sums.
    """
    found = world().group(collective, group)
    if collective == "all_gather_parts":
        return buckets.start_all_gather(found, arrays, [tuple(s) for s in options], True)
    if collective == "reduce_scatter_parts":
        return buckets.start_reduce_scatter(found, arrays, "sum", True)
    return buckets.start_all_reduce(found, arrays, options[0], True)
