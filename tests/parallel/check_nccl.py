"""Check the engine `nccl` on a machine with one GPU: a world of one rank, over the real library.

Usage: check_nccl.py [--device GPU]; with CUDA-emulated the library is the one of the tests.

NCCL runs with one rank too. Each collective then returns its operand, but the library, its
kernels, streams and events are the real ones. A line is printed for each case; the exit status is
1 if one fails. DUOGRAPH_NCCL names another library.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable

import duograph as ms
import emulated_nccl
import ml_dtypes  # noqa: F401 (NumPy's names of 16- and 8-bit floats)
import numpy as np
from duograph import nn
from duograph.backend import registry
from duograph.backend.collectives import Part
from duograph.dtype import bool_
from duograph.ops import collective_primitives as primitives
from duograph.ranks.world import World
from duograph.runtime_state import thread_state
from duograph_collectives.local import LocalCommunicator, _Shared
from duograph_collectives.nccl import NcclCommunicator
from duograph_collectives.nccl_device import NcclTransfers
from duograph_collectives.nccl_library import REDUCTIONS, TYPES, Library, NcclError, find

CASES: list[tuple[str, Callable[[], str | None]]] = []


def case(name: str) -> Callable[[Callable[[], str | None]], Callable[[], str | None]]:
    def add(function: Callable[[], str | None]) -> Callable[[], str | None]:
        CASES.append((name, function))
        return function

    return add


class State:
    """What later cases need of earlier ones."""

    name = "GPU"
    large = 1_000_003
    library: Library
    transfers: NcclTransfers


def device():
    return registry.backend(State.name).device(0)


def values(dtype, n: int) -> np.ndarray:
    return (np.arange(n) % 5).astype(dtype.np)


def into(array: np.ndarray):
    return device().copy_in(array)


def out_of(handle, like: np.ndarray) -> np.ndarray:
    return device().copy_out(handle, like.shape, like.dtype)


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.tobytes() == wanted.tobytes(), (found, wanted)


@case("load")
def _() -> str:
    found = find()
    assert isinstance(found, Library), found
    State.library = found
    return f"NCCL {found.version}"


@case("device")
def _() -> str:
    info = registry.backend(State.name).devices()[0]
    return f"{info.name}, {info.description}"


@case("communicator")
def _() -> str:
    begin = time.perf_counter()
    State.transfers = NcclTransfers(
        State.library, device(), 1, 0, State.library.unique_id(), 60.0, "the world"
    )
    return f"{time.perf_counter() - begin:.2f} s"


def lengths() -> tuple[int, ...]:
    return 1, 7, State.large


def _reductions() -> None:
    for dtype in (bool_, *TYPES):
        for reduction in REDUCTIONS:

            def run(dtype=dtype, reduction=reduction) -> None:
                t = State.transfers
                for n in lengths():
                    x = values(dtype, n)
                    given = into(x)
                    made = t.allocate(x.nbytes)
                    assert t.all_reduce([(given, made, n)], dtype, reduction, t.mark()).wait(60)
                    same(out_of(made, x), x)
                    made = t.allocate(x.nbytes)
                    assert t.reduce_scatter(given, made, n, dtype, reduction, t.mark()).wait(60)
                    same(out_of(made, x), x)

            CASES.append((f"all_reduce and reduce_scatter ({reduction}) of {dtype.name}", run))


_reductions()


@case("all_gather, broadcast, exchange of bytes")
def _() -> None:
    t = State.transfers
    for n in (0, *lengths()):
        x = (np.arange(n) % 251).astype(np.uint8)
        given = into(x)
        outs = [t.allocate(n) for _ in range(3)]
        t.all_gather(given, outs[0], n, t.mark()).wait(60)
        t.broadcast(given, outs[1], n, 0, t.mark()).wait(60)
        half = n // 2  # sent to this rank itself, in two messages that change places
        sends = [Part(given, 0, half, 0), Part(given, half, n - half, 0)]
        receives = [Part(outs[2], n - half, half, 0), Part(outs[2], 0, n - half, 0)]
        t.exchange(sends, receives, t.mark()).wait(60)
        same(out_of(outs[0], x), x)
        same(out_of(outs[1], x), x)
        same(out_of(outs[2], x), np.concatenate([x[half:], x[:half]]))


@case("asynchronous: test, behind work that is queued")
def _() -> str:
    t = State.transfers
    n = 16 * State.large
    x = ms.Tensor(np.ones(n, np.float32), device=State.name)
    for _ in range(20):
        x = x + 1.0
    made = t.allocate(4 * n)
    request = t.all_reduce([(x._buf, made, n)], TYPE32, "sum", t.mark())
    at_once, end = request.test(), time.monotonic() + 60
    while not request.test():
        assert time.monotonic() < end, "the event was not reached in 60 s"
        time.sleep(0)
    same(out_of(made, np.empty(n, np.float32)), np.full(n, 21, np.float32))
    return f"complete at once: {at_once}"


TYPE32 = next(d for d in TYPES if d.name == "float32")


@case("an error of NCCL")
def _() -> str:
    t = State.transfers
    try:
        t.broadcast(t.allocate(4), t.allocate(4), 4, 7, t.mark())
    except NcclError as error:
        return str(error)
    raise AssertionError("a root of 7 was accepted in a group of one rank")


@case("close, and a communicator that is aborted")
def _() -> None:
    State.transfers.close()
    again = NcclTransfers(State.library, device(), 1, 0, State.library.unique_id(), 60.0)
    again.abort()


# ---- through the framework -----------------------------------------------------------------------

GROUP = "nccl_world_group"


@case("a world of one rank")
def _() -> str:
    host = LocalCommunicator(_Shared(), (), 0, range(1))
    thread_state.world = World("nccl", NcclCommunicator(host, State.library))
    ms.set_context(device_target=State.name)
    assert thread_state.world.whole.comm.serves(registry.backend(State.name), 0)
    return thread_state.world.engine


def copies() -> int:
    return device().memory_stats()["copies_out"]


CALLS = {
    "all_reduce sum": lambda x: primitives.all_reduce([x], reduction="sum", group=GROUP, size=1)[0],
    "all_reduce max": lambda x: primitives.all_reduce([x], reduction="max", group=GROUP, size=1)[0],
    "all_gather": lambda x: primitives.all_gather(x, group=GROUP, size=1),
    "reduce_scatter": lambda x: primitives.reduce_scatter(x, reduction="sum", group=GROUP, size=1),
    "broadcast": lambda x: primitives.broadcast_from([x], root=0, group=GROUP)[0],
    "all_to_all": lambda x: primitives.all_to_all(
        x, lengths=(len(x),), received=(len(x),), group=GROUP
    ),
}
OPS_DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int16", "uint8", "bool")


def _ops() -> None:
    for name, call in CALLS.items():

        def run(name=name, call=call) -> str:
            for dtype in OPS_DTYPES:
                for shape in (
                    ((), (0,), (1,), (4, 3)) if name.startswith("all_reduce") else ((5, 3),)
                ):
                    given = ms.Tensor(np.arange(15), dtype=getattr(ms, dtype), device=State.name)
                    x = given[: int(np.prod(shape))].reshape(shape)
                    for run in (call, ms.jit(call)):
                        before = copies()
                        found = run(x)
                        assert copies() == before, "it was copied to the host"
                        assert found.device == x.device
                        same(found.asnumpy(), x.asnumpy())
            return ", ".join(OPS_DTYPES)

        CASES.append((f"op {name}, eager and compiled", run))


_ops()


class Reducer(nn.Cell):
    """All-reduces gradients, with one rank too."""

    def construct(self, grads):
        return tuple(primitives.all_reduce(list(grads), reduction="sum", group=GROUP, size=1))


def training(reduces: str | None) -> tuple[bytes, int]:
    """Return the bytes of the Parameters after three steps, and the copies to the host."""
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(64, 1024), nn.ReLU(), nn.Dense(1024, 1024), nn.Dense(1024, 1))
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.01)
    )
    if reduces == "compiled":
        step.grad_reducer = Reducer()
    elif reduces == "eager":
        step.grad_reducer = nn.DistributedGradReducer(step.weights)
        step.grad_reducer.size = 2  # so that it does not leave one rank's gradients alone
    rng = np.random.default_rng(0)
    x = ms.Tensor(rng.normal(size=(32, 64)).astype(np.float32))
    y = ms.Tensor(rng.normal(size=(32, 1)).astype(np.float32))
    run = ms.jit(step) if reduces == "compiled" else step
    before = copies()
    for _ in range(3):
        run(x, y)
    made = copies() - before
    return b"".join(p.asnumpy().tobytes() for p in net.get_parameters()), made


@case("a training step, gradients reduced in buckets while the tape runs")
def _() -> str:
    ms.set_auto_parallel_context(parallel_mode="data_parallel")
    plain, usual = training(None)
    found, made = training("eager")
    assert found == plain, "other Parameters than without the reduction"
    assert made == usual, f"{made} copies to the host; {usual} without the reduction"
    return f"{made} copies to the host, {usual} without the reduction"


@case("a training step, compiled, with start and wait of collectives apart")
def _() -> str:
    plain, usual = training(None)
    found, made = training("compiled")
    worst = np.abs(np.frombuffer(found, np.float32) - np.frombuffer(plain, np.float32)).max()
    assert worst < 1e-4, worst
    assert made <= usual, f"{made} copies to the host; {usual} without the reduction"
    return f"{made} copies to the host; largest difference to eager {worst:.1e}"


@case("the end of the world")
def _() -> None:
    thread_state.world.end()
    thread_state.world.whole.close()
    thread_state.world = None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="GPU")
    State.name = parser.parse_args().device
    if State.name == emulated_nccl.DEVICE:
        emulated_nccl.prepare()
        State.large = 5003
    failed = 0
    for name, function in CASES:
        begin = time.perf_counter()
        try:
            said = function()
        except Exception:  # noqa: BLE001 (the next case is tried; the traceback is printed)
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
            if name in ("load", "device", "communicator"):
                break
            continue
        seconds = time.perf_counter() - begin
        print(f"passed {name} ({seconds:.3f} s){f': {said}' if said else ''}", flush=True)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
