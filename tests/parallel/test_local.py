"""Collectives, their gradients and data-parallel training on ranks that are threads."""

from __future__ import annotations

import functools
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import duograph as ms
import numpy as np
import pytest
import rank_programs as programs
from duograph import communication as comm
from duograph import nn, ops
from duograph.backend.collectives import Request
from duograph.errors import CommunicationError
from duograph.ranks import transfers
from duograph.ranks.buckets import LANES
from duograph.ranks.world import Group, world
from duograph_collectives.local import run_ranks
from rank_programs import COMPILED, EAGER, NETWORKS

MODES = pytest.mark.parametrize("mode", [EAGER, COMPILED], ids=["eager", "compiled"])


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    before = ms.get_context("mode"), ms.get_context("communication_timeout")
    yield
    ms.set_context(mode=before[0], communication_timeout=before[1], engine_sums=False, jit_level="")


def own(rank: int, size: int) -> np.ndarray:
    """What a rank contributes, (2 * size, 3)."""
    return np.random.default_rng(rank).normal(size=(2 * size, 3)).astype(np.float32)


def tree(values: list[np.ndarray]) -> np.ndarray:
    while len(values) > 1:
        pairs = [a + b for a, b in zip(values[::2], values[1::2])]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


Call = Callable[[ms.Tensor, int], ms.Tensor]
Expect = Callable[[list[np.ndarray], int], np.ndarray]


def exchanged(values: list[np.ndarray], rank: int, size: int) -> np.ndarray:
    """AlltoAll with split_dim=0 and concat_dim=1."""
    return np.concatenate([np.split(v, size)[rank] for v in values], 1)


# name -> (collective of (x, size), what rank r gets of the values of all, the gradient of x on rank
# r for the cotangents of all)
COLLECTIVES: dict[str, tuple[Call, Expect, Expect | None]] = {
    "AllReduce": (lambda x, n: ops.AllReduce()(x), lambda v, r: tree(v), lambda d, r: tree(d)),
    "AllReduce max": (
        lambda x, n: ops.AllReduce(ops.ReduceOp.MAX)(x),
        lambda v, r: functools.reduce(np.maximum, v), None,
    ),
    "AllReduce prod": (
        lambda x, n: ops.AllReduce("prod")(x),
        lambda v, r: (v[0] * v[1]) * (v[2] * v[3]) if len(v) == 4 else v[0] * v[1], None,
    ),
    "AllGather": (
        lambda x, n: ops.AllGather()(x), lambda v, r: np.concatenate(v),
        lambda d, r: np.split(tree(d), len(d))[r],
    ),
    "ReduceScatter": (
        lambda x, n: ops.ReduceScatter()(x), lambda v, r: np.split(tree(v), len(v))[r],
        lambda d, r: np.concatenate(d),
    ),
    "Broadcast": (
        lambda x, n: ops.Broadcast(1)((x,))[0], lambda v, r: v[1], lambda d, r: d[r],
    ),
    "AlltoAll": (
        lambda x, n: ops.AlltoAll(n, 0, 1)(x), lambda v, r: exchanged(v, r, len(v)),
        lambda d, r: np.concatenate([np.split(v, len(d), 1)[r] for v in d]),
    ),
}  # fmt: skip


@MODES
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name: str, size: int, mode: int) -> None:
    call, expected, gradient = COLLECTIVES[name]

    def program() -> tuple[np.ndarray, np.ndarray | None]:
        rank = comm.get_rank()
        x = ms.Tensor(own(rank, size))
        run = ms.jit(lambda x: call(x, size)) if mode == COMPILED else lambda x: call(x, size)
        out = run(x)
        if gradient is None:
            return out.asnumpy(), None
        weight = ms.Tensor(np.arange(out.size, dtype=np.float32).reshape(out.shape) + rank)
        back = ms.grad(lambda x: (run(x) * weight).sum())
        return out.asnumpy(), (ms.jit(back) if mode == COMPILED else back)(x).asnumpy()

    found = run_ranks(program, size)
    values = [own(r, size) for r in range(size)]
    shape = found[0][0].shape
    weights = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + r for r in range(size)]
    for r, (out, back) in enumerate(found):
        np.testing.assert_array_equal(out, expected(values, r))
        if gradient is not None:
            np.testing.assert_array_equal(back, gradient(weights, r))


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float64, ms.int32, ms.int8])
def test_sums_of_other_dtypes(dtype: Any) -> None:
    def program() -> np.ndarray:
        x = ms.Tensor(np.full((3,), comm.get_rank() + 0.75), ms.float32).astype(dtype)
        return ops.AllReduce()(x).astype(ms.float32).asnumpy()

    whole = dtype in (ms.int32, ms.int8)
    for out in run_ranks(program, 4):
        np.testing.assert_array_equal(out, np.full(3, 6.0 if whole else 9.0, np.float32))


@pytest.mark.parametrize("count", [1, 20_000], ids=["small", "large"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8], ids=lambda d: d.__name__)
@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
def test_sums_that_overflow_do_not_warn(dtype: Any, shape: tuple[int, ...], count: int) -> None:
    """As with kernels, the result is an infinity, or has the lowest bits."""
    info: Any = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    x = np.full(shape if count == 1 else (count,), info.max, dtype)
    for found in run_ranks(lambda: ops.AllReduce()(ms.Tensor(x)).asnumpy(), 2):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, x + x)


def test_large_sums_are_those_of_small_ones() -> None:
    """Above `transfers.SMALL` bytes ranks exchange parts; the order of the sum is the same."""
    x = np.random.default_rng(1).normal(size=(4, 20011)).astype(np.float32)
    program = lambda: ops.AllReduce()(ms.Tensor(x[comm.get_rank()])).asnumpy()  # noqa: E731
    for out in run_ranks(program, 4):
        np.testing.assert_array_equal(out, (x[0] + x[1]) + (x[2] + x[3]))


@MODES
def test_maximum_gives_its_gradient_to_the_largest(mode: int) -> None:
    def program() -> np.ndarray:
        f = ms.grad(lambda x: ops.AllReduce("max")(x * x).sum())
        x = ms.Tensor([1.0, 2.0] if comm.get_rank() else [3.0, -1.0])
        return (ms.jit(f) if mode == COMPILED else f)(x).asnumpy()

    first, second = run_ranks(program, 2)
    np.testing.assert_array_equal(first, [12.0, 0.0])  # both ranks send a cotangent of 1
    np.testing.assert_array_equal(second, [0.0, 8.0])


@MODES
def test_messages(mode: int) -> None:
    def program() -> np.ndarray:
        rank = comm.get_rank()
        x = ms.Tensor([1.0 + rank, 2.0])
        if rank == 0:
            run = lambda x: ops.Send(3, 1)(x * 2)  # noqa: E731
        else:
            run = lambda x: ops.Receive(3, 0, (2,), ms.float32)() + x  # noqa: E731
        call = ms.jit(run) if mode == COMPILED else run
        call(x * 5)
        return call(x).asnumpy()

    sent, received = run_ranks(program, 2)
    np.testing.assert_array_equal(sent, [2.0, 4.0])
    np.testing.assert_array_equal(received, [4.0, 6.0])


@MODES
def test_groups(mode: int) -> None:
    def program() -> tuple[Any, ...]:
        rank = comm.get_rank()
        for name, ranks in (("even", [0, 2]), ("odd", [3, 1])):
            comm.create_group(name, ranks)
        mine = "odd" if rank % 2 else "even"
        run = lambda x: ops.AllGather(group=mine)(x)  # noqa: E731
        found = (ms.jit(run) if mode == COMPILED else run)(ms.Tensor([float(rank)])).asnumpy()
        world = [comm.get_world_rank_from_group_rank(mine, i) for i in range(2)]
        with pytest.raises(ValueError, match="no member of the group"):
            ops.AllReduce(group="even" if rank % 2 else "odd")
        with pytest.raises(ValueError, match="exists already"):
            comm.create_group(mine, [rank])
        sizes = comm.get_group_size("odd"), comm.get_local_rank_size(), comm.get_rank(mine)
        comm.destroy_group(mine)
        return found.tolist(), world, sizes

    found = run_ranks(program, 4)
    assert found[0] == ([0.0, 2.0], [0, 2], (2, 4, 0))
    assert found[1] == ([3.0, 1.0], [3, 1], (2, 4, 1))
    assert found[3] == ([3.0, 1.0], [3, 1], (2, 4, 0))


def test_collectives_are_never_dropped_merged_or_reordered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of five collectives two are equal and three are unused; all run, in program order."""

    def f(x: ms.Tensor) -> ms.Tensor:
        y = ops.AllReduce()(x)
        ops.AllGather()(x)
        z = ops.AllReduce()(x)
        ops.AllReduce("max")(x)
        ops.ReduceScatter()(x)
        return y + z

    seen: dict[int, list[str]] = {0: [], 1: []}
    start = Group.start

    def noted(self: Group, text: str, *rest: Any) -> Any:
        seen[self.world.rank].append(text.split()[0])
        return start(self, text, *rest)

    monkeypatch.setattr(Group, "start", noted)

    def program() -> list[str]:
        run = ms.jit(f)
        for _ in range(LANES):  # the first buckets of a group form its lanes
            run(ms.Tensor([1.0, 2.0]))
        calls = seen[comm.get_rank()]
        calls.clear()
        run(ms.Tensor([1.0, 2.0]))
        return calls

    for calls in run_ranks(program, 2):
        assert calls == [
            "AllReduce(sum)", "AllGather", "AllReduce(sum)", "AllReduce(max)", "ReduceScatter(sum)",
        ]  # fmt: skip


# ---- training ------------------------------------------------------------------------------------


@functools.cache
def one_process(name: str, count: int) -> list[np.ndarray]:
    """What one process trains, line by line, with the gradients of `count` micro-batches."""
    return programs.micro_batches(name, count)


@MODES
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", NETWORKS)
def test_ranks_train_to_the_bits_of_one_process(name: str, size: int, mode: int) -> None:
    ms.set_context(mode=EAGER)
    expected = one_process(name, size)
    ms.set_context(mode=mode, jit_level="O0")
    for trained in run_ranks(programs.data_parallel, size, name):
        for a, b in zip(trained, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_number_of_ranks_does_not_matter(name: str, size: int) -> None:
    expected = one_process(name, 4)
    for trained in run_ranks(programs.micro_batches, size, name, 4):
        for a, b in zip(trained, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_parameters_of_rank_0_are_broadcast() -> None:
    def program() -> list[np.ndarray]:
        ms.set_seed(comm.get_rank())
        ms.set_auto_parallel_context(parallel_mode="data_parallel", parameter_broadcast=True)
        net = nn.Dense(3, 2)
        nn.TrainOneStepCell(net, nn.SGD(net.trainable_params()))
        return [p.asnumpy() for p in net.get_parameters()]

    first, second = run_ranks(program, 2)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def trained_by_model(
    seed: Callable[[int], int], rows: Callable[[int], int], parallel: str = "data_parallel",
    epochs: Callable[[int], int] = lambda rank: 2, broadcast: bool = False, sink_size: int = -1,
) -> Callable[[], None]:  # fmt: skip
    """Return a program that trains a Model; `seed`, `rows` and `epochs` are functions of rank."""

    def program() -> None:
        rank = comm.get_rank()
        ms.set_seed(seed(rank))
        ms.set_auto_parallel_context(parallel_mode=parallel, parameter_broadcast=broadcast)
        x = np.ones((rows(rank), 2), np.float32)
        data = ms.dataset.NumpySlicesDataset((x, x), shuffle=False).batch(2)
        net = nn.Dense(2, 2)
        model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
        sink = {"dataset_sink_mode": True, "sink_size": sink_size} if sink_size > 0 else {}
        model.train(epochs(rank), data, **sink)

    return program


def same(value: int) -> Callable[[int], int]:
    return lambda rank: value


# name -> (program, the error or warning, or None)
RANKS_OF_A_MODEL: dict[str, tuple[Callable[[], None], str | None]] = {
    "equal": (trained_by_model(same(1), same(4)), None),
    "other last batches": (trained_by_model(same(1), lambda rank: 3 + rank), None),
    "broadcast": (trained_by_model(lambda rank: rank, same(4), broadcast=True), None),
    "not parallel": (trained_by_model(lambda r: r, lambda r: 4 + 2 * r, "stand_alone"), None),
    "cut to the same steps": (trained_by_model(same(1), lambda r: 4 + 2 * r, sink_size=2), None),
    "cut too late": (
        trained_by_model(same(1), lambda r: 4 + 2 * r, sink_size=3),
        r"ArgumentValueError: .*0 has 2 steps in each of 2 epochs, and rank 1 has 3 steps in each",
    ),
    "seeds": (
        trained_by_model(lambda rank: rank, same(4)),
        "UserWarning: .*start from different values of weight.*set_seed with the same seed",
    ),
    "steps": (
        trained_by_model(same(1), lambda rank: 4 + 2 * rank),
        r"ArgumentValueError: .*0 has 2 steps in each of 2 epochs, and rank 1 has 3 steps in each",
    ),
    "epochs": (
        trained_by_model(same(1), same(4), epochs=lambda rank: 2 + rank),
        r"ArgumentValueError: .*2 steps in each of 2 epochs, and rank 1 has 2 steps in each of 3",
    ),
}


@pytest.mark.parametrize("name", RANKS_OF_A_MODEL)
def test_a_model_compares_its_ranks(name: str) -> None:
    program, expected = RANKS_OF_A_MODEL[name]
    said = "nothing"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run_ranks(program, 2)
        except ValueError as error:
            said = f"{type(error).__name__}: {error}"
    found = [w for w in caught if "ranks start from" in str(w.message)]
    if found:
        said = f"UserWarning: {found[0].message}"
    assert re.match(expected or "nothing", said, re.DOTALL), said


@MODES
def test_model_trains_on_shards(mode: int) -> None:
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    y = x.sum(1, keepdims=True)

    def program() -> list[np.ndarray]:
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
        ms.set_seed(1)
        net = nn.Dense(4, 1)
        data = ms.dataset.NumpySlicesDataset(
            (x, y), shuffle=False, num_shards=comm.get_group_size(), shard_id=comm.get_rank()
        ).batch(4)
        model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
        model.train(2, data, dataset_sink_mode=False)
        return [p.asnumpy() for p in net.get_parameters()]

    ms.set_context(mode=mode)
    first, second = run_ranks(program, 2)
    (alone,) = run_ranks(program, 1)
    for a, b, c in zip(first, second, alone, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()  # one rank takes twice as many steps


@MODES
@pytest.mark.parametrize("cut", [3, 1, 5], ids=lambda n: f"{n} of 6 samples")
def test_statistics_of_all_ranks(mode: int, cut: int) -> None:
    """SyncBatchNorm on two parts is BatchNorm on the whole batch, gradients included."""
    x = np.random.default_rng(2).normal(size=(6, 3, 4)).astype(np.float32)
    weight = np.random.default_rng(3).normal(size=x.shape).astype(np.float32)

    def program(layer: type[nn.Cell], parts: bool) -> list[np.ndarray]:
        rows = slice(None)
        if parts:
            rows = slice(cut, None) if comm.get_rank() else slice(cut)
        net = layer(3).set_train()
        w = ms.Tensor(weight[rows])
        step = ms.value_and_grad(lambda x: (net(x) * w).sum(), 0, net.trainable_params())
        run = ms.jit(step) if mode == COMPILED else step
        _, (dx, dw) = run(ms.Tensor(x[rows]))
        dw = nn.DistributedGradReducer([])(dw)
        return [dx.asnumpy(), *(d.asnumpy() for d in dw), net.moving_variance.asnumpy()]

    whole = program(nn.BatchNorm1d, False)
    parts = run_ranks(program, 2, nn.SyncBatchNorm, True)
    found = [np.concatenate([p[0] for p in parts]), *parts[0][1:]]
    for a, b in zip(found, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


# ---- errors --------------------------------------------------------------------------------------


def on_rank_1(act: Callable[[], Any]) -> Callable[[], Any]:
    """A program whose rank 1 acts, while rank 0 waits in an AllReduce."""
    return lambda: act() if comm.get_rank() else ops.AllReduce()(ms.Tensor([1.0]))


def fails() -> None:
    raise KeyError("mine")


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "another collective": (
        on_rank_1(lambda: ops.AllGather()(ms.Tensor([1.0]))), CommunicationError,
        r"different collectives: rank 0: AllReduce\(sum\) of float32 \(1,\) at .*local.py:\d+; "
        r"rank 1: AllGather of float32 \(1,\) at .*test_local.py:\d+",
    ),
    "another shape": (
        on_rank_1(lambda: ops.AllReduce()(ms.Tensor([1.0, 2.0]))), CommunicationError, r"\(2,\)",
    ),
    "another dtype": (
        on_rank_1(lambda: ops.AllReduce()(ms.Tensor([1]))), CommunicationError, "int64",
    ),
    "another program": (
        lambda: ms.jit(
            lambda x: ops.AllGather()(x) if comm.get_rank() else ops.AllReduce()(x)
        )(ms.Tensor([1.0])),
        CommunicationError, "different programs: collective 1 is rank 0: all_reduce.*rank 1: all_g",
    ),
    "a longer program": (
        lambda: ms.jit(
            lambda x: ops.AllReduce()(ops.AllReduce()(x)) if comm.get_rank() else ops.AllReduce()(x)
        )(ms.Tensor([1.0])),
        CommunicationError, "collective 2 is rank 0: nothing more; rank 1: all_reduce",
    ),
    "another reduction": (
        on_rank_1(lambda: ops.AllReduce("min")(ms.Tensor([1.0]))), CommunicationError, r"\(min\)",
    ),
    "a rank raises": (on_rank_1(fails), KeyError, "mine"),
    "a rank ends": (on_rank_1(lambda: None), CommunicationError, "rank 1 has ended"),
    "root": (lambda: ops.Broadcast(2), ValueError, "from 0 to 1"),
    "number of parts": (
        lambda: ops.AlltoAll(3, 0, 0)(ms.Tensor([1.0])), ValueError, "split_count=3; wanted 2",
    ),
    "axis": (lambda: ops.ReduceScatter()(ms.Tensor([1.0])), ValueError, "divisible by the 2 ranks"),
    "to itself": (lambda: ops.Send(0, comm.get_rank()), ValueError, "this rank"),
    "mode": (
        lambda: ms.set_auto_parallel_context(parallel_mode="hybrid_parallel"),
        NotImplementedError, "use 'stand_alone'",
    ),
    "device_num": (
        lambda: (
            ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=3),
            nn.TrainOneStepCell(nn.Dense(1, 1), nn.SGD(nn.Dense(1, 1).trainable_params())),
        ), ValueError, "device_num=3; wanted 2",
    ),
    "group": (lambda: ops.AllReduce(group="no"), ValueError, "wanted one of 'hccl_world_group'"),
    "member": (lambda: comm.create_group("g", [0, 2]), ValueError, "from 0 to 1"),
    "group of all": (lambda: comm.destroy_group("hccl_world_group"), ValueError, "all ranks"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    program, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        run_ranks(program, 2)


@MODES
def test_deadline_names_op_line_and_rank(mode: int) -> None:
    ms.set_context(communication_timeout=0.3)

    failed = threading.Event()

    def wait(x: ms.Tensor) -> ms.Tensor:
        return ops.AllReduce()(x)

    def program() -> None:
        if comm.get_rank() == 0:
            try:
                (ms.jit(wait) if mode == COMPILED else wait)(ms.Tensor([1.0]))
            finally:
                failed.set()
        else:
            failed.wait(300)

    what = r"comparing compiled programs" if mode == COMPILED else r"AllReduce\(sum\) of float32"
    text = what + r".* at .*test_local.py:\d+ on rank 0 waited 0.3 s"
    with pytest.raises(CommunicationError, match=text):
        run_ranks(program, 2)


@pytest.mark.parametrize("where", ["in a transfer", "between transfers"])
def test_an_interrupted_collective_has_no_result(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while ranks communicate: a later call must not take None for the result."""

    def interrupted(values: Any, reduction: str, scratch: bool = False) -> Any:
        raise KeyboardInterrupt

    def steps() -> Any:
        yield Interrupted()
        return "the result"

    def program() -> str:
        own = world().whole
        if where == "in a transfer":  # the wait can be repeated
            started = own.start("call", steps(), compared=False)
            with pytest.raises(KeyboardInterrupt):
                own.finish(started)
            return str(own.finish(started))
        with pytest.raises(KeyboardInterrupt):
            own.start_all_reduce(np.ones(1, np.float32), "sum")
        with pytest.raises(CommunicationError) as caught:
            own.start_all_reduce(np.ones(1, np.float32), "sum")
        return str(caught.value)

    if where == "between transfers":
        monkeypatch.setattr(transfers, "reduce_tree", interrupted)
    expected = "the result" if where == "in a transfer" else "AllReduce.*was interrupted"
    assert re.search(expected, run_ranks(program, 1)[0])


class Interrupted(Request):
    """A transfer whose first wait is interrupted."""

    tests = 0

    def test(self) -> bool:
        self.tests += 1
        if self.tests == 2:
            raise KeyboardInterrupt
        return self.tests > 2


def test_random_numbers_and_options_belong_to_the_rank() -> None:
    def program() -> tuple[float, int]:
        ms.set_seed(comm.get_rank())
        ms.set_auto_parallel_context(global_rank=comm.get_rank())
        return ops.rand(1).item(), ms.get_auto_parallel_context("global_rank")

    (a, zero), (b, one) = run_ranks(program, 2)
    assert (zero, one) == (0, 1)
    assert a != b
    assert ms.get_auto_parallel_context("global_rank") == 0
