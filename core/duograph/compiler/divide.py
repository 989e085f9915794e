"""Partitions a traced program among several ranks, in the parallel modes that divide programs.

`compiler.evaluate` calls `division` at the start of every compilation. The result is None, and
nothing else here runs, unless this process is one of several ranks and a parallel mode that divides
programs is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..frontend.types import Value
from ..ir.graph import Graph
from ..parameter import Parameter
from ..ranks.world import world
from ..sharding.layouts import Placement, check_divisible
from ..sharding.mode import argument_placement, dividing, full_batch
from ..sharding.partition import BATCH, WHOLE, Divided, partition
from ..tensor import Tensor
from ..types import TensorType

__all__ = ["Division", "division"]

Entries: TypeAlias = Sequence[tuple[str, Value]]


class Division:
    """The partitioning of one program among ranks.

    Args:
        ranks: the ranks of the program's mesh.
    """

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.ranks = ranks
        self._arguments: dict[int, Placement] = {}  # by index among the tensor arguments
        self._count = 0
        self._parts: list[tuple[Parameter, Placement]] = []

    def argument_type(self, index: int, value: Tensor) -> TensorType:
        """Return the type of a tensor argument with its global shape, over all ranks.

        It also stores how the argument is divided, for `divided`. It must be called once for each
        tensor argument, in order; `index` is the position of this one among them, from 0.
        """
        own = getattr(value, "_placement", None)
        if isinstance(value, Parameter):
            placement = own or Placement(((),) * value.ndim, self.ranks)
        else:
            placement = argument_placement(self._count, value._type.shape)
            self._count += 1
        self._arguments[index] = placement
        return value._type.with_(shape=placement.whole_shape(value._type.shape))

    def divided(
        self, graph: Graph, entries: Entries, writes: Sequence[tuple[str, Value, int]]
    ) -> Divided:
        """Partition a graph and return this rank's part of it, which takes local shards.

        The caller must call `take_parts` afterwards, so that the Parameters hold their shards.

        Args:
            graph: the graph, whose tensors have their global shapes.
            entries: the source of each input of the graph, such as ("arg", position).
            writes: the tensors that the program writes, with the outputs that are their new values.
        """
        known: dict[int, Placement] = {}
        fixed = set(range(graph.n_params))
        position: dict[tuple[str, int], int] = {}
        for i, (kind, value) in enumerate(entries):
            if kind == "arg":
                known[i] = self._arguments[value]
                position[kind, value] = i
            elif kind == "state":
                position[kind, id(value)] = i
                if isinstance(value, Parameter):
                    placement = value._placement or value._plan
                    if placement is not None:
                        check_divisible(f"Parameter {value.name}", _shape(graph, i), placement)
                        known[i] = placement
                    else:
                        fixed.discard(i)
        results = WHOLE if full_batch() else BATCH
        wanted: list[str | int] = [results] * len(graph.outputs)
        for kind, value, output in writes:
            at = position.get((kind, id(value) if kind == "state" else value))
            if at is not None:
                wanted[output] = at
        found = partition(graph, world(), self.ranks, known, fixed, wanted)
        for (kind, value), dims in zip(entries, found.inputs, strict=True):
            free = isinstance(value, Parameter) and value._placement is None
            if kind == "state" and free and any(dims):
                names = tuple((a, found.mesh.name(a)) for axes in dims for a in axes)
                self._parts.append((value, Placement(dims, found.mesh.ranks, names)))
        return found

    def take_parts(self) -> None:
        """Replace the values of sharded Parameters by the local shards of this rank.

        A Parameter is replicated until the first program that shards it is compiled.
        """
        for parameter, placement in self._parts:
            part = placement.part(parameter._type.shape, world().rank)
            made = Tensor(np.ascontiguousarray(parameter.asnumpy()[part]), parameter.dtype)
            device = parameter._type.device
            parameter._rebind(made.move_to(repr(device)) if device is not None else made)
            parameter._placement = placement


def division() -> Division | None:
    """Return the `Division` for the next program to compile, or None if ranks do not divide it."""
    ranks = dividing()
    return None if ranks is None else Division(ranks)


def _shape(graph: Graph, i: int) -> tuple[int, ...]:
    kind = graph.types[i]
    assert isinstance(kind, TensorType)
    return kind.shape
