"""A cost model of parallel training: latency and bandwidth of a machine give the time of a step.

`scaling.py` fits it to measurements and draws its predictions. It follows what duograph runs:
a collective is a comparison of 16 bytes, then an exchange of shards, a local sum, and a gather of
the sums (`core/duograph/ranks/transfers.py`); gradients travel in buckets, four of them in flight
(`ranks/buckets.py`, `passes/overlap_collectives.py`). It ignores topology: every rank has a link
of its own to a switch that is never congested. Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Sequence

SMALL = 32768  # bytes up to which every rank gathers all operands (`transfers.SMALL`)
COMPARED = 16  # bytes by which ranks compare their calls before a collective
BUCKET = 2 * 2**20  # bytes of a bucket of gradients (`overlap_collectives.BUCKET_BYTES`)
LANES = 4  # buckets in flight (`buckets.LANES`)
GATHERED = 25 * 2**20  # bytes of an all-gather of Parameters (`nn/optim/sharding.py`)


@dataclasses.dataclass(frozen=True)
class Machine:
    """What the model knows of a cluster.

    Attributes:
        name: label of tables and plots.
        phase: seconds from the start of a transfer to its end if it has no bytes and one peer.
        message: seconds that each further peer of a transfer adds.
        byte: seconds per byte that a rank sends or receives; its link is full duplex.
        summed: seconds per byte of an operand that a rank adds to another one.
        flops: floating-point operations per second of a rank in a training step.
        gradient_bytes: bytes of one gradient element.
        near_byte: as `byte`, between the ranks of one tensor-parallel replica; None: as `byte`.
        hidden: share of the communication that the backward pass could hide and does hide. An
            engine that is polled between kernels reaches less than 1.
    """

    name: str
    phase: float
    message: float
    byte: float
    summed: float
    flops: float
    gradient_bytes: int = 4
    near_byte: float | None = None
    hidden: float = 1.0


@dataclasses.dataclass(frozen=True)
class Phase:
    """One transfer of a collective, and the local sum that follows it.

    Attributes:
        latency: seconds in which the link is free for other transfers.
        transfer: seconds for which it uses the link.
        work: seconds of the rank's processor after the transfer.
    """

    latency: float
    transfer: float
    work: float = 0.0


def _phase(m: Machine, ranks: int, nbytes: float, work: float = 0.0) -> Phase:
    """Return a transfer in which a rank sends `nbytes` to each of the other ranks."""
    peers = ranks - 1
    return Phase(m.phase + m.message * (peers - 1), peers * nbytes * m.byte, work)


def all_gather(m: Machine, ranks: int, shard: float) -> list[Phase]:
    """Return the phases of an all-gather of `shard` bytes per rank."""
    return [_phase(m, ranks, COMPARED), _phase(m, ranks, shard)]


def all_reduce(m: Machine, ranks: int, size: float) -> list[Phase]:
    """Return the phases of an all-reduce of `size` bytes."""
    if size <= SMALL:
        return [
            _phase(m, ranks, COMPARED),
            _phase(m, ranks, size, m.summed * size * (ranks - 1)),
        ]
    shard = size / ranks
    return [
        _phase(m, ranks, COMPARED),
        _phase(m, ranks, shard, m.summed * shard * (ranks - 1)),
        _phase(m, ranks, shard),
    ]


def reduce_scatter(m: Machine, ranks: int, size: float) -> list[Phase]:
    """Return the phases of a reduce-scatter of `size` bytes."""
    shard = size / ranks
    return [
        _phase(m, ranks, COMPARED),
        _phase(m, ranks, shard, m.summed * shard * (ranks - 1)),
    ]


def alone(phases: Sequence[Phase]) -> float:
    """Return the seconds of a collective that nothing runs beside."""
    return sum(p.latency + p.transfer + p.work for p in phases)


def overlapped(buckets: Sequence[tuple[float, Sequence[Phase]]], lanes: int = LANES) -> float:
    """Return when the last of several collectives ends, beside a computation.

    Collective k starts when its operands are ready and collective k - `lanes` has ended. One
    transfer at a time uses the link; latencies overlap.

    Args:
        buckets: for each collective, when its operands are ready, and its phases; in the order in
            which they start.
    """
    ends = [math.inf] * len(buckets)
    free = 0.0  # when the link is free
    events = [(ready, k, 0) for k, (ready, _) in enumerate(buckets[:lanes])]
    heapq.heapify(events)
    while events:
        now, k, number = heapq.heappop(events)
        phases = buckets[k][1]
        if number == 2 * len(phases):
            ends[k] = now
            if k + lanes < len(buckets):
                heapq.heappush(events, (max(now, buckets[k + lanes][0]), k + lanes, 0))
            continue
        phase = phases[number // 2]
        if number % 2 == 0:
            heapq.heappush(events, (now + phase.latency, k, number + 1))
        else:
            free = max(now, free) + phase.transfer
            heapq.heappush(events, (free + phase.work, k, number + 1))
    return max(ends, default=0.0)


# ---- what is trained -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Layer:
    """One Parameter of a network: its elements, and the operations of a forward pass with it."""

    elements: int
    flops: float


@dataclasses.dataclass(frozen=True)
class Workload:
    """A training step of one rank.

    Attributes:
        layers: the Parameters in the order of the forward pass.
        activation: elements of the activation that a tensor-parallel block reduces.
        blocks: blocks of the network, each of which reduces it twice forward and twice backward.
    """

    name: str
    layers: tuple[Layer, ...]
    activation: int = 0
    blocks: int = 0

    @property
    def elements(self) -> int:
        return sum(layer.elements for layer in self.layers)

    def compute(self, m: Machine) -> float:
        """Return the seconds of forward and backward; a backward pass costs two forward ones."""
        return 3 * sum(layer.flops for layer in self.layers) / m.flops


def gpt2(batch: int, length: int = 1024, width: int = 768, depth: int = 12) -> Workload:
    """Return GPT-2 (Radford et al., 2019); the default sizes are those of the small one."""
    vocabulary, tokens = 50257, batch * length
    rows = [Layer((vocabulary + length) * width, 0)]
    for _ in range(depth):
        for inputs, outputs in ((1, 3), (1, 1), (1, 4), (4, 1)):
            n = inputs * outputs * width * width
            rows.append(Layer(n + outputs * width, 2 * n * tokens))
        rows.append(Layer(4 * width, 4 * batch * length * length * width))  # norms; attention
    rows.append(Layer(2 * width, 2 * vocabulary * width * tokens))  # the head is the embedding
    return Workload(f"GPT-2, {batch} x {length} tokens", tuple(rows), tokens * width, depth)


def resnet(batch: int, depths: Sequence[int] = (3, 4, 6, 3), size: int = 224) -> Workload:
    """Return a ResNet of bottleneck blocks (He et al., 2015); the default is ResNet-50."""
    rows: list[Layer] = []

    def convolution(inputs: int, outputs: int, kernel: int, side: int) -> None:
        n = inputs * outputs * kernel * kernel
        rows.append(Layer(n + 2 * outputs, 2.0 * n * side * side * batch))

    side = size // 2
    convolution(3, 64, 7, side)
    side, channels = side // 2, 64
    for stage, depth in enumerate(depths):
        inner = 64 * 2**stage
        for block in range(depth):
            first = block == 0
            before, side = side, side // 2 if first and stage else side
            convolution(channels, inner, 1, before)
            convolution(inner, inner, 3, side)
            convolution(inner, 4 * inner, 1, side)
            if first:
                convolution(channels, 4 * inner, 1, side)
            channels = 4 * inner
    rows.append(Layer(channels * 1000 + 1000, 2.0 * channels * 1000 * batch))
    return Workload(f"ResNet-{3 * sum(depths) + 2}, {batch} images", tuple(rows))


def vgg16(batch: int) -> Workload:
    """Return VGG-16 (Simonyan and Zisserman, 2014), whose last layers have most Parameters."""
    rows, side, channels = [], 224, 3
    for width, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(depth):
            n = channels * width * 9
            rows.append(Layer(n + width, 2.0 * n * side * side * batch))
            channels = width
        side //= 2
    for inputs, outputs in ((512 * 49, 4096), (4096, 4096), (4096, 1000)):
        n = inputs * outputs
        rows.append(Layer(n + outputs, 2.0 * n * batch))
    return Workload(f"VGG-16, {batch} images", tuple(rows))


# ---- strategies ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Step:
    """The predicted time of a step: its computation, and the communication that nothing hides."""

    compute: float
    exposed: float

    @property
    def seconds(self) -> float:
        return self.compute + self.exposed

    @property
    def efficiency(self) -> float:
        """The share of the step that is computation, as on one rank."""
        return self.compute / self.seconds


def _buckets(w: Workload, m: Machine, compute: float) -> list[tuple[float, float]]:
    """Return (seconds until ready, bytes) of the buckets of gradients, in the backward order."""
    total = sum(layer.flops for layer in w.layers) or 1.0
    now = compute / 3  # the forward pass
    found: list[tuple[float, float]] = []
    held = 0.0
    for layer in reversed(w.layers):
        now += 2 / 3 * compute * layer.flops / total
        size = layer.elements * m.gradient_bytes
        if held and held + size > BUCKET:
            found.append((now, held))
            held = 0.0
        held += size
    if held:
        found.append((now, held))
    return found


def _reduced(w: Workload, m: Machine, ranks: int, compute: float, collective) -> float:
    """Return the exposed seconds of reducing all gradients beside the backward pass."""
    work = 0.0
    buckets = []
    for ready, size in _buckets(w, m, compute):
        phases = collective(m, ranks, size)
        spent = sum(p.work for p in phases)
        # the processor adds gradients between kernels, so what follows is ready later
        buckets.append((ready + work, phases))
        work += spent
    best = max(overlapped(buckets), compute + work) - compute
    worst = sum(alone(phases) for _, phases in buckets)
    return best + (1 - m.hidden) * max(0.0, worst - best)


def data_parallel(w: Workload, m: Machine, ranks: int, compute: float | None = None) -> Step:
    """Return the step of data parallelism: gradients are all-reduced during the backward pass.

    `compute` replaces the predicted seconds of forward and backward by measured ones.
    """
    compute = w.compute(m) if compute is None else compute
    return Step(compute, _reduced(w, m, ranks, compute, all_reduce) if ranks > 1 else 0.0)


def zero(w: Workload, m: Machine, ranks: int) -> Step:
    """Return the step of ZeRO-1: gradients are reduce-scattered during the backward pass.

    The all-gather of the new Parameters follows the update, and nothing hides it.
    """
    compute = w.compute(m)
    if ranks == 1:
        return Step(compute, 0.0)
    size = w.elements * m.gradient_bytes
    count = math.ceil(size / GATHERED)
    after = count * alone(all_gather(m, ranks, size / count / ranks))
    return Step(compute, _reduced(w, m, ranks, compute, reduce_scatter) + after)


def tensor_parallel(w: Workload, m: Machine, ranks: int, ways: int) -> Step:
    """Return the step of `ways` tensor-parallel ranks in each of `ranks` / `ways` replicas.

    A rank has 1/`ways` of each layer. Activations are all-reduced between kernels, where nothing
    hides them; gradients are all-reduced over the replicas.
    """
    if not w.blocks:
        raise ValueError(f"{w.name}: tensor parallelism is modelled for transformers")
    compute = w.compute(m) / ways
    sizes = tuple(Layer(-(-r.elements // ways), r.flops / ways) for r in w.layers)
    local = dataclasses.replace(w, layers=sizes)
    between = 0.0
    if ways > 1:
        near = m if m.near_byte is None else dataclasses.replace(m, byte=m.near_byte)
        one = alone(all_reduce(near, ways, w.activation * m.gradient_bytes))
        between = 4 * w.blocks * one
    replicas = ranks // ways
    whole = compute + between
    beside = _reduced(local, m, replicas, whole, all_reduce) if replicas > 1 else 0.0
    return Step(compute, between + beside)
