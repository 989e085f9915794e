"""Fit a cost model of communication to measurements, check it, and predict many ranks.

Usage: scaling.py measure|predict [--rate 1gbit] [--rounds N] [--out build/benchmarks]

- measure: two, then four emulated hosts (`hosts.py`) run collectives (`scaling_worker.py`) and the
  training step of `ranks_worker.py`. The model (`scaling_model.py`) is fitted to two hosts alone;
  the table compares what it predicts with what was measured, also on four hosts.
- predict: tables and a plot of GPT-2 and ResNet-50 on 8 to 1,024 ranks. They are a SIMULATION: on
  the measured machine with its fitted numbers, and on one whose numbers are assumptions.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import signal
import statistics
import sys
from pathlib import Path

import numpy as np
import scaling_model as model
from hosts import emulated_hosts, run_with_mpi
from scaling_model import Layer, Machine, Workload

HERE = Path(__file__).resolve().parent
PASSED = ("PYTHONPATH", "PATH", "BENCH_CORES", "OMP_NUM_THREADS")
RANKS = (1, 8, 16, 32, 64, 128, 256, 512, 1024)
WAYS = 4  # tensor-parallel ranks of a replica
# Assumptions, not measurements: a GPU per rank at 40 % of 989 TFLOP/s in bfloat16, a link of
# 400 Gbit/s of which 80 % are reached, 10 us for a transfer, 0.5 us for each peer; within a
# tensor-parallel replica 360 GB/s.
ASSUMED = Machine(
    "GPU, 400 Gbit/s (assumed)", 10e-6, 0.5e-6, 8 / 320e9, 1 / 1e12, 4e14, 2, near_byte=1 / 360e9
)


def trained(batch: int = 8) -> Workload:
    """Return the network of `ranks_worker.py`."""
    width, length, vocabulary, depth = 256, 64, 512, 4
    tokens = batch * length
    rows = [Layer((vocabulary + length) * width, 0)]
    for _ in range(depth):
        for inputs, outputs in ((1, 3), (1, 1), (1, 4), (4, 1)):
            n = inputs * outputs * width * width
            rows.append(Layer(n + outputs * width, 2 * n * tokens))
        rows.append(Layer(4 * width, 4 * batch * length * length * width))
    n = vocabulary * width
    rows.append(Layer(2 * width + n + vocabulary, 2 * n * tokens))
    return Workload("the GPT of ranks_worker.py", tuple(rows))


# ---- measuring -----------------------------------------------------------------------------------


def on_hosts(count: int, rate: str, worker: list[str], out: Path) -> list[dict]:
    """Run a worker on emulated hosts; return what each rank wrote."""
    env = os.environ | {
        "OMP_NUM_THREADS": "1",
        "BENCH_CORES": ",".join(str(i % (os.cpu_count() or 1)) for i in range(count)),
    }
    with emulated_hosts(count, rate) as names:
        run_with_mpi(names, [sys.executable, *worker], env, PASSED)
    return [json.loads(Path(f"{out}.{r}.json").read_text()) for r in range(count)]


def slowest(ranks: list[dict[str, list[float]]]) -> dict[str, float]:
    """Return the median over rounds of the slowest rank, for each measurement."""
    return {
        key: statistics.median(map(max, zip(*(r[key] for r in ranks), strict=True)))
        for key in ranks[0]
    }


def measured(options: argparse.Namespace) -> dict:
    """Run all measurements; return them by number of hosts."""
    folder = Path(options.out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found: dict = {"rate": options.rate, "load": os.getloadavg()[0]}
    for count in (2, 4):
        print(f"{count} emulated hosts ...", flush=True)
        out = folder / f"scaling-{count}"
        worker = [str(HERE / "scaling_worker.py"), str(out), str(options.rounds)]
        ranks = on_hosts(count, options.rate, worker, out)
        step = [str(HERE / "ranks_worker.py"), "compiled", str(out), str(options.rounds)]
        found[str(count)] = {
            "collectives": slowest([r["times"] for r in ranks]),
            "summed": statistics.median(r["summed"] for r in ranks),
            "step": slowest([r["times"] for r in on_hosts(count, options.rate, step, out)]),
        }
    (folder / "scaling.json").write_text(json.dumps(found, indent=1))
    return found


# ---- fitting and checking ------------------------------------------------------------------------


def fitted(found: dict) -> Machine:
    """Return the machine that fits what two hosts measured.

    Latency and bandwidth fit the all-gathers best, in relative error; what the backward pass hides
    fits the training step.
    """
    two = found["2"]["collectives"]
    rows, times = [], []
    for key, seconds in two.items():
        kind, size = key.split()
        if kind == "gather":  # a comparison and a gather: two phases, `size` bytes each way
            rows.append([2 / seconds, (int(size) + model.COMPARED) / seconds])
            times.append(1.0)
    phase, byte = np.linalg.lstsq(np.array(rows), np.array(times), rcond=None)[0]
    counts, spent = zip(*((int(k.split()[1]), t) for k, t in two.items() if k.startswith("mes")),
                        strict=True)  # fmt: skip
    message = max(0.0, float(np.polyfit(counts, spent, 1)[0]))
    floor = found["2"]["step"]["floor"] / 1e3
    flops = 3 * sum(layer.flops for layer in trained().layers) / floor
    m = Machine(
        f"one core, {found['rate']}", float(phase), message, float(byte),
        found["2"]["summed"], flops,
    )  # fmt: skip
    seen = (found["2"]["step"]["overlapped"] / 1e3) - floor
    best, worst = (
        model.data_parallel(trained(), dataclasses.replace(m, hidden=h), 2, floor).exposed
        for h in (1.0, 0.0)
    )
    hidden = (worst - seen) / (worst - best) if worst > best else 1.0
    return dataclasses.replace(m, hidden=min(1.0, max(0.0, hidden)))


def crowded(m: Machine, ranks: int) -> Machine:
    """Return the machine of `ranks` ranks that share the cores of this one.

    A rank advances its transfers only while it has a core, so with two ranks per core everything
    takes twice as long. Ranks of a real cluster have a core each.
    """
    share = max(1.0, ranks / (os.cpu_count() or 1))
    return dataclasses.replace(
        m, phase=m.phase * share, message=m.message * share, byte=m.byte * share,
        summed=m.summed * share,
    )  # fmt: skip


def predicted(m: Machine, kind: str, size: int, ranks: int) -> float:
    """Return the predicted seconds of a collective of `scaling_worker.py`."""
    if kind == "gather":
        return model.alone(model.all_gather(m, ranks, size))
    collective = model.all_reduce if kind == "reduce" else model.reduce_scatter
    return model.alone(collective(m, ranks, size))


def checked(found: dict, m: Machine) -> list[str]:
    """Return the lines of a table of measured and predicted times."""
    lines = [
        f"fitted to two hosts: {m.phase * 1e6:.0f} us a transfer, {m.message * 1e6:.1f} us for "
        f"each further peer, {8e-9 / m.byte:.2f} Gbit/s, sums {1e-9 / m.summed:.1f} GB/s, "
        f"{m.flops / 1e9:.0f} GFLOP/s a rank, {m.hidden:.0%} of what the backward pass could hide; "
        f"load {found['load']:.1f} at the start",
        "",
        "| ranks | collective | bytes | measured ms | predicted ms | error |",
        "|---|---|---|---|---|---|",
    ]
    errors: dict[int, list[float]] = {2: [], 4: []}
    for ranks in (2, 4):
        for key, seconds in found[str(ranks)]["collectives"].items():
            kind, size = key.split()
            if kind == "messages":
                continue
            told = predicted(crowded(m, ranks), kind, int(size), ranks)
            errors[ranks].append(abs(told / seconds - 1))
            lines.append(
                f"| {ranks} | {kind} | {int(size):,} | {seconds * 1e3:.2f} | {told * 1e3:.2f} | "
                f"{told / seconds - 1:+.0%} |"
            )
    lines.append("")
    for ranks, each in errors.items():
        lines.append(f"{ranks} ranks: median error {statistics.median(each):.0%}")
    lines += ["", "| ranks | step | measured ms | predicted ms | error |", "|---|---|---|---|---|"]
    for ranks in (2, 4):
        step = found[str(ranks)]["step"]
        here = crowded(m, ranks)
        told = model.data_parallel(trained(), here, ranks, step["floor"] / 1e3).seconds * 1e3
        seen = step["overlapped"]
        lines.append(f"| {ranks} | alone | {step['floor']:.1f} | | |")
        error = told / seen - 1
        lines.append(f"| {ranks} | data parallel | {seen:.1f} | {told:.1f} | {error:+.0%} |")
    return lines


# ---- predicting ----------------------------------------------------------------------------------


def strategies(w: Workload, m: Machine, ranks: int) -> dict[str, model.Step]:
    found = {
        "data parallel": model.data_parallel(w, m, ranks),
        "ZeRO-1": model.zero(w, m, ranks),
    }
    if w.blocks:
        name = f"{WAYS}-way tensor parallel x data parallel"
        found[name] = model.tensor_parallel(w, m, ranks, min(WAYS, ranks))
    return found


def simulated(machines: list[Machine]) -> list[tuple[Machine, Workload, int, str, model.Step]]:
    return [
        (m, w, ranks, name, step)
        for m in machines
        for w in (model.gpt2(8), model.resnet(32))
        for ranks in RANKS
        for name, step in strategies(w, m, ranks).items()
    ]


def throughput(w: Workload, m: Machine, ranks: int, name: str, step: model.Step) -> float:
    """Return the samples per second of all ranks; those of one rank alone are 1."""
    replicas = max(1, ranks // WAYS) if "tensor" in name else ranks
    return replicas * w.compute(m) / step.seconds


def prediction_table(rows: list) -> list[str]:
    lines = [
        "SIMULATION: samples per second and rank as a share of one rank's",
        "",
        f"| machine | network, batch of a rank | strategy | {' | '.join(map(str, RANKS[1:]))} |",
        "|---|---|---" + "|---" * (len(RANKS) - 1) + "|",
    ]
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for m, w, ranks, name, step in rows:
        share = throughput(w, m, ranks, name, step) / ranks
        found.setdefault((m.name, w.name, name), {})[ranks] = share
    for (machine, network, name), shares in found.items():
        each = " | ".join(f"{shares[n]:.0%}" for n in RANKS[1:])
        lines.append(f"| {machine} | {network} | {name} | {each} |")
    return lines


def draw(rows: list, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    machines = list(dict.fromkeys(m.name for m, *_ in rows))
    networks = list(dict.fromkeys(w.name for _, w, *_ in rows))
    figure, axes = plt.subplots(
        len(networks), len(machines), figsize=(10, 3.4 * len(networks)), layout="constrained",
        squeeze=False, sharex=True,
    )  # fmt: skip
    title = "Simulation by the cost model of benchmarks/scaling_model.py, not a measurement"
    figure.suptitle(title, fontsize=10, color="#c62828")
    colours = ("#173f73", "#d9822b", "#5b9a4b")
    for i, network in enumerate(networks):
        for j, machine in enumerate(machines):
            ax = axes[i][j]
            some = [r for r in rows if r[0].name == machine and r[1].name == network]
            names = list(dict.fromkeys(r[3] for r in some))
            for colour, name in zip(colours, names, strict=False):
                points = [
                    (ranks, 100 * throughput(w, m, ranks, name, step) / ranks)
                    for m, w, ranks, strategy, step in some
                    if strategy == name
                ]
                ax.plot(*zip(*points, strict=True), "o-", color=colour, markersize=3, label=name)
            ax.axhline(100, linestyle="--", color="#bbbbbb", label="linear scaling")
            ax.set(xscale="log", ylim=(0, 105), title=f"{network}\n{machine}")
            ax.title.set_fontsize(9)
            ax.set_xticks(RANKS, labels=[f"{n:,}" for n in RANKS], fontsize=7)
            ax.minorticks_off()
            ax.spines[["top", "right"]].set_visible(False)
            if i == len(networks) - 1:
                ax.set_xlabel("ranks")
            if j == 0:
                ax.set_ylabel("throughput per rank, % of one rank alone")
            ax.legend(frameon=False, fontsize=7)
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that namespaces are removed
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("measure", "predict"))
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", default="build/benchmarks")
    options = parser.parse_args()
    folder = Path(options.out).resolve()
    kept = folder / "scaling.json"
    if options.what == "measure":
        found = measured(options)
    elif kept.exists():
        found = json.loads(kept.read_text())
    else:
        parser.error(f"there is no {kept}: run `scaling.py measure` first")
    m = fitted(found)
    lines = [f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"]
    lines += checked(found, m)
    if options.what == "predict":
        rows = simulated([m, ASSUMED])
        lines += ["", *prediction_table(rows)]
        draw(rows, folder / "scaling.svg")
        lines += ["", f"plot: {folder / 'scaling.svg'}"]
    text = "\n".join(lines)
    print(text)
    (folder / f"scaling-{options.what}.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
