"""Collectives that run beside kernels: what starts when, in both modes, and that bits stay."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
import rank_programs as programs
from duograph import communication as comm
from duograph import nn, ops
from duograph.backend.collectives import Request
from duograph.ir.graph import Graph
from duograph.ir.text import parse, to_text
from duograph.ir.verify import verify
from duograph.nn.wrap import data_parallel
from duograph.passes.context import PLAIN
from duograph.ranks import buckets
from duograph.ranks.operations import Operation
from duograph.ranks.world import World, world
from duograph_collectives.local import run_ranks
from rank_programs import COMPILED, EAGER, NETWORKS

# the package has a function of that name
overlapping = importlib.import_module("duograph.passes.overlap_collectives")


@pytest.fixture(autouse=True)
def _small_buckets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Buckets of 200 bytes, so that small networks have several."""
    monkeypatch.setattr(overlapping, "BUCKET_BYTES", 200)
    monkeypatch.setattr(data_parallel, "EARLY_BYTES", 200)
    mode, level = ms.get_context("mode"), ms.get_context("jit_level")
    yield
    ms.set_context(mode=mode, jit_level=level)


@functools.cache
def one_process(name: str, count: int) -> list[np.ndarray]:
    return programs.micro_batches(name, count)


@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "in parts"])
@pytest.mark.parametrize(
    ("mode", "level"),
    [(EAGER, "O0"), (COMPILED, "O0"), (COMPILED, "O1")],
    ids=["eager", "O0", "O1"],
)
@pytest.mark.parametrize("name", NETWORKS)
def test_bits_of_one_process(name: str, mode: int, level: str, sharded: bool) -> None:
    """At O1, kernels add in another order: then the ranks agree, and are near."""
    expected = one_process(name, 2)
    ms.set_context(mode=mode, jit_level=level)
    found = run_ranks(programs.data_parallel, 2, name, sharded)
    for a, b, c in zip(*found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        if level == "O1":
            np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(a, c)


# ---- the pass ------------------------------------------------------------------------------------


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


F = "float32[30]"  # 120 bytes: two of them need two buckets
HEAD = f"graph(%0: {F}, %1: {F}) {{\n"
REDUCE = 'reduction="sum", group="g", size=2'


def split(body: str) -> Graph:
    return verify(overlapping.overlap_collectives(verify(parse(f"{HEAD}{body}\n}}")), PLAIN))


# text before -> names of the ops after
ORDERS: dict[str, tuple[str, str]] = {
    "each starts behind its producer": (
        f"%2 = neg(%0) : {F}\n%3 = exp(%1) : {F}\n"
        f"%4, %5 = all_reduce(%3, %2, {REDUCE}) : {F}, {F}\n"
        f"%6 = add(%5, %4) : {F}\nreturn %6",
        "neg start exp start finish finish add",
    ),
    "buckets have the order of the operands, whenever these are computed": (
        f"%2 = neg(%0) : {F}\n%3 = exp(%1) : {F}\n"
        f"%4, %5 = all_reduce(%2, %3, {REDUCE}) : {F}, {F}\nreturn %4, %5",
        "neg exp start start finish finish",
    ),
    "collectives of a run keep their order": (
        f"%2 = neg(%0) : {F}\n%3 = exp(%1) : {F}\n"
        f"%4, = all_reduce(%2, {REDUCE}) : {F}\n%5, = all_reduce(%3, {REDUCE}) : {F}\n"
        "return %4, %5",
        "neg start exp start finish finish",
    ),
    "readers come before waits that they do not need": (
        f"%2 = neg(%0) : {F}\n%3 = exp(%1) : {F}\n"
        f"%4, %5 = all_reduce(%3, %2, {REDUCE}) : {F}, {F}\n"
        f"%6 = tanh(%4) : {F}\n%7 = sqrt(%5) : {F}\n%8 = sin(%0) : {F}\nreturn %6, %7, %8",
        "neg start exp start sin finish sqrt finish tanh",
    ),
    "a collective of a collective": (
        f"%2 = neg(%0) : {F}\n%3, = all_reduce(%2, {REDUCE}) : {F}\n"
        f"%4, = all_reduce(%3, {REDUCE}) : {F}\nreturn %4",
        "neg start finish start finish",
    ),
    "no start passes another collective": (
        f"%2 = neg(%0) : {F}\n"
        '%3 = all_gather(%1, group="g", size=2) : float32[60]\n'
        f"%4, = all_reduce(%2, {REDUCE}) : {F}\nreturn %3, %4",
        "neg all_gather start finish",
    ),
    "no other collective passes a start": (
        f"%2 = neg(%0) : {F}\n%4, = all_reduce(%2, {REDUCE}) : {F}\n"
        '%3 = all_gather(%1, group="g", size=2) : float32[60]\nreturn %3, %4',
        "neg start finish all_gather",
    ),
    "groups are apart, in order": (
        f"%2 = neg(%0) : {F}\n%3, = all_reduce(%1, {REDUCE}) : {F}\n"
        f'%4, = all_reduce(%2, reduction="sum", group="h", size=2) : {F}\nreturn %3, %4',
        "start neg start finish finish",
    ),
    "updates in parts": (
        f"%2 = neg(%0) : {F}\n%3 = exp(%1) : {F}\n"
        '%4, %5 = reduce_scatter_parts(%3, %2, group="g", size=2) : float32[15], float32[15]\n'
        "%6 = sin(%5) : float32[15]\n%7 = cos(%4) : float32[15]\n"
        '%8, %9 = all_gather_parts(%7, %6, shapes=((30,), (30,)), group="g", size=2) '
        f": {F}, {F}\nreturn %8, %9",
        "neg start exp start finish sin finish cos start finish",
    ),
    "none": (f"%2 = neg(%0) : {F}\nreturn %2", "neg"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders(name: str) -> None:
    body, expected = ORDERS[name]
    found = names(split(body))
    short = [n.replace("_collective", "") for n in found]
    assert " ".join(short) == expected


def test_graphs_without_collectives_are_left_alone() -> None:
    graph = parse(f"{HEAD}%2 = neg(%0) : {F}\nreturn %2\n}}")
    assert overlapping.overlap_collectives(graph, PLAIN) is graph


def test_split_graphs_print_and_parse() -> None:
    read = parse(to_text(split(ORDERS["each starts behind its producer"][0])))
    assert to_text(parse(to_text(verify(read)))) == to_text(read)


# ---- what starts when ----------------------------------------------------------------------------


def step_of(name: str) -> Callable[[], None]:
    """One data-parallel training step."""

    def program() -> None:
        programs.data_parallel(name)

    return program


def test_eager_buckets_start_before_the_backward_pass_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[int, int]] = []  # gradients known and buckets started, at each start
    start = data_parallel.EarlyReduction._start

    def watched(self: Any, sharded: bool, positions: list[int]) -> None:
        if comm.get_rank() == 0:
            seen.append((len(self.reported), len(self.weights)))
        start(self, sharded, positions)

    monkeypatch.setattr(data_parallel.EarlyReduction, "_start", watched)
    ms.set_context(mode=EAGER)
    run_ranks(step_of("gpt"), 2)
    early = [known for known, total in seen if known < total]
    assert len(early) >= 3 * programs.STEPS, seen
    assert {total for _, total in seen} == {12}


class Experts(nn.Cell):
    """Layers of the same shape, of which a call uses some."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.CellList([nn.Dense(5, 5) for _ in range(4)])

    def construct(self, x: ms.Tensor, used: tuple[int, ...]) -> ms.Tensor:
        for i in used:
            x = ops.tanh(self.experts[i](x))
        return x.sum()


@pytest.mark.parametrize("mode", [EAGER, COMPILED], ids=["eager", "compiled"])
@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "in parts"])
@pytest.mark.parametrize("nbytes", [100, 250, 2**21], ids=lambda n: f"{n} bytes")
@pytest.mark.parametrize(
    "used",
    [((0,), (1,)), ((0, 1, 2, 3), (3, 2, 1, 0)), ((0, 2), (2, 0)), ((), (3,)), ((1, 2), (2, 1, 3))],
    ids=str,
)
def test_ranks_may_use_other_layers(
    used: tuple[tuple[int, ...], ...],
    nbytes: int,
    sharded: bool,
    mode: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Gradients of the same weight are added, in whatever order the ranks compute them."""
    monkeypatch.setattr(data_parallel, "EARLY_BYTES", nbytes)
    monkeypatch.setattr(overlapping, "BUCKET_BYTES", nbytes)
    ms.set_context(mode=EAGER)
    data = np.random.default_rng(4).normal(size=(2, 3, 5)).astype(np.float32)

    def trained(ranks: list[int]) -> list[np.ndarray]:
        ms.set_seed(1)
        net = Experts()
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)

        def loss(*_: Any) -> ms.Tensor:
            return sum(net(ms.Tensor(data[r]), used[r]) for r in ranks) + ms.Tensor(0.0)

        if len(ranks) == 1:
            step: Any = nn.TrainOneStepCell(net, optimizer)
            ms.set_context(mode=mode)
            step(ms.Tensor(data[ranks[0]]), used[ranks[0]])
        else:
            optimizer(ms.value_and_grad(loss, None, optimizer.parameters)()[1])
        return [p.asnumpy() for p in net.get_parameters()]

    def program() -> list[np.ndarray]:
        ms.set_auto_parallel_context(
            parallel_mode="data_parallel", enable_parallel_optimizer=sharded,
            parallel_optimizer_config={"parallel_optimizer_threshold": 0},
        )  # fmt: skip
        return trained([comm.get_rank()])

    expected = trained([0, 1])
    for found in run_ranks(program, 2):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [EAGER, COMPILED], ids=["eager", "compiled"])
def test_transfers_are_advanced_between_kernels(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels poll after they have run while a collective is under way."""
    polls = []
    poll = World.poll

    def watched(self: World) -> None:
        if self.rank == 0 and any(queue.waiting for queue in self.queues):
            polls.append(self)
        poll(self)

    monkeypatch.setattr(World, "poll", watched)
    ms.set_context(mode=mode, jit_level="O0")
    run_ranks(step_of("gpt"), 2)
    assert len(polls) > 10 * programs.STEPS


class Slow(Request):
    """A transfer that is complete after `count` tests, as those of an engine with inner stages."""

    def __init__(self, count: int) -> None:
        self.left, self.tests = count, 0

    def test(self) -> bool:
        self.left -= 1
        self.tests += 1
        return self.left <= 0


# tests that each transfer of each queue needs -> how many of these transfers one poll completes
STAGES: dict[str, tuple[list[list[int]], list[int]]] = {
    "nothing": ([], []),
    "one": ([[1]], [1]),
    "several tests": ([[5, 5, 5]], [3]),
    "too many tests": ([[100]], [0]),
    "some, then too many": ([[3, 100, 1]], [1]),
    "queues": ([[2, 2], [3, 1]], [2, 2]),
    "one of the queues": ([[2, 2, 2, 2], [100]], [4, 0]),
}


@pytest.mark.parametrize("name", STAGES)
def test_a_poll_goes_on_while_it_finds_something(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine with inner stages, such as MPI, finds nothing several times before it is idle."""
    stages, complete = STAGES[name]

    def program() -> tuple[list[int], int]:
        own = world()
        monkeypatch.setattr(own.whole.comm, "idle_polls", 8)
        made = [[Slow(count) for count in row] for row in stages]
        for row in made:
            queue = own.new_queue()
            queue.waiting.append(Operation(own.whole, "slow", iter(row), queue, compared=False))
        own.poll()
        tests = sum(each.tests for row in made for each in row)
        for queue in own.queues:
            queue.waiting.clear()
        return [sum(each.left <= 0 for each in row) for row in made], tests

    ((found, tests),) = run_ranks(program, 1)
    assert found == complete
    assert tests < 40  # a poll between kernels must stay short


def test_hooks_of_parameters_run_before_the_sum() -> None:
    def program() -> tuple[np.ndarray, np.ndarray]:
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        ms.set_seed(1)
        net = nn.Dense(3, 2, has_bias=False)
        net.weight.register_hook(lambda g: g * 10)
        before = net.weight.asnumpy().copy()
        step = nn.TrainOneStepCell(
            nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 1.0)
        )
        x = ms.Tensor(np.full((2, 3), comm.get_rank() + 1, np.float32))
        y = ms.ops.zeros((2, 2), ms.float32)
        grads = ms.value_and_grad(step.network, None, step.weights)(x, y)[1]
        step(x, y)
        return before - net.weight.asnumpy(), grads[0].asnumpy()

    ms.set_context(mode=EAGER)
    (moved, first), (_, second) = run_ranks(program, 2)
    np.testing.assert_allclose(moved, first + second, rtol=1e-5)


def test_a_step_that_raises_leaves_no_listener() -> None:
    class Fails(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(2, 1)

        def construct(self, x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
            if self.training:
                raise KeyError("mine")
            return self.dense(x).sum()

    def program() -> bool:
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        net = Fails()
        step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params()))
        step.set_train()
        x = ms.ops.ones((2, 2), ms.float32)
        with pytest.raises(KeyError, match="mine"):
            step(x, x)
        return data_parallel.thread_state.leaf_listener is None

    ms.set_context(mode=EAGER)
    assert run_ranks(program, 2) == [True, True]


def test_parameters_that_nothing_reads_get_zeros() -> None:
    """The tape reports no gradient of them; they are combined at the end."""

    class Unused(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Dense(2, 1), nn.Dense(2, 1)

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            return self.used(x).sum() + ops.stop_gradient(self.unused(x)).sum()

    def program() -> list[np.ndarray]:
        ms.set_auto_parallel_context(parallel_mode="data_parallel")
        ms.set_seed(1)
        net = Unused()
        step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
        before = net.unused.weight.asnumpy().copy()
        for _ in range(2):
            step(ms.ops.ones((2, 2), ms.float32))
        return [net.unused.weight.asnumpy() - before, net.used.weight.asnumpy()]

    ms.set_context(mode=EAGER)
    (moved, used), (_, other) = run_ranks(program, 2)
    np.testing.assert_array_equal(moved, 0.0)
    np.testing.assert_array_equal(used, other)


# ---- layout of buckets ---------------------------------------------------------------------------

SHAPES: dict[str, list[tuple[int, ...]]] = {
    "even": [(4, 3), (8,)], "uneven": [(5,), (3, 3), (1,)], "empty": [(0,), (7,)],
    "0-d": [(), (2,)], "less than ranks": [(2,), (1, 1)],
}  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SHAPES)
def test_packing_is_undone(name: str, ranks: int) -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=s).astype(np.float32) for s in SHAPES[name]]
    packed = buckets.packed(arrays, ranks)
    assert packed.shape == (ranks, sum(-(-a.size // ranks) for a in arrays))
    for a, b in zip(buckets.unpacked(packed, SHAPES[name]), arrays, strict=True):
        np.testing.assert_array_equal(a, b)
    for rank in range(ranks):
        for part, a in zip(buckets.split_parts(packed[rank], SHAPES[name], ranks), arrays):
            n = buckets.part_length(a.size, ranks)
            own = np.zeros(n, np.float32)
            flat = a.reshape(-1)[rank * n : (rank + 1) * n]
            own[: flat.size] = flat
            np.testing.assert_array_equal(part, own)


@pytest.mark.parametrize("size", [2, 3])
def test_large_buckets_have_the_sums_of_single_tensors(size: int) -> None:
    shapes = [(101, 99), (7,), (), (64, 64), (0,)]

    def program() -> tuple[list[np.ndarray], list[np.ndarray]]:
        random = np.random.default_rng(comm.get_rank())
        tensors = [ms.Tensor(random.normal(size=s), ms.float32) for s in shapes]
        together = nn.DistributedGradReducer([], mean=False)(tuple(tensors))
        alone = [ops.AllReduce()(t) for t in tensors]
        return [t.asnumpy() for t in together], [t.asnumpy() for t in alone]

    ms.set_context(mode=EAGER)
    for together, alone in run_ranks(program, size):
        for a, b, shape in zip(together, alone, shapes, strict=True):
            assert a.shape == shape
            np.testing.assert_array_equal(a, b)
