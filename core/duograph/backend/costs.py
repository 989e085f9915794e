"""Costs and limits by which graph passes decide whether a rewrite pays (`Backend.costs`).

Graph passes are the same for all devices; these numbers belong to the backend. The defaults were
measured on x86-64 CPUs. This module holds data alone.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_COSTS", "Costs", "FusionLimits", "LayoutCosts"]


class FusionLimits(NamedTuple):
    """Limits within which a fused region compiles to one efficient kernel.

    Attributes:
        max_nodes: most nodes of a region, so that compiling it takes milliseconds.
        max_pointers: most operands and results of a region, taken together.
        min_ops: fewest ops that one kernel must replace to be worth compiling.
        min_row, max_row: least and greatest length of a row that a region reduces; one thread
            reduces a row.
        min_rows: least number of rows that keeps all threads busy; a tensor with fewer rows and
            more than `max_few_rows` elements is reduced by the backend's own kernel.
        max_few_rows: most elements of a tensor with fewer than `min_rows` rows that a region still
            reduces.
        min_width: least number of adjacent elements that makes a loop over columns worthwhile.
        min_run: least number of contiguous elements that each index of a gather selects; shorter
            runs are gathered faster by a kernel of their own than inside a fused loop.
        min_split: least number of elements of the trailing axes for which a reduction over these
            and other axes is split in two.
        max_recomputed: most nodes of a cheap op, such as a product or a cast, that a region
            computes again so that a value of another region need not be written to memory and read
            from it. With 0, regions recompute nothing.
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
    """Limits above which converting a cluster of convolutions to channels-last layout saves time.

    A cluster is a set of convolutions and connected ops, such as pooling and elementwise ops,
    between which values can be channels-last. Tensors are transposed where they enter or leave it.

    Attributes:
        traffic_per_transpose: bytes that the convolutions of a cluster must read and write for each
            byte that is transposed at its borders.
        min_channels: the least number of output channels of a convolution, so that vectors of
            channels are full.
        changing_weights: whether convolutions are converted whose weights may change from call to
            call, as in training, so that kernels must rearrange them in every call.
    """

    traffic_per_transpose: int = 6
    min_channels: int = 16
    changing_weights: bool = False


class Costs(NamedTuple):
    """All costs and limits that graph passes read from a backend.

    Attributes:
        fusion: limits of fused regions.
        layout: costs of layout conversions.
        min_matmul_sum: least number of matmuls in a sum that is merged into one matmul of
            concatenated operands, at the cost of one copy of all operands.
        compare_labels: how to select the element of each row at an integer label. True: inside a
            fused region, by comparing the label with every position in the row. False: outside of
            regions, by a separate gather or scatter.
    """

    fusion: FusionLimits = FusionLimits()
    layout: LayoutCosts = LayoutCosts()
    min_matmul_sum: int = 4
    compare_labels: bool = False


DEFAULT_COSTS = Costs()
