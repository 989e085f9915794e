"""Trace which source files of duograph a call passes through.

A *move* is a pair of consecutive Python function calls in different files; a *return* is a move to
the file before the last one. Few files and few moves mean that a reader can follow the call.

Run `python tests/project/walk.py` to print the numbers for a few typical calls.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import duograph as ms
import numpy as np
from duograph import nn, ops

PACKAGE = str(Path(ms.__file__).parent) + "/"


@dataclass(frozen=True)
class Walk:
    """The files of the functions that a call ran, in order, without repetitions in a row."""

    path: tuple[str, ...]

    @property
    def files(self) -> int:
        """The number of different files."""
        return len(set(self.path))

    @property
    def moves(self) -> int:
        """Number of moves from one file to another."""
        return max(len(self.path) - 1, 0)

    @property
    def returns(self) -> int:
        """Number of moves back to the file before the last one."""
        return sum(a == c for a, c in zip(self.path, self.path[2:]))

    def most_common(self, n: int) -> list[tuple[tuple[str, str], int]]:
        """The most frequent moves."""
        return Counter(zip(self.path, self.path[1:])).most_common(n)


def walk(run: Callable[[], object]) -> Walk:
    """Run a function and record the files of duograph that its calls enter."""
    path: list[str] = []

    def record(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            file = frame.f_code.co_filename
            if file.startswith(PACKAGE):
                file = file[len(PACKAGE) :]
                if not path or path[-1] != file:
                    path.append(file)

    sys.setprofile(record)
    try:
        run()
    finally:
        sys.setprofile(None)
    return Walk(tuple(path))


def tensor_condition(x: ms.Tensor) -> ms.Tensor:
    """A function with an `if` on a tensor."""
    y = x * 2
    if x.sum() > 0:
        y = y + 1
    else:
        y = y - 1
    return y * x


def successor(x: ms.Tensor) -> ms.Tensor:
    """A function without control flow; its first call loads what every compilation needs."""
    return x + 1


def typical_calls() -> dict[str, Walk]:
    """The walks of typical calls."""
    x = ms.Tensor(np.ones((2, 3), np.float32))
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 1))
    gradient = ms.grad(lambda value: ops.sum(net(value)))
    compiled = ms.jit(tensor_condition)
    ms.jit(successor)(x)
    x + x
    found = {
        "x + x": walk(lambda: x + x),
        "gradient of two layers, first": walk(lambda: gradient(x)),
        "gradient of two layers": walk(lambda: gradient(x)),
        "compiled condition on a tensor, first": walk(lambda: compiled(x)),
    }
    compiled(x)
    found["compiled condition on a tensor"] = walk(lambda: compiled(x))
    return found


if __name__ == "__main__":
    for name, found in typical_calls().items():
        print(f"{name}: {found.files} files, {found.moves} moves, {found.returns} returns")
        if "-v" in sys.argv:
            for (before, after), n in found.most_common(20):
                print(f"  {n:4} {before} -> {after}")
