"""Measure data-parallel training on two emulated hosts, and on two cores.

Usage: parallel.py link|cores [--sides compiled,eager,torch] [--rate 1gbit] [--rounds N]
    [--pairs N] [--torch PYTHON] [--out build/benchmarks]

- link: two emulated hosts (`hosts.py`), whose links are limited to `--rate`. One rank per host and
  per core trains a GPT (`ranks_worker.py`); in each round every variant runs one step. duograph
  uses MPI over TCP, torch DDP uses gloo.
- cores: two ranks on two cores against one process on one core, with the same batch per rank.

Sides alternate, `--pairs` times. Times are medians over all rounds, in milliseconds, of the slower
rank of each round. `work` is the processor time of a step, which other programs on the machine
disturb less than its duration. Exposed communication is a variant minus the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
from pathlib import Path

from hosts import address, emulated_hosts, run_with_mpi

HERE = Path(__file__).resolve().parent


def environment(**more):
    return os.environ | {"OMP_NUM_THREADS": "1", "BENCH_CORES": "0,1"} | more


def on_hosts(names, side, out, rounds, torch):
    """Run one rank of `ranks_worker.py` on each emulated host."""
    worker = [str(HERE / "ranks_worker.py"), side, out, str(rounds)]
    if side != "torch":
        passed = ("PYTHONPATH", "PATH", "BENCH_CORES", "BENCH_BATCH", "OMP_NUM_THREADS")
        run_with_mpi(names, [sys.executable, *worker], environment(), passed)
        return
    ranks = []
    for rank, name in enumerate(names):
        own = environment(
            RANK=str(rank), WORLD_SIZE=str(len(names)), MASTER_ADDR=address(0), MASTER_PORT="29511",
            GLOO_SOCKET_IFNAME=f"dg{rank}",
        )  # fmt: skip
        ranks.append(subprocess.Popen(["ip", "netns", "exec", name, torch, *worker], env=own))
    if any(r.wait(900) for r in ranks):
        raise SystemExit("torch failed")


def on_cores(side, out, rounds, size, torch):
    """Run `size` ranks on this machine, one per core."""
    worker = [str(HERE / "ranks_worker.py"), side, out, str(rounds)]
    if side != "torch":
        start = [sys.executable, "-m", "duograph.run", "-n", str(size)]
        subprocess.run([*start, *worker], env=environment(), check=True, timeout=900)
        return
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512", "WORLD_SIZE": str(size)}
    ranks = [
        subprocess.Popen(
            [torch, *worker], env=environment(RANK=str(r), **(more if size > 1 else {}))
        )
        for r in range(size)
    ]
    if any(r.wait(900) for r in ranks):
        raise SystemExit("torch failed")


def collect(out, size):
    """Return times and processor work of all variants; per round, those of the slower rank."""
    ranks = [json.loads(Path(f"{out}.{r}.json").read_text()) for r in range(size)]
    return {
        what: {
            name: [max(each) for each in zip(*(r[what][name] for r in ranks), strict=True)]
            for name in ranks[0][what]
        }
        for what in ("times", "work")
    }


def table(rows, lines):
    lines.append(f"{'side':12} {'variant':22} {'step ms':>9} {'exposed':>9} {'work ms':>9}")
    for side, found in rows.items():
        floor = statistics.median(found["times"]["floor"])
        for name, times in found["times"].items():
            step = statistics.median(times)
            work = statistics.median(found["work"][name])
            lines.append(f"{side:12} {name:22} {step:9.1f} {step - floor:9.1f} {work:9.1f}")


def merged(all_found):
    first = all_found[0]
    return {
        what: {name: [t for f in all_found for t in f[what][name]] for name in first[what]}
        for what in first
    }


def link(options, folder, lines):
    sides = options.sides.split(",")
    found = {side: [] for side in sides}
    with emulated_hosts(2, options.rate) as names:
        for _ in range(options.pairs):
            for side in sides:
                out = str(folder / f"link-{side}")
                on_hosts(names, side, out, options.rounds, options.torch)
                found[side].append(collect(out, 2))
    lines.append(f"two hosts, a link of {options.rate}")
    table({side: merged(f) for side, f in found.items()}, lines)


def cores(options, folder, lines):
    sides = options.sides.split(",")
    found = {f"{side} {n}": [] for side in sides for n in (1, 2)}
    for _ in range(options.pairs):
        for side in sides:
            for n in (1, 2):
                out = str(folder / f"cores-{side}")
                on_cores(side, out, options.rounds, n, options.torch)
                found[f"{side} {n}"].append(collect(out, n))
    rows = {name: merged(f) for name, f in found.items()}
    lines.append("ranks on cores, one core each")
    table(rows, lines)
    for side in sides:
        for what in ("times", "work"):
            one = statistics.median(rows[f"{side} 1"][what]["floor"])
            two = statistics.median(rows[f"{side} 2"][what]["overlapped"])
            lines.append(f"{side}: efficiency of two ranks by {what}: {one / two:.0%}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that namespaces are removed
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("link", "cores"))
    parser.add_argument("--sides", default="compiled,eager,torch")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--torch", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--out", default="build/benchmarks")
    options = parser.parse_args()
    folder = Path(options.out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
             f"load {os.getloadavg()[0]:.1f} at the start"]  # fmt: skip
    {"link": link, "cores": cores}[options.what](options, folder, lines)
    text = "\n".join(lines)
    print(text)
    (folder / f"parallel-{options.what}.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
