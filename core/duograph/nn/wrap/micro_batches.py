"""Cells that run a network on parts of a batch and add the results.

User code constructs them. One process runs the parts one after the other; `PipelineCell` runs them
on the stages of a pipeline, into which `sharding.stages` cuts the compiled program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import ops
from ...call_names import WRAPPER
from ...errors import ArgumentError, ArgumentValueError, UnknownNameError, UnsupportedOpError
from ...option_checks import check_options
from ...parameter import Parameter
from ...runtime_state import staged_builder
from ...sharding.mode import batch_shards, dividing, pipeline_stages
from ...tensor import Tensor
from .. import _check
from ..cell import Cell

__all__ = [
    "GradAccumulationCell", "MicroBatchInterleaved", "PipelineCell", "PipelineGradReducer",
]  # fmt: skip


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
        found = self.run_part(0, inputs)
        for i in range(1, count):
            found = found + self.run_part(i, inputs)
        return found

    def run_part(self, i: int, inputs: tuple[object, ...]) -> Any:
        """Return the result of the network for micro-batch `i`: slices of inputs along axis 0."""
        return self.network(*[_part(value, i, self.micro_size) for value in inputs])


def _part(value: object, i: int, count: int) -> object:
    """Return part `i` of `count` equal parts of a Tensor along axis 0.

    A value that is not a Tensor is returned unchanged.
    """
    if not isinstance(value, Tensor):
        return value
    size = value.shape[0] // count
    return value[i * size : (i + 1) * size]


def _part_of_shards(value: Any, i: int, count: int, index: int) -> Tensor:
    """Return micro-batch `i` of `count` of a Tensor, of which ranks may hold shards along axis 0.

    It has part `i` of every shard, so that each rank takes it from its own. `index` is the number
    of the Tensor among the arguments.
    """
    shards = batch_shards(index, value.ndim)
    if shards == 1:
        part: Tensor = _part(value, i, count)  # type: ignore[assignment]
        return part
    size, rest = value.shape[0] // (shards * count), value.shape[1:]
    if size * shards * count != value.shape[0]:
        raise ArgumentValueError(
            f"PipelineCell: got an input of shape {value.shape}, over all ranks; wanted a first "
            f"axis that {shards} shards of {count} micro-batches divide"
        )
    parts = ops.reshape(value, (shards, count, size, *rest))
    found: Tensor = ops.reshape(parts[:, i], (shards * size, *rest))
    return found


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
    """Runs a network on micro-batches and adds the results, on the stages of a pipeline
    (`mindspore.nn.PipelineCell`).

    With `set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=S)` the
    ranks form S stages. In compiled code each stage runs the Cells whose `pipeline_stage` is its
    number, on one micro-batch after the other, and sends the results to the next. In one process
    the network runs on the micro-batches in turn.

    Args:
        network: Cell; it returns a Tensor, such as a loss.
        micro_size: number of micro-batches, which divides the first axis of every Tensor. It should
            be at least the number of stages; with more, stages wait less for each other.
        stage_config: dictionary from names of Cells inside `network`, as `cells_and_names` gives
            them, to their stages; it sets their `pipeline_stage`.
        segment_config: not supported: a stage has one segment of the network.

    Raises:
        TypeError: an argument of another kind.
        ValueError: `micro_size` below 1, a negative stage, an input that `micro_size` does not
            divide, or a pipeline of several stages without a Cell that has one.
        KeyError: `stage_config` names a Cell that is not there.
        NotImplementedError: the pipeline has several stages, and the call is not compiled.

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
        stage_config: Mapping[str, int] | None = None,
        segment_config: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(network, "micro_size", micro_size)
        check_options("nn.PipelineCell", segment_config=segment_config)
        for name, stage in _check_config(stage_config).items():
            self._cell_named(name).pipeline_stage = stage

    def _cell_named(self, name: str) -> Cell:
        cells = dict(self.network.cells_and_names())
        if name not in cells:
            raise UnknownNameError(
                f"PipelineCell: stage_config names {name!r}; wanted one of "
                f"{', '.join(repr(n) for n in cells if n)}"
            )
        return cells[name]

    def run_part(self, i: int, inputs: tuple[object, ...]) -> Any:
        """Return the result of the network for micro-batch `i` of the inputs."""
        builder = staged_builder()
        if builder is None:
            if dividing() is not None and pipeline_stages() > 1:
                raise UnsupportedOpError(
                    "PipelineCell: got a call from code that is not compiled; wanted GRAPH_MODE "
                    "or ms.jit, in which the stages of a pipeline run their parts of the network"
                )
            return super().run_part(i, inputs)
        if i == 0 and dividing() is not None and pipeline_stages() > 1 and not self._has_stage():
            raise ArgumentValueError(
                f"PipelineCell: got pipeline_stages={pipeline_stages()} and no Cell with a stage; "
                "wanted cell.pipeline_stage = k for the Cells of stage k, or stage_config"
            )
        tensors = [k for k, value in enumerate(inputs) if isinstance(value, Tensor)]
        parts = list(inputs)
        for at, k in enumerate(tensors):
            parts[k] = _part_of_shards(inputs[k], i, self.micro_size, at)
        with builder.evaluation.inside_part(i):
            return self.network(*parts)

    def _has_stage(self) -> bool:
        return any(c.pipeline_stage is not None for _, c in self.network.cells_and_names())


def _check_config(config: object) -> Mapping[str, int]:
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise ArgumentError(
            f"PipelineCell: got stage_config of {type(config).__name__}; wanted a dictionary from "
            "names of Cells to stages"
        )
    return config


class PipelineGradReducer(Cell):
    """Divides the gradients of a `PipelineCell` by a scale (`mindspore.nn.PipelineGradReducer`).

    The gradients of the micro-batches are added already, by the derivative of the `PipelineCell`.

    Args:
        parameters: the Parameters, in the order of the gradients.
        scale_sense: number, or Tensor of one element, by which the gradients were multiplied.
        opt_shard: not needed.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> reducer = ms.nn.PipelineGradReducer(net.trainable_params(), scale_sense=2.0)
        >>> print(reducer((ms.Tensor([4.0]),))[0])
        [2.]
    """

    call_role = WRAPPER

    def __init__(
        self,
        parameters: Sequence[Parameter],
        scale_sense: Tensor | float = 1.0,
        opt_shard: bool | None = None,
    ) -> None:
        super().__init__(auto_prefix=False)
        for p in parameters:
            _check.instance("PipelineGradReducer", "parameters", p, Parameter)
        if isinstance(scale_sense, bool) or not isinstance(scale_sense, (int, float, Tensor)):
            raise ArgumentError(
                f"PipelineGradReducer: got scale_sense={scale_sense!r}; wanted a number or a Tensor"
            )
        self.scale_sense = scale_sense
        check_options("nn.PipelineGradReducer", opt_shard=opt_shard)

    def construct(self, grads: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if isinstance(self.scale_sense, (int, float)) and self.scale_sense == 1.0:
            return tuple(grads)
        return tuple(g / ops.cast(self.scale_sense, g.dtype) for g in grads)
