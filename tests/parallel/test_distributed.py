"""`mint.distributed` and `comm_func` on ranks that are threads, and on processes of MPI."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import distributed_calls as calls
import duograph as ms
import pytest
from duograph import communication as comm
from duograph import mint
from duograph.communication import comm_func as F
from duograph_collectives.local import run_ranks

D = mint.distributed


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("mode", calls.MODES)
@pytest.mark.parametrize("name", calls.CASES)
def test_calls_on_threads(name: str, mode: str, size: int) -> None:
    def program() -> None:
        for dtype in calls.dtypes_of(name, mode):
            calls.check(name, mode, dtype)

    run_ranks(program, size)


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
@pytest.mark.parametrize("size", [2, 4])
def test_calls_on_processes(size: int) -> None:
    script = pathlib.Path(calls.__file__)
    done = subprocess.run(
        [sys.executable, "-m", "duograph.run", "-n", str(size), str(script)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


X = ms.Tensor([1.0, 2.0])
ONE, TWO = X[:1].copy(), [X.copy(), X.copy()]
# what rank 0 of 2 calls -> (call, error, text); the same on both ranks
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no tensor": (lambda: D.all_reduce([1.0]), TypeError, "all_reduce: got list for tensor; want"),
    "reduction": (lambda: D.all_reduce(X, "mean"), TypeError, "got op='mean'; wanted one of sum"),
    "mean of ints": (
        lambda: D.all_reduce(ms.Tensor([1]), "avg"), TypeError, "op='avg' for int64; wanted a fl",
    ),
    "mean of comm_func": (lambda: F.all_reduce(X, "avg"), TypeError, "wanted one of sum, prod"),
    "flag": (lambda: D.all_reduce(X, async_op=1), TypeError, "async_op=1; wanted True or False"),
    "group of a number": (lambda: D.barrier(3), TypeError, "got group=3; wanted a string or None"),
    "group": (lambda: D.barrier("no"), ValueError, "barrier: got group='no'; wanted one of"),
    "root": (lambda: D.broadcast(X, 2), ValueError, "broadcast: got src=2; wanted 0, 1, the ranks"),
    "root of a kind": (lambda: D.reduce(X, 1.0), TypeError, "reduce: got dst=1.0; wanted an int"),
    "length of a list": (
        lambda: D.all_gather([X], X), TypeError, "got 1 for tensor_list; wanted a list of 2",
    ),
    "dtypes of a list": (
        lambda: D.all_gather([X, ms.Tensor([1, 2])], X), TypeError,
        r"got tensor_list\[1\] of int64 and tensor_list\[0\] of float32; wanted one dtype",
    ),
    "shape of a list": (
        lambda: D.all_gather([ONE, ONE], X), TypeError,
        r"got tensor of float32 \(2,\); wanted float32 \(1,\)",
    ),
    "shape": (
        lambda: D.all_gather_into_tensor(X, X), ValueError,
        r"got output_tensor of float32 \(2,\); wanted float32 \(4,\)",
    ),
    "dtype": (
        lambda: D.reduce_scatter_tensor(ms.Tensor([1]), X), ValueError,
        r"got output of int64 \(1,\); wanted float32 \(1,\)",
    ),
    "no axis": (
        lambda: D.all_gather_into_tensor(X, ms.Tensor(1.0)), ValueError, "got input_tensor without",
    ),
    "odd": (
        lambda: D.reduce_scatter_tensor(X, ONE), ValueError,
        "got an input of 1 rows without input_split_sizes; wanted a multiple of 2",
    ),
    "lengths": (
        lambda: D.all_to_all_single(X, X, [1, 1], [2, 1]), ValueError,
        r"input_split_sizes=\[2, 1\]; wanted 2 lengths, which sum to 2",
    ),
    "lengths of a kind": (
        lambda: D.all_to_all_single(X, X, [1, 1], [2.0, 0]), TypeError, "wanted ints of 0 or more",
    ),
    "own part": (
        lambda: D.all_to_all(TWO, [ONE, ONE]), TypeError,
        r"output_tensor_list\[\d\] of float32 \(2,\); wanted float32 \(1,\)",
    ),
    "matrix": (lambda: F.all_to_all_v_c(X, X, [1]), TypeError, "of 1 ints; wanted 4, the square"),
    "to itself": (lambda: D.send(X, comm.get_rank()), ValueError, "this rank; wanted another one"),
    "tag": (lambda: D.isend(X, 1 - comm.get_rank(), tag=-1), ValueError, "tag=-1; wanted 0 to"),
    "tag of a batch": (lambda: D.P2POp("isend", X, 1, tag=2), ValueError, "tag=2; wanted 0"),
    "no batch": (lambda: D.batch_isend_irecv([]), TypeError, r"got \[\]; wanted a list of P2POp"),
    "shape to send": (lambda: F.P2POp("isend", (2,), 1), TypeError, "wanted a Tensor to send"),
    "objects": (lambda: D.all_gather_object([1], 1), TypeError, r"\[1\]; wanted a list of 2"),
    "objects compiled": (
        lambda: ms.jit(lambda x: D.all_gather_object([1, 2], 1), jit_syntax_level="STRICT")(X),
        RuntimeError, "all_gather_object cannot be compiled",
    ),
    "other shapes": (
        lambda: D.all_reduce(X if comm.get_rank() else ONE.copy()), RuntimeError,
        r"different collectives: rank 0: AllReduce\(sum\) of float32 \(1,\)",
    ),
    "other roots": (
        lambda: D.broadcast(X.copy(), comm.get_rank()), RuntimeError, "Broadcast from rank 1",
    ),
    "other calls": (
        lambda: D.barrier() if comm.get_rank() else D.all_reduce(X.copy(), async_op=True).wait(),
        RuntimeError, "rank 1: Barrier",
    ),
    "other messages": (
        lambda: D.recv(ONE.copy(), 0) if comm.get_rank() else D.send(X, 1), RuntimeError,
        r"Receive of float32 \(1,\) from rank 0: rank 0 sends float32 \(2,\)",
    ),
    "other parts": (
        lambda: D.all_to_all_single(
            ms.Tensor([0.0] * (3 + comm.get_rank())), ms.Tensor([0.0] * (3 + comm.get_rank())),
            *([1, 2], [1, 2]) if comm.get_rank() == 0 else ([3, 1], [3, 1]),
        ), RuntimeError, "member . of the group sends . rows to member ., which receives . rows",
    ),
    "other shapes to gather": (
        lambda: F.gather_into_tensor(ms.Tensor([1.0] * (2 + comm.get_rank())), 0), RuntimeError,
        "member 1 of the group sends 3 rows to member 0, which receives 2 rows",
    ),
    "other shapes to scatter": (
        lambda: F.scatter_tensor(ms.Tensor([1.0] * (2 + 2 * comm.get_rank())), 0), RuntimeError,
        "member 0 of the group sends 1 rows to member 1, which receives 2 rows",
    ),
    "groups in another order": (
        lambda: [comm.create_group(name, [0, 1]) for name in "ab"[:: 1 - 2 * comm.get_rank()]],
        RuntimeError, "form different groups: rank . forms '.' of the ranks 0, 1 at .*; rank",
    ),
    "members in another order": (
        lambda: comm.create_group("g", [comm.get_rank(), 1 - comm.get_rank()]), RuntimeError,
        "form different groups: rank . forms 'g' of the ranks ., . at ",
    ),
    "members of new_group": (lambda: D.new_group([0, 2]), ValueError, "from 0 to 1"),
    "kind of new_group": (lambda: D.new_group("01"), TypeError, "wanted a list of ints or None"),
    "backend of new_group": (
        lambda: D.new_group([0], backend="mpi"), ValueError, "backend='mpi'; wanted one of hccl",
    ),
    "size of the world": (
        lambda: D.init_process_group(world_size=3), ValueError, "world_size=3; wanted 2",
    ),
    "timeout": (
        lambda: D.init_process_group(timeout=5), TypeError, "timeout=5; wanted a datetime",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        run_ranks(call, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: D.recv(X.copy(), 1 - comm.get_rank()), r"Receive of float32 \(2,\) from rank "),
        (
            lambda: D.barrier() if comm.get_rank() else comm.create_group("g", [0, 1]),
            r"Barrier at .* on rank 1 waited|create_group\('g'\): message from rank 1 .*waited",
        ),
    ],
    ids=["a message", "a group"],
)
def test_waits_for_a_rank_that_does_something_else_end_at_the_deadline(
    call: Callable[[], Any], text: str
) -> None:
    before = ms.get_context("communication_timeout")
    ms.set_context(communication_timeout=0.3)
    try:
        with pytest.raises(RuntimeError, match=text):
            run_ranks(call, 2)
    finally:
        ms.set_context(communication_timeout=before)


def test_a_handle_that_failed_fails_again() -> None:
    def program() -> list[str]:
        handle = D.all_reduce(X.copy() if comm.get_rank() else ONE.copy(), async_op=True)
        found = []
        for _ in range(2):
            with pytest.raises(RuntimeError) as caught:
                handle.wait()
            found.append(str(caught.value))
        return found

    for first, second in run_ranks(program, 2):
        assert "different collectives" in first
        assert first.partition("\n")[0] == second.partition("\n")[0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64], ids=str)
def test_averages_do_not_overflow(dtype: Any, compiled: bool) -> None:
    """The largest float16 is the average of itself and itself."""
    most = 65504.0 if dtype is ms.float16 else 2.0**126

    def program() -> list[list[float]]:
        def run(x: ms.Tensor) -> tuple[ms.Tensor, ...]:
            reduced, whole, part = x.copy(), x.copy(), x[:1]
            D.reduce(reduced, 0, "avg")
            D.all_reduce(whole, "avg")
            D.reduce_scatter_tensor(part, x.copy(), "avg")
            return reduced, whole, part

        x = ms.Tensor([most, 1.0 + comm.get_rank()], dtype)
        found = (ms.jit(run) if compiled else run)(x)
        assert all(y.dtype is dtype for y in found)
        return [y.astype(ms.float64).asnumpy().tolist() for y in found]

    first, second = run_ranks(program, 2)
    assert first == [[most, 1.5], [most, 1.5], [most]]
    assert second == [[most, 2.0], [most, 1.5], [1.5]]


def test_objects() -> None:
    def program() -> list[Any]:
        rank, last = comm.get_rank(), 3
        whole: list[Any] = [None] * 4
        D.all_gather_object(whole, {"rank": rank, "text": "x" * 1000 * rank})
        told: list[Any] = [rank, ["from", rank]]
        D.broadcast_object_list(told, 2)
        found: list[Any] = [None] * 4
        D.gather_object((rank,), found if rank == last else None, last)
        own: list[Any] = [None]
        D.scatter_object_list(own, [f"for {r}" for r in range(4)] if rank == 1 else [], 1)
        if rank == 0:
            D.send_object_list([1, "two"], last)
        received: list[Any] = [None, None]
        if rank == last:
            assert D.recv_object_list(received, 0) == 0
        assert [len(w["text"]) for w in whole] == [0, 1000, 2000, 3000]
        return [[w["rank"] for w in whole], told, found, own, received]

    found = run_ranks(program, 4)
    for rank, (whole, told, gathered, own, received) in enumerate(found):
        assert (whole, told, own) == ([0, 1, 2, 3], [2, ["from", 2]], [f"for {rank}"])
        assert gathered == ([(0,), (1,), (2,), (3,)] if rank == 3 else [None] * 4)
        assert received == ([1, "two"] if rank == 3 else [None, None])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_groups(compiled: bool) -> None:
    """Ranks in arguments are those of the world, results are in the order of the group."""

    def program() -> tuple[Any, ...]:
        rank = comm.get_rank()
        D.init_process_group("nccl")
        odd, even = D.new_group([3, 1]), D.new_group([0, 2])
        mine = odd if rank % 2 else even

        def f(x: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
            out = ms.ops.zeros((2,), ms.float32)
            D.all_gather_into_tensor(out, x, mine)
            y = x.copy()
            D.broadcast(y, 3 if rank % 2 else 2, mine)
            return out, y

        out, y = (ms.jit(f) if compiled else f)(ms.Tensor([float(rank)]))
        other = even if rank % 2 else odd
        with pytest.raises(ValueError, match="is no member of the group"):
            D.all_reduce(X, group=other)
        with pytest.raises(ValueError, match=r"src=\d; wanted ., ., the ranks of the world in"):
            D.broadcast(X, 1 - rank % 2, mine)
        assert D.new_group([1, 3]) == odd  # the same group
        facts = (
            D.get_rank(mine), D.get_rank(other), D.get_world_size(other), D.get_backend(mine),
            D.get_global_rank(mine, 1), D.get_process_group_ranks(other),
        )  # fmt: skip
        D.destroy_process_group()
        assert D.get_backend() == "hccl"
        return out.tolist(), y.tolist(), facts

    found = run_ranks(program, 4)
    assert found[1] == ([1.0, 3.0], [3.0], (0, -1, -1, "nccl", 3, [0, 2]))
    assert found[2] == ([0.0, 2.0], [2.0], (1, -1, -1, "nccl", 2, [1, 3]))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_gradients_of_comm_func(compiled: bool) -> None:
    """Name -> (call, gradient of x on each of 2 ranks for cotangents of 1 + rank)."""
    calls_of: dict[str, tuple[Callable[[ms.Tensor], ms.Tensor], Callable[[int], list[float]]]] = {
        "all_reduce": (lambda x: F.all_reduce(x)[0], lambda r: [3.0, 3.0]),
        "all_gather": (lambda x: F.all_gather_into_tensor(x)[0], lambda r: [3.0, 3.0]),
        "reduce_scatter": (lambda x: F.reduce_scatter_tensor(x)[0], lambda r: [1.0, 2.0]),
        "broadcast": (lambda x: F.broadcast(x, 0), lambda r: [1.0 + r] * 2),
        "reduce": (lambda x: F.reduce(x, 1), lambda r: [2.0, 2.0]),
        "gather": (lambda x: F.gather_into_tensor(x, 1), lambda r: [2.0, 2.0]),
        "scatter": (lambda x: F.scatter_tensor(x, 1), lambda r: [1.0, 2.0] if r else [0.0, 0.0]),
    }

    def program() -> dict[str, list[float]]:
        weight = 1.0 + comm.get_rank()
        found = {}
        for name, (call, _) in calls_of.items():
            back = ms.grad(lambda x, call=call: (call(x) * weight).sum())
            found[name] = (ms.jit(back) if compiled else back)(X.copy()).tolist()
        return found

    for rank, found in enumerate(run_ranks(program, 2)):
        assert found == {name: gradient(rank) for name, (_, gradient) in calls_of.items()}


def test_handles_are_finished_in_any_order() -> None:
    """Collectives and messages of several groups are under way at once."""

    def program() -> list[Any]:
        rank = comm.get_rank()
        pair = D.new_group([0, 1] if rank < 2 else [2, 3])
        big = ms.ops.full((20000,), float(rank), dtype=ms.float32)
        sums, parts, got = big.copy(), big.copy(), ms.ops.zeros((20000,), ms.float32)
        handles = [
            D.all_reduce(sums, async_op=True), D.all_reduce(parts, group=pair, async_op=True),
            D.isend(big, rank ^ 1), D.irecv(got, rank ^ 1),
        ]  # fmt: skip
        for handle in reversed(handles):
            handle.wait()
            handle.wait()  # has no effect
        return [x[[0, -1]].tolist() for x in (sums, parts, got)]

    for rank, found in enumerate(run_ranks(program, 4)):
        pair = [1.0, 1.0] if rank < 2 else [5.0, 5.0]
        assert found == [[6.0, 6.0], pair, [float(rank ^ 1)] * 2]
