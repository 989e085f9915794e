"""`shard` divides a Cell or function among ranks; `gathered` returns a Parameter's whole value.

Users call them as `duograph.parallel.NAME`. The module must not partition graphs itself; the
package `sharding` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from ..compiler import jit
from ..errors import ArgumentError
from ..nn._sharding import plan_parameters, shard_cell
from ..nn.cell import Cell
from ..parameter import Parameter
from ..ranks.world import world
from ..sharding.constraints import divided
from ..sharding.layouts import Placement, StagePlacement, placements_of
from ..sharding.mode import mesh_ranks
from ..tensor import Tensor

__all__ = ["gathered", "shard"]


def shard(
    fn: Callable[..., object],
    in_strategy: object,
    out_strategy: object = None,
    parameter_plan: Mapping[str, object] | None = None,
) -> Callable[..., object]:
    """Return a Cell or function, compiled, whose arguments are divided among ranks
    (`mindspore.parallel.shard`).

    It has an effect only on several ranks in the parallel mode ``"semi_auto_parallel"``; the
    function is then compiled even in PYNATIVE_MODE.

    Args:
        fn: Cell or function of Tensors.
        in_strategy: tuple with a `Layout`, or a tuple of numbers of parts, per argument.
        out_strategy: the same for the results; None derives their layouts.
        parameter_plan: for a Cell, a dict from names of Parameters to a `Layout` or such a tuple.

    Raises:
        TypeError: an argument of another form; a `parameter_plan` for a function.

    Examples:
        >>> import duograph as ms
        >>> double = ms.parallel.shard(lambda x: x * 2, in_strategy=((1,),))
        >>> print(double(ms.Tensor([1.0, 2.0])))
        [2. 4.]
    """
    if not callable(fn):
        raise ArgumentError(f"shard: got {type(fn).__name__}; wanted a Cell or a function")
    if isinstance(fn, Cell):
        shard_cell(fn, in_strategy, out_strategy, parameter_plan)
        return jit(lambda *args: fn(*args))
    if parameter_plan is not None:
        plan_parameters("shard", _no_cell(fn), parameter_plan)
    ranks = mesh_ranks()
    given = placements_of("shard: in_strategy", in_strategy, ranks)
    results = None
    if out_strategy is not None:
        results = placements_of("shard: out_strategy", out_strategy, ranks)

    def run(*args: object) -> object:
        found = fn(*divided("shard: in_strategy", args, given))
        if results is None:
            return found
        single = isinstance(found, Tensor)
        made = divided(
            "shard: out_strategy", (found,) if single else cast("Sequence[object]", found), results
        )
        return made[0] if single else made

    return jit(run)


def _no_cell(fn: object) -> Cell:
    raise ArgumentError(
        f"shard: got parameter_plan for {getattr(fn, '__name__', fn)}; wanted None for a function, "
        "or a Cell, which has Parameters"
    )


def gathered(parameter: Parameter) -> Tensor:
    """Return the whole value of a Parameter that is divided among ranks, which must all call this.

    The Parameter may also belong to one stage of a pipeline.

    MindSpore has no such function. The result is a copy on the host.

    Examples:
        >>> import duograph as ms
        >>> print(ms.parallel.gathered(ms.Parameter(ms.Tensor([1.0]), name="w")))
        [1.]
    """
    placement = parameter._placement
    if placement is None:
        return Tensor(parameter.asnumpy().copy(), parameter.dtype)
    if isinstance(placement, StagePlacement):
        return _of_stage(parameter, placement)
    return _whole(parameter, placement)


def _of_stage(parameter: Parameter, placement: StagePlacement) -> Tensor:
    """Return the whole value of a Parameter of one pipeline stage, on all ranks."""
    if placement.here:
        found = _whole(parameter, placement)
    else:
        found = Tensor(np.empty(placement.shape, parameter.dtype.np), parameter.dtype)
    group = world().group("gathered", world().group_of(placement.everyone))
    array = group.broadcast(np.array(found.asnumpy(), order="C"), placement.ranks[0])
    return Tensor(array, parameter.dtype)


def _whole(parameter: Parameter, placement: Placement) -> Tensor:
    group = world().group("gathered", world().group_of(placement.ranks))
    own = np.array(parameter.asnumpy(), order="C")
    data = group.gather_bytes(own.tobytes(), f"gathering Parameter {parameter.name}")
    shape = placement.whole_shape(own.shape)
    out = np.empty(shape, own.dtype)
    for rank, part in zip(placement.ranks, data, strict=True):
        out[placement.part(shape, rank)] = np.frombuffer(part, own.dtype).reshape(own.shape)
    return Tensor(out, parameter.dtype)
