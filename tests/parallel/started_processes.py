"""A rank that starts a process, as loaders of data do, for `test_mpi` and `test_tcp`.

Usage: started_processes.py START, how `multiprocessing` starts it. Rank 0 prints what its process
says of itself, while rank 1 waits for rank 0 and starts none: the process must not wait for a rank.
"""

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

import duograph as ms
from duograph.communication import create_group, get_group_size, get_rank, init


def expected(size: int) -> list[str]:
    """Return the sorted lines that the ranks print."""
    refused = "CommunicationError: rank 0 has started this process, which is no rank itself"
    return sorted([f"0 of {size}: {refused}", *["the ranks go on"] * size])


def write(line: str) -> None:
    """Print a line at once, so that lines of two ranks do not mix."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def told(queue: Any) -> None:
    try:
        said = str(ms.ops.AllReduce()(ms.Tensor([1.0])).item())
    except RuntimeError as error:
        said = f"{type(error).__name__}: {str(error).partition(';')[0]}"
    queue.put(f"{get_rank()} of {get_group_size()}: {said}")


def main() -> None:
    init()
    create_group("all", list(range(get_group_size())))
    if get_rank() == 0:
        context = multiprocessing.get_context(sys.argv[1])
        queue = context.Queue()
        process = context.Process(target=told, args=(queue,))
        process.start()
        write(queue.get(timeout=30))
        process.join(30)
        assert process.exitcode == 0
    total = ms.ops.AllReduce(group="all")(ms.Tensor([1.0])).item()
    write("the ranks go on" if total == get_group_size() else str(total))


if __name__ == "__main__":
    main()
