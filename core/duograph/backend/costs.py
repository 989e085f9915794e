"""Costs and limits that graph passes ask of a backend (`Backend.costs`).

Graph passes are the same for all devices; the numbers that decide whether a rewrite pays belong to
the backend. The defaults were measured on x86-64 CPUs. This module holds data alone.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_COSTS", "Costs", "FusionLimits", "LayoutCosts"]


class FusionLimits(NamedTuple):
    """Limits within which a fused region compiles to one efficient kernel.

    Attributes:
        max_nodes: nodes of a region; compilers take milliseconds for so many.
        max_pointers: operands and results of a region.
        min_ops: ops that one kernel must replace to be worth compiling.
        min_row, max_row: elements of a row that a region reduces; one thread reduces a row.
        min_rows: rows that keep the threads busy; a tensor with fewer rows and more than
            `max_few_rows` elements is reduced by the backend's own kernel.
        max_few_rows: see `min_rows`.
        min_width: adjacent elements that make a loop over columns worthwhile.
        min_run: elements that one index of a gather must read in a run; shorter runs are copied
            faster than they are read inside a fused loop.
        min_split: elements of the trailing axes from which a reduction over these and other axes
            is split in two.
        max_recomputed: nodes of a cheap op, such as a product or a cast, that a region computes
            again so that a value of another region need not be written to memory and read from
            it. 0: regions compute nothing again.
    """

    max_nodes: int = 64
    max_pointers: int = 32
    min_ops: int = 2
    min_row: int = 8
    max_row: int = 65536
    min_rows: int = 64
    max_few_rows: int = 32768
    min_width: int = 16
    min_run: int = 64
    min_split: int = 16
    max_recomputed: int = 0


class LayoutCosts(NamedTuple):
    """Limits from which converting a cluster of convolutions to channels-last layout pays.

    A cluster is a set of convolutions and connected ops, such as pooling and elementwise ops,
    between which values can be channels-last. Tensors are transposed where they enter or leave it.

    Attributes:
        traffic_per_transpose: bytes that the convolutions of a cluster must read and write for each
            byte that is transposed at its borders.
        min_channels: the least number of output channels of a convolution, so that vectors of
            channels are full.
    """

    traffic_per_transpose: int = 6
    min_channels: int = 16


class Costs(NamedTuple):
    """Everything that graph passes ask a backend about costs.

    Attributes:
        fusion: limits of fused regions.
        layout: costs of layout conversions.
        min_matmul_sum: a sum of at least so many matmuls is merged into one matmul of concatenated
            operands, which costs one copy of all operands.
        compare_labels: how a fused region picks the element of each row at an integer label. True:
            it compares the label with every position in the row. False: a gather or scatter of its
            own does it.
    """

    fusion: FusionLimits = FusionLimits()
    layout: LayoutCosts = LayoutCosts()
    min_matmul_sum: int = 4
    compare_labels: bool = False


DEFAULT_COSTS = Costs()
