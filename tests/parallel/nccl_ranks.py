"""Programs that the tests of the engine `nccl` run on each rank: `nccl_ranks.py WHAT`."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import distributed_calls
import duograph as ms
import numpy as np
import rank_programs
from duograph.backend import registry
from duograph.communication import get_rank
from duograph.ranks.world import world


def say(text: str) -> None:
    """Write a line at once, so that the lines of ranks do not mix."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def calls() -> None:
    """All calls of `mint.distributed` and `comm_func`, in the dtypes of the device."""
    known = registry.backend(ms.context.get_context("device_target")).dtypes
    for name in distributed_calls.CASES:
        for mode in distributed_calls.MODES:
            for dtype in distributed_calls.dtypes_of(name, mode):
                if dtype in known:
                    distributed_calls.check(name, mode, dtype)


TRAININGS: dict[str, tuple[str, bool, int]] = {
    "eager": ("mlp", False, ms.PYNATIVE_MODE),
    "compiled": ("mlp", False, ms.GRAPH_MODE),
    "sharded, eager": ("mlp", True, ms.PYNATIVE_MODE),
    "sharded, compiled": ("mlp", True, ms.GRAPH_MODE),
    "lstm": ("lstm", False, ms.PYNATIVE_MODE),
}


def trained(which: str) -> str:
    """The bits of the Parameters after training, as text."""
    name, sharded, mode = TRAININGS[which]
    ms.set_context(mode=mode, jit_level="O0")
    values = rank_programs.data_parallel(name, sharded)
    return b"".join(v.tobytes() for v in values).hex()


def train() -> None:
    for which in TRAININGS:
        say(f"{get_rank()} {which}: {trained(which)}")


def late() -> None:
    """An all-reduce whose contributions are lost, under a limit of 2 s."""
    ms.set_context(communication_timeout=2)
    x = ms.Tensor([1.0, 2.0, 3.0]) + 1.0
    total = ms.ops.AllReduce()(x)
    say(f"rank {get_rank()} goes on")
    say(str(total.asnumpy()))


# Kinds of calls of NCCL that a program makes: send, receive, all-reduce and so on.
WANTED = {"calls": (0, 1, 2, 3, 4, 5), "train": (0, 1)}


def main() -> None:
    found: dict[str, Any] = {"calls": calls, "train": train, "late": late}
    found[sys.argv[1]]()
    library = ctypes.CDLL(os.environ["DUOGRAPH_NCCL"])
    calls_by_kind = [library.fake_nccl_counted(kind) for kind in range(1, 7)]
    assert all(calls_by_kind[i] for i in WANTED[sys.argv[1]]), calls_by_kind
    assert world().engine.startswith("nccl"), world().engine
    np.testing.assert_array_equal(ms.ops.AllReduce()(ms.Tensor([1.0])).asnumpy(), [world().size])


if __name__ == "__main__":
    main()
