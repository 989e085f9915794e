"""A progress bar that pauses after each block of steps until another process lets it go on."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def paced(answers, blocks: int, clock: str):
    """Return a class that replaces tqdm; it writes the seconds of each block to `answers`."""
    now = CLOCKS[clock]

    class Pace:
        def __init__(self, iterable=None, total=None, **options):
            self.iterable, self.total = iterable, len(iterable) if total is None else total
            self.marks = {round(self.total * k / blocks) for k in range(1, blocks + 1)}
            self.count = 0
            self.wait(None)

        def wait(self, seconds):
            """Report the seconds of a block, and wait for permission to go on."""
            answers.write(json.dumps({"seconds": seconds}) + "\n")
            answers.flush()
            sys.stdin.readline()
            self.begin = now()

        def update(self, count=1):
            for _ in range(count):
                self.count += 1
                if self.count in self.marks:
                    self.wait(now() - self.begin)

        def __iter__(self):
            for item in self.iterable:
                yield item
                self.update()

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def set_postfix_str(self, text, refresh=True):
            pass

        def set_description(self, text, refresh=True):
            pass

    return Pace


def run_example(example, name: str, steps: dict[str, int], bar):
    """Run `main` of an example with another progress bar and without drawing pictures."""
    example.tqdm = bar
    example.draw = lambda *arguments: None
    if name == "unet":  # it trains by `Model`, and shows progress in a callback
        count_steps(example.Progress, bar)
    if name == "custom_op":  # its own comparison of speed is not training
        example.milliseconds = lambda *arguments: 0.0
    if name == "serve_onnx":
        steps = {**steps, "clients": 1}
    line = [f"--{option}={count}" for option, count in steps.items()]
    with tempfile.TemporaryDirectory() as folder:
        line += ["--mode", "jit" if name == "digits" else "graph"]
        line += ["--out", str(Path(folder) / "out")]
        if name == "digits":  # its main reads the command line
            sys.argv = [name, *line]
            return example.main()
        return example.main(line)


def count_steps(callback: type, bar) -> None:
    """Make a callback of `Model` advance a progress bar at each step."""
    own = callback.on_train_step_end

    def on_train_begin(self, run_context):
        state = run_context.original_args()
        self.bar = bar(total=state.epoch_num * state.batch_num)

    def on_train_step_end(self, run_context):
        own(self, run_context)
        self.bar.update()

    callback.on_train_begin, callback.on_train_step_end = on_train_begin, on_train_step_end
