"""Tests of random programs, run both compiled and line by line, or on the device and the oracle.

pytest runs them with the conformance suite. A program must depend only on its number, so that a
failure can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

import duograph as ms
from duograph import ops
from duograph.ops.gather_scatter import gather
from duograph.ops.scan import scan_sum
from duograph.ops.softmax_ops import softmax_along

from .check import difference
from .fuzz import KINDS, absent_dtypes, allowed_refusals, run
from .oracle import on_oracle
from .session import Session, over
from .tolerance import Tolerance

if TYPE_CHECKING:
    from ..host_arrays import Array
    from ..tensor import Tensor

# Every function keeps values within about -2 to 2.
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": ops.tanh,
    "sin": ops.sin,
    "sigmoid": ops.sigmoid,
    "half": lambda x: x * 0.5,
    "less one": lambda x: 1 - x,
    "root": lambda x: ops.sqrt(ops.abs(x) + 0.25),
    "bell": lambda x: ops.exp(-x * x),
    "logarithm": lambda x: ops.log(x * x + 1),
    "flipped": lambda x: x[::-1],
    "transposed back": lambda x: x.T.reshape(x.shape),
    "rolled": lambda x: ops.concat((x[1:], x[:1])),
    "centred": lambda x: x - x.mean(axis=0, keep_dims=True),
    "softmax": lambda x: softmax_along(x, 1),
    "largest": lambda x: x - ops.amax(x, 1, True),
    "summed": lambda x: scan_sum(x, 1, False, False) * 0.25,
    "picked": lambda x: gather(x, ms.Tensor(np.array([2, 0, 1, 2])), 0),
    "detached": lambda x: x + ops.stop_gradient(x) * 0.5,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": lambda x, y: (x + y) * 0.5,
    "product": lambda x, y: x * y * 0.5,
    "quotient": lambda x, y: x / (y * y + 1),
    "larger": lambda x, y: ops.maximum(x, y * 0.75),
    "chosen": lambda x, y: ops.where(x > 0.1, x, y),
    "matmul": lambda x, y: ops.matmul(x, y.T).matmul(x) * 0.1,
    "row": lambda x, y: x * y[:1],
    "column": lambda x, y: x + y.mean(axis=1, keep_dims=True),
}
SIZE = 8
# So many random programs are one test of `test_parity`.
BLOCK = 30


class Program:
    """A test program without control flow: `SIZE` random ops on two inputs."""

    def __init__(self, number: int) -> None:
        rng = np.random.default_rng(number)
        self.name = str(number)
        self.inputs = [rng.uniform(-1, 1, (4, 5)).astype(np.float32) for _ in range(2)]
        self.lines: list[tuple[str, tuple[int, ...]]] = []
        for k in range(SIZE):
            if rng.random() < 0.6:
                self.lines.append((str(rng.choice(list(UNARY))), (int(rng.integers(k + 2)),)))
            else:
                pair = (int(rng.integers(k + 2)), int(rng.integers(k + 2)))
                self.lines.append((str(rng.choice(list(BINARY))), pair))

    def __call__(self, *inputs: Tensor) -> Tensor:
        values = list(inputs)
        for name, operands in self.lines:
            function: Callable[..., Tensor] = UNARY.get(name) or BINARY[name]
            values.append(function(*[values[i] for i in operands]))
        return values[-1] + sum(values[2:-1], values[-1]) * 0.125

    def __str__(self) -> str:
        lines = [f"v{k + 2} = {n}({', '.join(f'v{i}' for i in at)})" for k, (n, at) in
                 enumerate(self.lines)]  # fmt: skip
        return "\n  ".join(lines)

    def results(self, function: Callable[..., Tensor] | None = None) -> list[Array]:
        """Return the program's value and its gradients with respect to both inputs.

        `function` is the program in compiled form; None runs the program eagerly.
        """
        value, pull = ms.vjp(function or self, *[ms.Tensor(a) for a in self.inputs])
        found = pull(ms.Tensor(np.ones(value.shape, np.float32)))
        return [value.asnumpy(), *[g.asnumpy() for g in found]]


def programs(session: Session) -> tuple[str, list[object]]:
    return "program,", [(Program(i),) for i in range(6 if session.quick else 60)]


@over(programs)
def test_fuzz(program):
    got = program.results()
    with on_oracle():
        want = program.results()
    for what, a, b in zip(("value", "gradient of v0", "gradient of v1"), got, want, strict=True):
        text = difference(a, b, Tolerance(2e-4, 2e-4))
        assert text is None, f"{what}\n{text}\n  {program}"


@over(programs)
def test_fuzz_compiled(program):
    """Test that random programs without control flow give the same bits compiled and eagerly."""
    ms.set_context(jit_level="O0")
    try:
        compiled = ms.jit(program.__call__)
        want, got = program.results(), program.results(compiled)
        again = program.results(compiled)
    finally:
        ms.set_context(jit_level="")
    for what, a, b, c in zip(
        ("value", "gradient of v0", "gradient of v1"), want, got, again, strict=True
    ):
        assert a.tobytes() == b.tobytes() == c.tobytes(), f"{what} differs\n  {program}"


def blocks(session: Session) -> tuple[str, list[object]]:
    """Return the parameters of `test_parity`: ("kind,first", list of such pairs)."""
    total = 30 if session.quick or session.sampled else 120
    return "kind,first", [(kind, first) for kind in KINDS for first in range(0, total, BLOCK)]


@over(blocks)
def test_parity(session, kind, first):
    """Test that random functions have the same effects and gradients compiled and eager.

    `make fuzz` runs more of them, at every jit level. A failure shows a small failing program.
    """
    count = 6 if session.quick else BLOCK
    absent = absent_dtypes(session.name)
    seen, failure = run(0, range(first, first + count), "O0", absent, kind)
    assert not failure, failure
    assert seen["refused"] <= allowed_refusals(count, kind), dict(seen)
