"""Data-parallel training: combining the gradients that ranks have computed.

`TrainOneStepCell` gets its reducer from `data_parallel_reducer`; users who write their own training
step call `DistributedGradReducer`. Gradients are combined in buckets, one collective for each. In
eager mode `TrainOneStepCell` starts a bucket as soon as the tape has its gradients
(`EarlyReduction`); in compiled functions the pass `overlap_collectives` does the same.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Any

from ... import ops
from ...backend.prepared import Handle
from ...context import get_auto_parallel_context
from ...errors import ArgumentError, ArgumentValueError
from ...ops.collective import Broadcast, reduced
from ...parameter import Parameter
from ...placement import materialise
from ...ranks.buckets import Started, start_all_reduce, start_reduce_scatter
from ...ranks.on_device import operand, result
from ...ranks.world import WORLD_NAMES, world
from ...runtime_state import staged_builder, thread_state
from ...tensor import Tensor
from ...types import TensorType
from ..cell import Cell
from ..optim.sharding import Sharding, buckets

__all__ = ["DistributedGradReducer", "EarlyReduction", "data_parallel_reducer"]

EARLY_BYTES = 2 * 2**20  # of the buckets that start while a backward pass runs


class DistributedGradReducer(Cell):
    """Sum or mean of the gradients of all ranks (`mindspore.nn.DistributedGradReducer`).

    With one rank the gradients are returned unchanged.

    Args:
        parameters: the Parameters; gradients come in the same order.
        mean: whether to divide the sum by `degree`; None takes `gradients_mean` of
            `set_auto_parallel_context`.
        degree: divisor of the sum; None means the number of ranks.
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

    def construct(self, grads: Sequence[Tensor]) -> Sequence[Tensor]:
        if self.size == 1:
            return grads
        found: list[Tensor] = []
        for bucket in buckets(grads):
            found += self._whole(bucket)
        return self.scaled(found)

    def parts(self, grads: Sequence[Tensor], sharding: Sharding) -> tuple[Tensor, ...]:
        """Combine gradients over the ranks; return this rank's shard of each that is sharded.

        Args:
            grads: one for each Parameter.
            sharding: the optimiser's sharding; gradients of Parameters that it does not shard are
                returned whole.
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
        return self.scaled(found)

    def early(
        self, weights: Sequence[Parameter], sharding: Sharding | None = None
    ) -> contextlib.AbstractContextManager[EarlyReduction | None]:
        """Return a context manager that combines gradients during the next backward pass.

        Its value is the `EarlyReduction`. It does nothing, and its value is None, in three cases:
        in compiled functions (a graph pass combines the gradients early there), inside another
        derivative, and with one rank.

        Args:
            weights: all the Parameters with respect to which the function is differentiated.
            sharding: as in `parts`; with None, every rank gets whole gradients.
        """
        if self.size == 1 or staged_builder() is not None or thread_state.derivative_depth:
            return contextlib.nullcontext(None)
        return EarlyReduction(self, weights, sharding)

    def _whole(self, bucket: Sequence[Tensor]) -> Sequence[Tensor]:
        return reduced("DistributedGradReducer", bucket, "sum", self.group)

    def scaled(self, found: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the sums `found`, divided by `degree` if the constructor's `mean` is set."""
        if not self.mean:
            return tuple(found)
        return tuple(ops.mul(g, 1.0 / self.degree) for g in found)


class EarlyReduction:
    """Combines gradients in buckets while the tape computes them, the last weights first.

    The tape reports each gradient (`autodiff.tape.LeafListener`). A bucket starts when its
    gradients and all buckets before it are there; the tape advances its transfers between kernels.
    `finish` waits. Buckets and their order follow from the weights alone: ranks that run other
    branches know gradients in another order, and would add those of different weights.
    """

    def __init__(
        self,
        reducer: DistributedGradReducer,
        weights: Sequence[Parameter],
        sharding: Sharding | None,
    ) -> None:
        self.reducer, self.weights = reducer, weights
        self.group = world().group("DistributedGradReducer", reducer.group)
        sharded = (False,) * len(weights) if sharding is None else sharding.sharded
        self.reported: dict[int, Handle] = {}
        self.waiting = deque(self._buckets(sharded))
        self._checked = 0  # gradients of the first waiting bucket that are there, from its start
        self.started: list[tuple[Started, list[int]]] = []

    def _buckets(self, sharded: Sequence[bool]) -> list[tuple[bool, list[int]]]:
        """Return the buckets in the order of their start: (whether parts are wanted, positions)."""
        found: list[tuple[bool, list[int]]] = []
        open_: dict[bool, list[int]] = {False: [], True: []}
        nbytes = {False: 0, True: 0}
        for i in reversed(range(len(self.weights))):
            kind = sharded[i]
            open_[kind].append(i)
            nbytes[kind] += self.weights[i].size * self.weights[i].itemsize
            if nbytes[kind] >= EARLY_BYTES:
                found.append((kind, open_[kind]))
                open_[kind], nbytes[kind] = [], 0
        return found + [(kind, bucket) for kind, bucket in open_.items() if bucket]

    def __enter__(self) -> EarlyReduction:
        thread_state.leaf_listener = self
        return self

    def __exit__(self, *_: object) -> None:
        thread_state.leaf_listener = None

    def complete(self, position: int, handle: Handle) -> None:
        """Record the complete gradient of a weight; start each bucket that now has all gradients.

        `position` is that of the weight among all weights, and `handle` the gradient's buffer.
        """
        self.reported[position] = handle
        self._start_complete()

    def poll(self) -> None:
        """Advance the transfers of the started buckets, without blocking."""
        self.group.world.poll()

    def finish(self, grads: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Wait for the reductions of all gradients; return the gradients, combined over the ranks.

        It is called after the backward pass with its gradients, `grads`, one for each weight.
        """
        for i, grad in enumerate(grads):
            if self.reported.get(i) is not grad._buf:
                if i in self.reported:
                    raise AssertionError(f"the tape reported another gradient {i}")
                if grad._type.device is None:
                    materialise(grad)
                self.reported[i] = grad._buf
        self._start_complete()
        found: list[Any] = [None] * len(grads)
        for started, positions in self.started:
            for i, array in zip(positions, started.finish(), strict=True):
                device = grads[i]._type.device
                assert device is not None
                buffer = result((device.name, device.index), array)
                kind = TensorType.of(array.shape, grads[i].dtype)
                found[i] = Tensor._make(kind.on(device), buffer)
        return self.reducer.scaled(found)

    def _start_complete(self) -> None:
        while self.waiting:
            positions = self.waiting[0][1]
            while self._checked < len(positions) and positions[self._checked] in self.reported:
                self._checked += 1
            if self._checked < len(positions):
                return
            self._checked = 0
            self._start(*self.waiting.popleft())

    def _start(self, sharded: bool, positions: list[int]) -> None:
        arrays = []
        for i in positions:
            kind = self.weights[i]._type
            assert kind.device is not None
            place = kind.device.name, kind.device.index
            arrays.append(operand(self.group, place, self.reported[i], kind))
        start = start_reduce_scatter if sharded else start_all_reduce
        self.started.append((start(self.group, arrays, "sum", True), positions))


def data_parallel_reducer(
    weights: Sequence[Parameter], network: Cell
) -> DistributedGradReducer | None:
    """Return the gradient reducer of a training step, or None if gradients are not combined.

    The result is None with one rank, or if the parallel mode is not "data_parallel". If the option
    `parameter_broadcast` of `set_auto_parallel_context` is set, the Parameters of the network first
    take the values of rank 0.

    Raises:
        ArgumentValueError: `device_num` was set to another number than the number of ranks.
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
