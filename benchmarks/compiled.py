"""Measure compiled functions: a call, a compilation, the guards, and how compilation scales.

Usage: compiled.py [--out TABLE.md] [--repeat N] [--level O0|O1]

All calls run in this process. A figure is the best of N repeats for a short call, since noise only
adds time, and the median for a compilation. Exit status: 0 if every budget is met within 3 %, 1
otherwise.
"""

from __future__ import annotations

import argparse
import linecache
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

TOLERANCE = 1.03
rows: list[tuple[str, str, str, bool | None]] = []


def row(what: str, value: float, unit: str, budget: float | None, note: str = "") -> None:
    met = None if budget is None else value <= budget * TOLERANCE
    wanted = "" if budget is None else f"<= {budget:g} {unit}"
    rows.append((what, f"{value:.3g} {unit}{note}", wanted, met))
    print(
        f"{'' if met is not False else 'MISSED '}{what}: {value:.3g} {unit}{note} {wanted}",
        flush=True,
    )


def best(call: Callable[[], object], number: int, repeat: int) -> float:
    """Return the microseconds per call: the smallest of `repeat` measurements of `number` calls."""
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            call()
        found.append((time.perf_counter() - start) / number)
    return min(found) * 1e6


def short_call(repeat: int) -> None:
    @ms.jit
    def f(x, y):
        return x * y + x

    x, y = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0])
    for _ in range(3):
        f(x, y)
    row("compiled call of x*y + x, 3 floats", best(lambda: f(x, y), 20_000, repeat), "us", 1.5)


def cold(repeat: int) -> None:
    text = "def h(x, y):\n    return x * y + x\n"
    x, y = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0])
    _ = x + y  # the first op of a process also loads the device
    start = time.perf_counter()
    jit = ms.jit
    row("loading the compiler, once a process", (time.perf_counter() - start) * 1e3, "ms", None)
    found = []
    for i in range(max(repeat, 5)):
        name = f"<cold {i}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        space: dict[str, Callable[..., object]] = {}
        exec(compile(text, name, "exec"), space)
        start = time.perf_counter()
        jit(space["h"])(x, y)
        found.append((time.perf_counter() - start) * 1e3)
    row("first call of x*y + x in this process", found[0], "ms", 10)
    row("first call of another such function", statistics.median(found[1:]), "ms", 10)


class Sum(nn.Cell):
    """A Cell that adds a hundred weights, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = ms.ParameterTuple(
            [Parameter(Tensor([1.0, 2.0, 3.0]), name=f"w{i}") for i in range(100)]
        )

    def construct(self, x):
        for w in self.weights:
            x = x + w
        return x


def checks(repeat: int) -> None:
    net, x = Sum(), Tensor([1.0, 2.0, 3.0])
    eager = best(lambda: net(x), 500, repeat)
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for _ in range(3):
            net(x)
        (program,) = net._graph.programs()
        handles = [x._buf, *[p._buf for p in program.state]]
        whole = best(lambda: net(x), 500, repeat)
        kernels = best(lambda: program.run(*handles), 500, repeat)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    note = f" (call {whole:.1f}, kernels {kernels:.1f}, line by line {eager:.1f})"
    row(
        "GRAPH_MODE call of a net with 100 Parameters, above its kernels",
        whole - kernels,
        "us",
        8,
        note,
    )


class Block(nn.Cell):
    """A transformer block: attention and a feed-forward layer, with dropout."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.drop = nn.Dropout(p=0.1)

    def construct(self, x):
        b, t, d = x.shape
        parts = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, d // self.heads)
        q, k, v = parts.transpose(2, 0, 3, 1, 4)
        scores = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / (d // self.heads) ** 0.5, -1)
        x = x + self.drop(self.out(ops.matmul(scores, v).transpose(0, 2, 1, 3).reshape(b, t, d)))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


def transformers() -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(2, 8, 32)).astype(np.float32))
    for layers in (12, 24, 48):
        net = nn.SequentialCell([Block(32, 4) for _ in range(layers)])
        net.set_train()
        optimizer = nn.Adam(net.trainable_params(), 1e-3)
        grad_fn = ms.value_and_grad(lambda x, net=net: net(x).mean(), None, optimizer.parameters)

        @ms.jit
        def step(x, grad_fn=grad_fn, optimizer=optimizer):
            loss, grads = grad_fn(x)
            optimizer(grads)
            return loss

        step.compile(x)
        seconds = step.cache_info().seconds
        nodes = len(step.graph(x).nodes)
        what = f"compiling a training step of {layers} transformer blocks"
        row(what, seconds, "s", 2.0 if layers == 12 else None, f" ({nodes} nodes)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--level", default="O0", choices=("O0", "O1"))
    args = parser.parse_args()
    ms.set_context(jit_level=args.level)
    cold(args.repeat)
    short_call(args.repeat)
    checks(args.repeat)
    transformers()
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"Python {platform.python_version()}, {platform.machine()}", ""]
        lines += ["| what | measured | budget | |", "|---|---|---|---|"]
        lines += [
            f"| {w} | {v} | {b} | {'' if met is None else 'met' if met else '**missed**'} |"
            for w, v, b, met in rows
        ]
        args.out.write_text("\n".join(lines) + "\n")
    return int(any(met is False for *_, met in rows))


if __name__ == "__main__":
    sys.exit(main())
