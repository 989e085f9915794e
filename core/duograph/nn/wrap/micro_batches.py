"""Cells that run a network on parts of a batch and add the results.

User code constructs them. One process runs the parts one after the other.
"""

from __future__ import annotations

from ...call_names import WRAPPER
from ...errors import ArgumentValueError
from ...option_checks import check_options
from ...tensor import Tensor
from .. import _check
from ..cell import Cell

__all__ = ["GradAccumulationCell", "MicroBatchInterleaved", "PipelineCell"]


class _Parts(Cell):
    """Base class: runs `network` on parts of equal size of its inputs, and adds the results."""

    call_role = WRAPPER

    def __init__(self, network: Cell, name: str, count: int) -> None:
        super().__init__(auto_prefix=False)
        owner = type(self).__name__
        self.network = _check.instance(owner, "network", network, Cell)
        self.micro_size = _check.positive_int(owner, name, count)

    def construct(self, *inputs: object) -> object:
        count = self.micro_size
        for value in inputs:
            if isinstance(value, Tensor) and (not value.ndim or value.shape[0] % count):
                raise ArgumentValueError(
                    f"{type(self).__name__}: got an input of shape {value.shape}; wanted a first "
                    f"axis that {count} divides"
                )
        found = self.network(*[_part(value, 0, count) for value in inputs])
        for i in range(1, count):
            found = found + self.network(*[_part(value, i, count) for value in inputs])
        return found


def _part(value: object, i: int, count: int) -> object:
    """Return part `i` of `count` equal parts of a Tensor along axis 0.

    A value that is not a Tensor is returned unchanged.
    """
    if not isinstance(value, Tensor):
        return value
    size = value.shape[0] // count
    return value[i * size : (i + 1) * size]


class GradAccumulationCell(_Parts):
    """Runs a network on parts of a batch and adds the results
    (`mindspore.nn.GradAccumulationCell`).

    The gradient is the sum of those of the parts, so that an optimiser steps once for all.

    Args:
        network: Cell; it returns a Tensor, such as a loss.
        micro_size: number of parts, which divides the first axis of every Tensor.

    Raises:
        TypeError: an argument of another kind.
        ValueError: `micro_size` below 1, or an input that it does not divide.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.GradAccumulationCell(ms.nn.MSELoss(), 2)
        >>> print(net(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0])))
        5.0
    """

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(network, "micro_size", micro_size)


class MicroBatchInterleaved(_Parts):
    """`GradAccumulationCell` under another name (`mindspore.nn.MicroBatchInterleaved`).

    MindSpore runs the parts in parallel on several processes; here one process runs them in turn.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.MicroBatchInterleaved(ms.nn.MSELoss())
        >>> print(net(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0])))
        5.0
    """

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(network, "interleave_num", interleave_num)


class PipelineCell(_Parts):
    """`GradAccumulationCell` under another name (`mindspore.nn.PipelineCell`).

    MindSpore runs stages of the network on several processes; here one process runs the network.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.PipelineCell(ms.nn.MSELoss(), 2)
        >>> print(net(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0])))
        5.0
    """

    def __init__(
        self,
        network: Cell,
        micro_size: int,
        stage_config: dict[str, int] | None = None,
        segment_config: dict[str, int] | None = None,
    ) -> None:
        super().__init__(network, "micro_size", micro_size)
        check_options("nn.PipelineCell", stage_config=stage_config, segment_config=segment_config)
