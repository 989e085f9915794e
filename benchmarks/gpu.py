"""The CUDA backend on a GPU: what its kernels reach, beside PyTorch on the same device where that is installed.

Usage: gpu.py [--device GPU] [--out TABLE.md] [--repeat N] [--small]

Each figure is the median of N timings after two that are not counted; the device has finished before the clock is
read. `--small` takes sizes at which the emulated device ends within seconds: that shows that the script works, its
figures mean nothing.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import time
from collections.abc import Callable

import duograph as ms
import gpu_training
import numpy as np
from duograph import ops
from duograph.backend import registry


def median_of(run: Callable[[], object], wait: Callable[[], None], repeat: int) -> float:
    """Seconds of one run."""
    times = []
    for k in range(repeat + 2):
        start = time.perf_counter()
        kept = run()
        wait()
        if k > 1:
            times.append(time.perf_counter() - start)
        del kept
    return statistics.median(times)


def cases(device: str, small: bool) -> list[tuple[str, str, float, Callable[[], object], str]]:
    """(name, unit, what one run does in that unit, our run, the same for PyTorch as source text)."""
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

    def many() -> ms.Tensor:
        v = few
        for _ in range(launches):
            v = v + few
        return v

    return [
        ("copy, float32", "GB/s", both / gigabyte, lambda: x.copy(), f"torch.randn({n}, device=c).clone()"),
        ("fused chain, float32", "GB/s", both / gigabyte, lambda: chain(x), ""),
        (
            "softmax, float32", "GB/s", 8 * rows * width / gigabyte, lambda: ops.softmax(table, axis=1),
            f"torch.softmax(torch.randn({rows}, {width}, device=c), 1)",
        ),
        (
            "layer_norm, float32", "GB/s", 8 * rows * width / gigabyte,
            lambda: ops.layer_norm(table, (width,), gamma, beta),
            f"torch.nn.functional.layer_norm(torch.randn({rows}, {width}, device=c), ({width},))",
        ),
        (
            "matmul, bfloat16", "TFLOP/s", flops, lambda: ops.matmul(a, b),
            f"torch.matmul(*(torch.randn({side}, {side}, device=c, dtype=torch.bfloat16) for _ in '12'))",
        ),
        (
            "matmul, float32", "TFLOP/s", flops32, lambda: ops.matmul(c, d),
            f"torch.matmul(*(torch.randn({side // 2}, {side // 2}, device=c) for _ in '12'))",
        ),
        ("eager additions of 3 floats", "1/ms", launches / 1e3, many, ""),
    ]  # fmt: skip


def peer(expression: str, repeat: int) -> float | None:
    """Seconds that PyTorch takes for an expression, its operands made before; None without it."""
    try:
        import torch
    except ImportError:
        return None
    if not expression or not torch.cuda.is_available():
        return None
    names = {"torch": torch, "c": "cuda"}
    kept: list[object] = []
    make = torch.randn
    # the first run makes the operands, the timed ones get them back
    names["torch"] = _Kept(torch, kept, make)
    code = compile(expression, "peer", "eval")

    def run() -> object:
        names["torch"].at = 0
        return eval(code, names)

    return median_of(run, torch.cuda.synchronize, repeat)


class _Kept:
    """PyTorch, but `randn` gives the same tensors at every run."""

    def __init__(self, torch: object, kept: list[object], make: Callable[..., object]) -> None:
        self.torch, self.kept, self.make, self.at = torch, kept, make, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.torch, name)

    def randn(self, *shape: int, **options: object) -> object:
        if self.at == len(self.kept):
            self.kept.append(self.make(*shape, **options))
        self.at += 1
        return self.kept[self.at - 1]


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="GPU")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    ms.set_context(device_target=args.device)  # after the workloads, which choose one when they are imported
    backend = registry.backend(args.device)
    info = backend.devices()[0]
    lines = [
        f"{info.name}; {info.description}; {backend.compiler(0)}; {time.strftime('%Y-%m-%d')}; "
        f"median of {args.repeat}",
        "",
        "| what | duograph | PyTorch |",
        "|---|---|---|",
    ]
    for name, unit, amount, run, expression in cases(args.device, args.small):
        ours = median_of(run, lambda: backend.synchronize(0), args.repeat)
        theirs = peer(expression, args.repeat)
        other = "-" if theirs is None else f"{amount / theirs:.4g} {unit}"
        lines.append(f"| {name} | {amount / ours:.4g} {unit} | {other} |")
    lines += ["", f"| step of training, ms | duograph at O2 | {' | '.join(gpu_training.SIDES)} |"]
    lines.append("|---" * (2 + len(gpu_training.SIDES)) + "|")
    found = gpu_training.rows(
        args.device, args.small, lambda run, wait: median_of(run, wait, args.repeat), lambda: backend.synchronize(0)
    )
    for name, times in found:
        lines.append(f"| {name} | {' | '.join('-' if t is None else f'{t * 1e3:.4g}' for t in times)} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text)


if __name__ == "__main__":
    main()
