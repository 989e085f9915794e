"""Train each example in duograph and in torch, in alternating blocks; compare results and times.

Usage: examples.py [--only WORDS] [--blocks N] [--part SHARE] [--threads N] [--clock wall]
                   [--out FILE]

The program in `examples/` runs unchanged, in graph mode, in a process of its own; its twin in
`example_twins.py` has the same sizes, data and number of steps, in torch's eager mode. Progress
bars stop both after each block of steps, so that the blocks of the two alternate. The time of a
side is the sum of its blocks, compilation included, without imports, data and tests; the ratio is
the median over blocks of torch's time divided by ours, so above 1 is faster. `--part 0.1` takes a
tenth of the steps; the figures of merit are then not compared. On a machine that is busy with other
work, `--threads 1 --clock processor` compares processor time instead. The interpreter needs
duograph[examples,onnx] and torch.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pace as pacing
from measure import HERE, THREADS, environment

EXAMPLES = HERE.parent / "examples"
SUFFIXES = ("THREADS", "NUM_THREADS")


@dataclass(frozen=True)
class Row:
    """An example: its figure of merit, options for its numbers of steps, and `main`'s result.

    `figure` returns the figure from that result, or a tuple of figures, which `shown` formats.
    """

    what: str
    steps: dict[str, int]
    figure: Callable[[tuple], float | tuple[float, ...]]
    shown: str = "{:.3f}"


ROWS = {
    "digits": Row("accuracy", {"epochs": 12}, lambda r: r, "{:.1%}"),
    "unet": Row("mean IoU", {"epochs": 8}, lambda r: r[1]),
    "char_gpt": Row("held-out loss", {"steps": 700}, lambda r: r[1]),
    "vae": Row("ELBO", {"epochs": 300}, lambda r: r[1], "{:.1f}"),
    "gan": Row("modes covered", {"steps": 6000}, lambda r: r[1], "{:.0f}"),
    "dqn": Row("mean length", {"steps": 12_000}, lambda r: r[1], "{:.0f}"),
    "neural_ode": Row("error (rad)", {"steps": 1500}, lambda r: r[1]),
    "pinn": Row("relative error", {"steps": 3000}, lambda r: r[1], "{:.4f}"),
    "lora": Row("share by LoRA", {"steps": 1000, "adapt": 400}, lambda r: r[1], "{:.0%}"),
    "serve_onnx": Row("accuracy", {"epochs": 8}, lambda r: r[1], "{:.1%}"),
    "custom_op": Row("square error", {"steps": 800}, lambda r: r[1], "{:.4f}"),
    "custom_device": Row(
        "accuracy and last loss with 8 bits, cycles",
        {"epochs": 8},
        lambda r: (r[1][8], r[0][8][-1], sum(r[2].values())),
        "{:.1%}, {:.8f}, {:.0f}",
    ),
}


def load(name: str):
    """Import an example by name; return its module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_side(side: str, name: str, args: argparse.Namespace) -> None:
    """Train one side in this process, and report each block to the parent process."""
    answers = os.fdopen(os.dup(1), "w")
    sys.stdout = io.StringIO()
    example = load(name)
    bar = pacing.paced(answers, args.blocks, args.clock)
    steps = {
        k: max(1 if k == "epochs" else args.blocks, round(n * args.part))
        for k, n in ROWS[name].steps.items()
    }
    if side == "torch":
        twins = importlib.import_module("example_twins")
        figure = getattr(twins, name)(example, argparse.Namespace(**steps), bar)
    else:
        figure = ROWS[name].figure(pacing.run_example(example, name, steps, bar))
    figures = figure if isinstance(figure, tuple) else (figure,)
    answers.write(json.dumps({"figures": [float(each) for each in figures]}) + "\n")
    answers.flush()


class Side:
    """The process that trains one side."""

    def __init__(self, side: str, name: str, args: argparse.Namespace):
        line = [sys.executable, __file__, "--side", side, "--only", name]
        line += ["--blocks", str(args.blocks), "--part", str(args.part), "--clock", args.clock]
        names = ("BENCH", "OMP", "MKL", "OPENBLAS")
        threads = {f"{each}_{suffix}": str(args.threads) for each in names for suffix in SUFFIXES}
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=environment(PYTHONWARNINGS="ignore", **threads), cwd=HERE,
        )  # fmt: skip
        self.seconds: list[float] = []
        self.figures: list[float] = []

    def advance(self) -> bool:
        """Wait for the end of a block or of the start-up; return False if the side has finished."""
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError(self.log.read()[-2000:])
        found = json.loads(line)
        if "figures" in found:
            self.figures = found["figures"]
            self.process.wait()
            return False
        if found["seconds"] is not None:
            self.seconds.append(found["seconds"])
        return True

    def go(self) -> None:
        """Let the process run its next block."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("go\n")
            self.process.stdin.flush()


def compare(name: str, args: argparse.Namespace) -> str:
    """Train both sides of an example block by block; return the row of the table."""
    sides = [Side(side, name, args) for side in ("duograph", "torch")]
    running = [side for side in sides if side.advance()]
    turn = 0
    while running:
        for side in running if turn % 2 == 0 else list(reversed(running)):
            side.go()
            if not side.advance():
                running = [other for other in running if other is not side]
        turn += 1
    ours, theirs = sides
    ratio = statistics.median(t / o for o, t in zip(ours.seconds, theirs.seconds, strict=True))
    row = ROWS[name]
    figures = [row.shown.format(*s.figures) if args.part == 1 else "" for s in sides]
    return (
        f"| {name} | {row.what} | {figures[0]} | {figures[1]} | {sum(ours.seconds):.1f} s | "
        f"{sum(theirs.seconds):.1f} s | {ratio:.2f} |"
    )


def main() -> None:
    """Compare the selected examples; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of examples, with commas")
    parser.add_argument("--blocks", type=int, default=9, help="of each training")
    parser.add_argument("--part", type=float, default=1.0, help="of the steps")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--clock", choices=pacing.CLOCKS, default="wall")
    parser.add_argument("--out", type=Path, help="a file to which rows are appended")
    parser.add_argument("--side", choices=("duograph", "torch"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.only.split(",") if args.only else list(ROWS)
    if unknown := [name for name in names if name not in ROWS]:
        parser.error(f"no example {', '.join(unknown)}; wanted some of {', '.join(ROWS)}")
    if args.side:
        run_side(args.side, names[0], args)
        return
    print("| example | figure | duograph | torch | time | time of torch | ratio |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        row = compare(name, args)
        print(row, flush=True)
        if args.out:
            with args.out.open("a") as file:
                file.write(row + "\n")


if __name__ == "__main__":
    main()
