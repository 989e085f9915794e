"""Measure the CUDA backend on a GPU, beside PyTorch and JAX as far as they are installed.

Usage: gpu.py [--device GPU] [--out TABLE.md] [--repeat N] [--small]
              [--only smoke,ceilings,kernels,mlp,resnet50,gpt] [--peers PyTorch,torch.compile,JAX]

Each part runs in a process of its own, of ten minutes at most, and a part that fails does not stop
the next one. Part smoke computes a few things and compares them; part ceilings measures a copy and
NVIDIA's matmul, with which the other kernels are compared. The lines of a part are written to
TABLE-<part>.md as soon as they are measured; TABLE.md has the lines of all parts, also from earlier
runs.

Each figure is the median of N timings after two warm-up runs; the device is synchronised before the
clock is read. `--small` uses sizes that the emulated device finishes within seconds, and runs peers
without a GPU on the CPU; it only checks that the script works.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import duograph as ms
import gpu_training
import numpy as np
from duograph import ops
from duograph.backend import registry

PARTS = ("smoke", "ceilings", "kernels", *gpu_training.NETWORKS)
CEILINGS = ("copy, float32", "matmul, bfloat16", "matmul, float32")
# Seconds of a part, at most.
LIMIT = 590
SMOKE = pathlib.Path(__file__).resolve().parents[1] / "backend_cuda" / "tests" / "smoke.py"


def median_of(run: Callable[[], object], wait: Callable[[], None], repeat: int) -> float:
    """Return the median seconds of one run, after two warm-up runs."""
    times = []
    for k in range(repeat + 2):
        start = time.perf_counter()
        kept = run()
        wait()
        if k > 1:
            times.append(time.perf_counter() - start)
        del kept
    return statistics.median(times)


@dataclasses.dataclass
class Case:
    """One row of the first table.

    Attributes:
        name: the printed name.
        unit: unit of the work of one run.
        amount: amount of work of one run.
        run: function that runs the case in duograph.
        shapes: shapes of PyTorch's float32 operands.
        peer: function from the module torch and the operands to a function that runs the case.
    """

    name: str
    unit: str
    amount: float
    run: Callable[[], object]
    shapes: Sequence[tuple[int, ...]]
    peer: Callable[..., Callable[[], object]]


def cases(device: str, small: bool) -> list[Case]:
    """Return the cases, with operands of the same shapes for both sides."""
    n = 1 << (12 if small else 26)
    rows, width = (8, 64) if small else (16384, 4096)
    side = 64 if small else 8192
    rng = np.random.default_rng(0)

    def tensor(*shape: int, dtype: ms.dtype.DType = ms.float32) -> ms.Tensor:
        return ms.Tensor(rng.standard_normal(shape, np.float32), dtype, device=device)

    x, table, few = tensor(n), tensor(rows, width), tensor(3)
    gamma, beta = tensor(width), tensor(width)
    a, b = (tensor(side, side, dtype=ms.bfloat16) for _ in range(2))
    c, d = (tensor(side // 2, side // 2) for _ in range(2))
    chain = ms.jit(lambda v: ops.sigmoid(ops.tanh(v) + ops.exp(-v) * 0.1))
    launches = 10 if small else 1000
    gigabyte, both = 1e9, 8 * n
    flops, flops32 = 2 * side**3 / 1e12, 2 * (side // 2) ** 3 / 1e12

    def many(v: Any) -> Any:
        start = v
        for _ in range(launches):
            v = v + start
        return v

    def compiled(torch: Any, v: Any) -> Callable[[], object]:
        f = torch.compile(lambda v: torch.sigmoid(torch.tanh(v) + torch.exp(-v) * 0.1))
        return lambda: f(v)

    return [
        Case("copy, float32", "GB/s", both / gigabyte, x.copy, [(n,)], lambda t, v: v.clone),
        Case("fused chain, float32", "GB/s", both / gigabyte, lambda: chain(x), [(n,)], compiled),
        Case(
            "softmax, float32",
            "GB/s",
            8 * rows * width / gigabyte,
            lambda: ops.softmax(table, axis=1),
            [(rows, width)],
            lambda t, v: lambda: t.softmax(v, 1),
        ),
        Case(
            "layer_norm, float32",
            "GB/s",
            8 * rows * width / gigabyte,
            lambda: ops.layer_norm(table, (width,), gamma, beta),
            [(rows, width), (width,), (width,)],
            lambda t, v, g, b: lambda: t.nn.functional.layer_norm(v, (width,), g, b),
        ),
        Case(
            "matmul, bfloat16",
            "TFLOP/s",
            flops,
            lambda: ops.matmul(a, b),
            [(side, side)] * 2,
            lambda t, a, b: partial(t.matmul, a.bfloat16(), b.bfloat16()),
        ),
        Case(
            "matmul, float32",
            "TFLOP/s",
            flops32,
            lambda: ops.matmul(c, d),
            [(side // 2, side // 2)] * 2,
            lambda t, a, b: partial(t.matmul, a, b),
        ),
        Case(
            "eager additions of 3 floats",
            "1/ms",
            launches / 1e3,
            lambda: many(few),
            [(3,)],
            lambda t, v: lambda: many(v),
        ),
    ]


def peer(case: Case, small: bool, repeat: int) -> float | None:
    """Return the seconds that PyTorch takes for a case, or None.

    It is None if PyTorch is not installed, or has no GPU and the case is not small.
    """
    try:
        import torch
    except ImportError:
        return None
    gpu = torch.cuda.is_available()
    if not gpu and not small:
        return None
    place, wait = ("cuda", torch.cuda.synchronize) if gpu else ("cpu", lambda: None)
    return median_of(
        case.peer(torch, *(torch.randn(s, device=place) for s in case.shapes)), wait, repeat
    )


def measure(args: argparse.Namespace) -> None:
    """Measure one part; print its table and write it to the file."""
    part, peers = args.only, args.peers.split(",")
    ms.set_context(
        device_target=args.device
    )  # after the workloads, which choose one when they are imported
    backend = registry.backend(args.device)
    table = Table(args.out)
    info = backend.devices()[0]
    precision = "TF32" if gpu_training.uses_tf32() else "IEEE float32"
    table.line(
        f"{info.name}; {info.description}; {backend.compiler(0)}; {precision}; "
        f"{time.strftime('%Y-%m-%d')}; median of {args.repeat}\n"
    )
    if part not in gpu_training.NETWORKS:
        table.line("| what | duograph | PyTorch |\n|---|---|---|")
        for case in cases(args.device, args.small):
            if (case.name in CEILINGS) != (part == "ceilings"):
                continue
            ours = median_of(case.run, lambda: backend.synchronize(0), args.repeat)
            theirs = peer(case, args.small, args.repeat) if "PyTorch" in peers else None
            other = "-" if theirs is None else f"{case.amount / theirs:.4g} {case.unit}"
            table.line(f"| {case.name} | {case.amount / ours:.4g} {case.unit} | {other} |")
    else:
        table.line(f"| step of training, ms | duograph at O2 | {' | '.join(gpu_training.SIDES)} |")
        table.line("|---" * (2 + len(gpu_training.SIDES)) + "|")
        found = gpu_training.rows(
            args.device,
            args.small,
            lambda run, wait: median_of(run, wait, args.repeat),
            lambda: backend.synchronize(0),
            [part],
            peers,
        )
        for name, times in found:
            cells = " | ".join("-" if t is None else f"{t * 1e3:.4g}" for t in times)
            table.line(f"| {name} | {cells} |")
    table.line("")


def run_part(part: str, args: argparse.Namespace) -> bool:
    """Measure one part in a separate process; return whether it succeeded."""
    command = [sys.executable, str(SMOKE), args.device]
    if part != "smoke":
        command = [sys.executable, __file__, "--here", "--only", part, "--device", args.device]
        command += ["--repeat", str(args.repeat), "--peers", args.peers]
        command += ["--small"] * args.small
        command += [] if args.out is None else ["--out", str(part_file(args.out, part))]
    try:
        code: object = subprocess.run(command, timeout=LIMIT).returncode
    except subprocess.TimeoutExpired:
        code = f"stopped after {LIMIT} s"
    if code != 0:
        print(f"{part}: FAILED ({code})", flush=True)
    return code == 0


def part_file(out: pathlib.Path, part: str) -> pathlib.Path:
    """Return the file for one part's table, beside the file for all parts."""
    return out.with_name(f"{out.stem}-{part}{out.suffix}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that the command line selects; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="GPU")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", default=",".join(PARTS), help="the parts, with commas between")
    parser.add_argument("--peers", default=",".join(gpu_training.SIDES), help="likewise")
    parser.add_argument("--here", action="store_true", help="one part, in this process")
    args = parser.parse_args(arguments)
    only, peers = args.only.split(","), args.peers.split(",")
    unknown = sorted({*only} - {*PARTS}) + sorted({*peers} - {*gpu_training.SIDES})
    if unknown:
        parser.error(f"got {', '.join(unknown)}; there are {', '.join(PARTS + gpu_training.SIDES)}")
    problem = registry.problem_of(registry.entries()[args.device])
    if problem is not None:
        print(f"gpu: {args.device} cannot be used, and nothing was measured: {problem}")
        return 2
    if args.here:
        if len(only) > 1 or only == ["smoke"]:
            parser.error(f"got --here and --only {args.only}; wanted one part that measures")
        measure(args)
        return 0
    good = True
    for part in only:
        good = run_part(part, args) and good
        if args.out is not None:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            files = [part_file(args.out, each) for each in PARTS]
            args.out.write_text("".join([file.read_text() for file in files if file.exists()]))
    return 0 if good else 1


class Table:
    """Prints the lines of a table and writes them to a file as they come."""

    def __init__(self, path: pathlib.Path | None) -> None:
        self.path = path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")

    def line(self, text: str) -> None:
        """Print a line and append it to the file."""
        print(text, flush=True)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
