"""Partitions a traced program among several ranks, in the parallel modes that divide programs.

`compiler.evaluate` calls `division` at the start of every compilation. The result is None, and
nothing else here runs, unless this process is one of several ranks and a parallel mode that divides
programs is set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ..frontend.types import Value
from ..ir.graph import Graph
from ..parameter import Parameter
from ..ranks.world import WORLD_NAMES, world
from ..sharding.layouts import Placement, StagePlacement, check_divisible
from ..sharding.mode import (
    all_ranks,
    argument_placement,
    dividing,
    full_batch,
    own_rank,
    own_stage,
    pipeline_scheduler,
    pipeline_stages,
    stage_ranks,
)
from ..sharding.partition import BATCH, WHOLE, Divided, layouts, partition
from ..sharding.stages import Stages, cut
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
        self._count_of_stages = pipeline_stages()

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
        position: dict[tuple[str, int], int] = {}
        for i, (kind, value) in enumerate(entries):
            if kind in ("arg", "state"):
                position[kind, value if kind == "arg" else id(value)] = i
        written: dict[int, int] = {}
        for kind, value, output in writes:
            at = position.get((kind, id(value) if kind == "state" else value))
            if at is not None:
                written[output] = at
        known, fixed = self._known(graph, entries)
        results = WHOLE if full_batch() else BATCH
        wanted: list[str | int] = [results] * len(graph.outputs)
        for output, at in written.items():
            wanted[output] = at
        if self._count_of_stages > 1:
            return self._staged(graph, entries, known, fixed, wanted, written)
        found = partition(graph, world(), self.ranks, known, fixed, wanted)
        for (kind, value), dims in zip(entries, found.inputs, strict=True):
            free = isinstance(value, Parameter) and value._placement is None
            if kind == "state" and free and any(dims):
                names = tuple((a, found.mesh.name(a)) for axes in dims for a in axes)
                self._parts.append((value, Placement(dims, found.mesh.ranks, names)))
        return found

    def _known(self, graph: Graph, entries: Entries) -> tuple[dict[int, Placement], set[int]]:
        """Return the placements of inputs that are known, and the inputs whose layout is fixed."""
        known: dict[int, Placement] = {}
        fixed = set(range(graph.n_params))
        for i, (kind, value) in enumerate(entries):
            if kind == "arg":
                known[i] = self._arguments[value]
            elif kind == "state" and isinstance(value, Parameter):
                placement = value._placement or value._plan
                if isinstance(placement, StagePlacement):  # its layout is the same on every stage
                    known[i] = Placement(placement.dims, self.ranks, placement.names)
                elif placement is not None:
                    check_divisible(f"Parameter {value.name}", _shape(graph, i), placement)
                    known[i] = placement
                else:
                    fixed.discard(i)
        return known, fixed

    def _staged(
        self,
        graph: Graph,
        entries: Entries,
        known: Mapping[int, Placement],
        fixed: Collection[int],
        wanted: Sequence[str | int],
        written: Mapping[int, int],
    ) -> Divided:
        """Cut a program into pipeline stages, and partition this rank's among the stage's ranks.

        All ranks propagate the layouts of the whole program, so that both ends of a message know
        how its tensor is sharded. `known`, `fixed` and `wanted` are those of `partition`; `written`
        is that of `_cut`.
        """
        whole = layouts(graph, self.ranks, known, fixed, wanted) if len(self.ranks) > 1 else None
        if whole is not None:
            graph = whole.graph
            known = {i: whole.placement(i) for i in range(graph.n_params)}
        stages = self._cut(graph, entries, written)
        messages: dict[int, Placement] = {}
        if whole is not None:
            messages = {tag: whole.placement(m.value) for tag, m in stages.messages.items()}
        here = {
            i: p for i, p in known.items() if stages.owners.get(i, stages.stage) == stages.stage
        }
        every = range(graph.n_params)
        found = partition(stages.graph, world(), self.ranks, here, every, wanted, messages)
        for i, (_, value) in enumerate(entries):
            if i not in stages.owners or value._placement is not None:
                continue
            owner, shape = stages.owners[i], value._type.shape
            placement = known.get(i) or Placement(((),) * len(shape), self.ranks)
            mesh = found.mesh if whole is None else whole.mesh  # it has the axes of all stages
            names = tuple((a, mesh.name(a)) for axes in placement.dims for a in axes)
            ranks, own = stage_ranks(owner), owner == stages.stage
            staged = StagePlacement(placement.dims, ranks, names, shape, owner, own, all_ranks())
            self._parts.append((value, staged))
        return dataclasses.replace(found, stages=stages)

    def _cut(self, graph: Graph, entries: Entries, written: Mapping[int, int]) -> Stages:
        """Return what this rank's pipeline stage runs of a program.

        Args:
            graph: the program on global tensors.
            entries: the source of each input.
            written: position of an output -> position of the input whose new value it is.
        """
        parameters = {
            i for i, (kind, v) in enumerate(entries) if kind == "state" and isinstance(v, Parameter)
        }
        placed = {i: entries[i][1]._placement for i in parameters}
        known = {i: p.stage for i, p in placed.items() if isinstance(p, StagePlacement)}
        own = own_rank() - self.ranks[0]
        found = cut(
            graph, self._count_of_stages, own_stage(), known, parameters, written,
            lambda stage: stage_ranks(stage)[own], WORLD_NAMES[0], pipeline_scheduler(),
        )  # fmt: skip
        types = list(found.graph.types)
        for i, owner in found.owners.items():
            kind = types[i]
            if owner != found.stage and isinstance(kind, TensorType):
                types[i] = kind.with_(shape=(0, *kind.shape[1:]))
        return dataclasses.replace(found, graph=dataclasses.replace(found.graph, types=types))

    def take_parts(self) -> None:
        """Replace the values of divided Parameters by what this rank holds of them.

        A Parameter is replicated until the first program that divides it is compiled. One of
        another pipeline stage becomes empty.
        """
        for parameter, placement in self._parts:
            part = placement.part(parameter._type.shape, own_rank())
            made = Tensor(np.array(parameter.asnumpy()[part], order="C"), parameter.dtype)
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
