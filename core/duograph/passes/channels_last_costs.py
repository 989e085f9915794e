"""Decides from a backend's costs which convolutions are converted to channels-last.

`channels_last_conversion` asks `suits` for each convolution and `pays` for each cluster, a set of
connected nodes. The decisions use sizes and `LayoutCosts` alone; nothing here may look at a graph.
"""

from __future__ import annotations

from typing import NamedTuple

from ..backend.costs import LayoutCosts
from ..types import TensorType, size_of

__all__ = ["Cluster", "pays", "suits"]


class Cluster(NamedTuple):
    """Costs and gain of converting one cluster, a set of connected nodes, to channels-last.

    The function `pays` decides from these numbers whether the cluster is converted.

    Attributes:
        convolutions: number of convolutions among the nodes, without gradients.
        traffic: bytes that the convolutions and their gradients read and write, without weights.
        moved: bytes of the values that must be transposed at the borders of the cluster.
        borders: number of such values.
    """

    convolutions: int
    traffic: int
    moved: int
    borders: int


def pays(cluster: Cluster, costs: LayoutCosts) -> bool:
    """Return whether converting a cluster to channels-last saves more than its transposes cost."""
    return cluster.moved * costs.traffic_per_transpose <= cluster.traffic


def suits(weight: TensorType, groups: int, follows: bool, costs: LayoutCosts) -> bool:
    """Return whether a convolution is fast enough in channels-last layout to be converted.

    Channels-last kernels are fast if there are enough output channels to fill their vectors and the
    convolution is dense or depthwise. A 1x1 convolution whose input is already channels-last
    (`follows`) is converted in any case, because transposing its input back would cost more.
    `weight` is the type of the weight.
    """
    outputs, inputs, *kernel = weight.shape
    depthwise = inputs == 1 and outputs == groups
    full = outputs >= costs.min_channels and (groups == 1 or depthwise)
    return full or (follows and groups == 1 and size_of(kernel) == 1)
