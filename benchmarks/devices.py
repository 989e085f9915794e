"""Compare the devices of duograph on one machine: the time of each case, and ratios.

Usage: devices.py [--devices CPU,OpenCL:0] [--only WORDS] [--pairs N] [--old PYTHON]

Each device runs in a process of its own. Results are compared before any time counts, repetitions
alternate, and a ratio is the median over the repetitions of the device's time divided by that of
the first device, so above 1 is slower. The second ratio is that of the shortest times, which other
programs on the machine disturb less. With `--old`, the interpreter of an environment with another
version of duograph, every device is also measured with that version, as "old DEVICE".
"""

from __future__ import annotations

import argparse
import sys

from measure import PAIRS, CaseFailed, Worker, duration, interleaved

# (case of `workloads.mindspore_api`, level at which it is compiled)
ROWS = (
    ("matmul512", "O1"),
    ("matmul1024", "O1"),
    ("chain", "O1"),
    ("gpt", "O1"),
    ("mlp", "O1"),
    ("softmax", "eager"),
    ("softmax", "O1"),
    ("layer_norm", "eager"),
    ("layer_norm", "O1"),
    ("transpose", "eager"),
    ("argmax_rows", "eager"),
    ("sum_rows", "eager"),
    ("call3", "O1"),
)


def measure(case: str, level: str, sides: dict[str, tuple[str, str]], pairs: int) -> str:
    """Measure a case on all sides; return a line of the report.

    `sides` maps a name to an interpreter and a device.
    """
    workers: dict[str, Worker] = {}
    try:
        for name, (python, device) in sides.items():
            variables = {"BENCH_LEVEL": level, "BENCH_DEVICE": device}
            workers[name] = Worker(name, "workloads.mindspore_api", python, **variables)
        found = interleaved(case, {name: (w, case) for name, w in workers.items()}, pairs)
    except CaseFailed as error:
        return f"failed: {error}"
    finally:
        for worker in workers.values():
            worker.close()
    first, *others = sides
    cells = [f"{first} {duration(found.median(first))}"]
    for name in others:
        best = min(found.seconds[name]) / min(found.seconds[first])
        ratios = f"{found.ratio(name, first):.2f}, best {best:.2f}"
        cells.append(f"{name} {duration(found.median(name))} ({ratios})")
    return "  ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="CPU,OpenCL:0", help="the first is the reference")
    parser.add_argument("--only", default="", help="only rows that contain one of these words")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="repetitions of each device")
    parser.add_argument("--old", metavar="PYTHON", help="interpreter of another version")
    options = parser.parse_args()
    sides = {device: (sys.executable, device) for device in options.devices.split(",")}
    if options.old:
        sides |= {f"old {device}": (options.old, device) for device in list(sides)}
    words = options.only.split(",")
    for case, level in ROWS:
        row = f"{case} {level}"
        if any(word in row for word in words):
            print(f"{row:<18} {measure(case, level, sides, options.pairs)}", flush=True)


if __name__ == "__main__":
    main()
