"""Orders the nodes of a program that is cut into pipeline stages: one forward, one backward.

`sharding.stages` calls `one_forward_one_backward`. All ranks keep nodes of one common order, in
which every node comes after those that it reads. So no two ranks can wait for each other, whatever
the order is. The order decides how busy the stages are and how many activations they store, never
the results.

Source: Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", 2019;
Huang et al., "GPipe", 2019, for the other order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from ..effects import IO
from ..ir.graph import Graph, GraphNode

__all__ = ["one_forward_one_backward", "unit_order"]


class Unit(NamedTuple):
    """The work of one stage on one micro-batch: its forward pass, or its backward pass."""

    stage: int
    part: int
    backward: bool


def one_forward_one_backward(graph: Graph, stages: Sequence[int | None], count: int) -> list[int]:
    """Return the positions of a program's nodes in the order "one forward, one backward".

    After its first micro-batches, a stage alternates between a backward and a forward pass. Stage
    s of S stages therefore stores the activations of at most S - s micro-batches. The last
    micro-batch of the program goes first: its gradients are the first that are added.

    The order of the program is kept if it has no micro-batches, or if it prints or calls Python,
    which must happen in program order.

    Args:
        graph: the program.
        stages: for each node, its stage, or None for a node that all stages run.
        count: the number of stages.
    """
    nodes = graph.nodes
    units = [_unit(node, stage) for node, stage in zip(nodes, stages, strict=True)]
    parts = sorted({u.part for u in units if u is not None}, reverse=True)
    if len(parts) < 2 or any(isinstance(e, IO) for node in nodes for e in node.effects):
        return list(range(len(nodes)))
    ranks = {unit: rank for rank, unit in enumerate(unit_order(count, parts))}
    makers = {r: k for k, node in enumerate(nodes) for r in node.results}
    priorities: list[int] = []
    waiting: list[int] = []
    readers: list[list[int]] = [[] for _ in nodes]
    for node, unit in zip(nodes, units, strict=True):
        reads = {makers[i] for i in node.operands if i is not None and i in makers}
        k = len(priorities)
        for maker in reads:
            readers[maker].append(k)
        waiting.append(len(reads))
        after = max((priorities[m] for m in reads), default=-1)
        priorities.append(after if unit is None else max(after, ranks[unit]))
    ready = [(priorities[k], k) for k, n in enumerate(waiting) if not n]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, k = heapq.heappop(ready)
        order.append(k)
        for reader in readers[k]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (priorities[reader], reader))
    assert len(order) == len(nodes)
    return order


def unit_order(count: int, parts: Sequence[int]) -> list[Unit]:
    """Return the passes of all stages in the order in which a pipeline would start them.

    A backward pass is taken to last twice as long as a forward pass.

    Args:
        count: the number of stages.
        parts: the numbers of the micro-batches, in the order in which they enter the pipeline.
    """
    queues: list[list[Unit]] = []
    for stage in range(count):
        ahead = min(count - stage, len(parts))  # forward passes before the first backward pass
        forward = [Unit(stage, p, False) for p in parts]
        backward = [Unit(stage, p, True) for p in parts]
        queue = forward[:ahead]
        for i, unit in enumerate(backward):
            queue += [unit, *forward[ahead + i : ahead + i + 1]]
        queues.append(queue)
    ends: dict[Unit, int] = {}
    free = [0] * count
    started: list[tuple[int, int, Unit]] = []
    while any(queues):
        stage = min(
            (s for s, queue in enumerate(queues) if queue and _can_start(queue[0], count, ends)),
            key=lambda s: (_start(queues[s][0], count, ends, free[s]), s),
        )
        unit = queues[stage].pop(0)
        begin = _start(unit, count, ends, free[stage])
        free[stage] = ends[unit] = begin + (2 if unit.backward else 1)
        started.append((begin, len(started), unit))
    return [unit for _, _, unit in sorted(started)]


def _needs(unit: Unit, count: int) -> list[Unit]:
    """Return the passes of other stages that a pass waits for."""
    stage, part, backward = unit
    if not backward:
        return [Unit(stage - 1, part, False)] if stage else []
    return [Unit(stage + 1, part, True)] if stage < count - 1 else []


def _can_start(unit: Unit, count: int, ends: dict[Unit, int]) -> bool:
    return all(need in ends for need in _needs(unit, count))


def _start(unit: Unit, count: int, ends: dict[Unit, int], free: int) -> int:
    """Return the time at which the forward or backward pass `unit` starts on its stage.

    The stage is free from time `free` on; `ends` has the ends of the passes that `unit` needs.
    """
    return max([free, *(ends[need] for need in _needs(unit, count))])


def _unit(node: GraphNode, stage: int | None) -> Unit | None:
    """Return the pass that a node of stage `stage` belongs to; None if it belongs to none."""
    part = getattr(node.span, "part", None)
    if stage is None or part is None:
        return None
    return Unit(stage, part, bool(getattr(node.span, "backward", False)))
