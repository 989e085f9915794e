"""Compare duograph and its peers on whole workloads: training, inference, loops, first results.

It also measures how cost grows with size.

Usage: whole.py [--only WORDS] [--levels O0,O1] [--pairs N] [--brief] [--mindspore PYTHON] [--out
    build/benchmarks]

Every framework runs in a fresh process; results are compared before any time counts, and
repetitions are interleaved. A ratio is the best peer's time divided by ours, the median over the
pairs, so above 1 is faster. Writes whole.txt, whole.json and whole.svg. `--brief --levels O1,O2`
measures every row in one run of ten minutes on an idle machine.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np
from measure import THREADS, CaseFailed, Worker, duration, environment
from workloads import COMPARED_STEPS, data

PAIRS = 7
ACCURACY = 1e-3  # of the largest value: float32 in other orders, six steps of training
DRIFT = 1e-2  # the same after a whole job


@dataclass(frozen=True)
class Side:
    """A framework in one of its modes, such as eager or compiled."""

    name: str
    module: str
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        return self.name.startswith("duograph")


def sides(levels: list[str], mindspore: str | None) -> dict[str, Side]:
    found = [Side(f"duograph {level}", "mindspore_api", {"BENCH_LEVEL": level}) for level in levels]
    found += [
        Side("torch", "torch_api"),
        Side("torch.compile", "torch_api", {"BENCH_COMPILE": "1"}),
        Side("JAX", "jax_api"),
        Side("ONNX Runtime", "onnx_api"),
    ]
    if mindspore:
        # its convolutions are up to ten times faster with AVX2 than with AVX-512
        own = {
            "BENCH_MODULE": "mindspore",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "GLOG_v": "3",
            "PYTHON": mindspore,
        }
        found += [
            Side(f"MindSpore {k}", "mindspore_api", {**own, "BENCH_LEVEL": k}) for k in ("O0", "O1")
        ]
    return {side.name: side for side in found}


@dataclass(frozen=True)
class Row:
    """A workload: its name in `CASES`, its description, and the work of one repetition.

    `slow` are the sides that need more than half a minute before they have compiled it; `--brief`
    leaves them out.
    """

    case: str
    what: str
    wanted: float | None = None
    size: int = 0
    operations: float = 0.0
    peers: tuple[str, ...] = ("torch", "torch.compile", "JAX", "MindSpore O0", "MindSpore O1")
    slow: tuple[str, ...] = ()


INFERENCE = ("torch", "torch.compile", "ONNX Runtime")
SLOWEST = ("torch.compile",)
MATRIX = data.rows()[0].nbytes
ROWS = [
    Row("call3", "call: x*y + x, 3 floats"),
    Row("call50", "call: 50 parameters of 3 floats"),
    Row("chain", "tanh(x)*sigmoid(x) + exp(-x*x), 16M floats", 2.5, 8 * data.LARGE),
    Row("softmax", "softmax (8192, 1024)", 1.0, 2 * MATRIX),
    Row("layer_norm", "layer_norm (8192, 1024)", 1.0, 2 * MATRIX),
    Row("sum_rows", "sum over the last axis of (8192, 1024)", 1.0, MATRIX),
    Row("matmul1024", "matmul 1024^3", 1.0, operations=2 * 1024**3),
    Row("matmul4096", "matmul 4096x1024x1024", 1.0, operations=8 * 1024**3),
    Row("mlp", "train: MLP 784-512-256-10, batch 128, Adam", 1.05),
    Row("lenet", "train: LeNet-5, batch 64, momentum", 1.5),
    Row("resnet18", "train: ResNet-18, 16x3x64x64, momentum", 1.3, slow=SLOWEST),
    Row("gpt", "train: GPT, 4 layers of 256, 8x128 tokens, AdamW", 1.5, slow=SLOWEST),
    Row("lstm", "train: LSTM, 2 layers of 256, 64 steps, batch 32", 1.2),
    Row("newton_inverse", "loop: Newton's inverse of 256x256", 1.0),
    Row("newton_root", "loop: Newton's root of 256x256", 1.0),
    Row("resnet50", "infer: ResNet-50, one image", 1.1, peers=INFERENCE, slow=SLOWEST),
    Row("mobilenet", "infer: MobileNetV2, one image", 1.1, peers=INFERENCE, slow=SLOWEST),
    Row(
        "encoder",
        "infer: encoder, 12 layers of 768, 128 tokens",
        1.1,
        peers=INFERENCE,
        slow=SLOWEST,
    ),
    *(
        Row(f"depth{n}", f"depth {n}: train an MLP of width 128", peers=("JAX",))
        for n in data.DEPTHS
    ),
    *(Row(f"batch{n}", f"batch {n}: train the MLP", peers=("JAX",)) for n in data.BATCHES),
]
COMPILED = ("torch.compile", "JAX", "MindSpore O0", "MindSpore O1")
FIRST = [
    Row("call3", "first result: x*y + x", peers=COMPILED),
    Row("gpt", "first result: GPT step", peers=COMPILED, slow=SLOWEST),
]
DIGITS = Row("digits", "process: train on the digits", 1.0, slow=SLOWEST)


# ---- measuring -----------------------------------------------------------------------------------


def start(side: Side, **variables: str) -> Worker:
    own = dict(side.environment)
    python = own.pop("PYTHON", sys.executable)
    return Worker(side.name, f"workloads.{side.module}", python, **own, **variables)


def agree(values: dict[str, list[np.ndarray]], accuracy: float = ACCURACY) -> dict[str, str]:
    """Return the sides whose values differ from the reference side's, each with a description.

    The reference is the peer that agrees with most sides, or a side of duograph if there is no
    peer.
    """

    def apart(one: str, other: str) -> float:
        parts = zip(values[one], values[other], strict=True)
        return float(
            np.max([np.max(np.abs(a - b)) / max(float(np.max(np.abs(a))), 1e-6) for a, b in parts])
        )

    peers = [n for n in values if not n.startswith("duograph")] or list(values)
    right = max(
        peers, key=lambda n: sum(apart(n, other) <= accuracy for other in values), default=""
    )
    found = {name: apart(right, name) for name in values}
    return {
        name: f"computes something else than {right}: off by {off:.2g} of the largest value"
        for name, off in found.items()
        if not off <= accuracy  # also when it is NaN
    }


def measure(row: Row, chosen: list[Side], pairs: int) -> dict:
    """Return times and memory of one workload on all sides; a side that fails has its error."""
    workers: dict[str, Worker] = {}
    values: dict[str, list[np.ndarray]] = {}
    result: dict = {
        "case": row.case,
        "what": row.what,
        "wanted": row.wanted,
        "sides": {},
        "failed": {},
    }
    try:
        for side in chosen:
            try:
                worker = workers[side.name] = start(side)
                values[side.name], result["sides"][side.name] = worker.prepare_noting(row.case)
            except CaseFailed as error:
                result["failed"][side.name] = " ".join(str(error).split())[:200]
        for name, why in agree(values).items():
            result["failed"][name] = why
        good = [n for n in values if n not in result["failed"]]
        counts = {}
        for name in good:
            workers[name].run(row.case, 1)
            once = min(workers[name].run(row.case, 2) for _ in range(2))
            counts[name] = max(1, min(100_000, round(0.1 / once)))
        seconds: dict[str, list[float]] = {n: [] for n in good}
        for i in range(pairs):
            for name in good if i % 2 == 0 else good[::-1]:
                seconds[name].append(workers[name].run(row.case, counts[name]))
        for name in good:
            result["sides"][name] |= {
                "seconds": seconds[name],
                "memory": workers[name].ask("memory"),
            }
    finally:
        for worker in workers.values():
            worker.close()
    result["sides"] = {n: s for n, s in result["sides"].items() if n in good}
    return conclude(result, row)


def cold_and_warm(row: Row) -> list[dict]:
    """Return two empty results for a row: with empty disk caches and with filled ones."""
    return [
        {
            "case": f"{row.case}-{kind}",
            "what": f"{row.what}, {kind}",
            "wanted": row.wanted,
            "sides": {},
            "failed": {},
        }
        for kind in ("cold", "warm")
    ]


def first_results(row: Row, chosen: list[Side], pairs: int) -> list[dict]:
    """Measure the seconds to the first result in a process that has imported the framework."""
    results = cold_and_warm(row)
    for _ in range(pairs):
        for side in chosen:
            with tempfile.TemporaryDirectory() as folder:
                for result in results:
                    worker = start(side, **caches(folder))
                    try:
                        note = worker.prepare_noting(row.case)[1]
                        entry = result["sides"].setdefault(side.name, {"seconds": []})
                        entry["seconds"].append(note["first step"])
                    except CaseFailed as error:
                        result["failed"][side.name] = " ".join(str(error).split())[:200]
                    finally:
                        worker.close()
    return [conclude(result, row) for result in results]


def jobs(chosen: list[Side], pairs: int) -> list[dict]:
    """Measure the seconds of a whole process that trains on handwritten digits."""
    from sklearn.datasets import load_digits

    results = cold_and_warm(DIGITS)
    learned: dict[str, list[np.ndarray]] = {}
    images = (load_digits().images / 16).astype(np.float32)[:, None]
    labels = load_digits().target.astype(np.int32)
    with tempfile.TemporaryDirectory() as place:
        file = str(Path(place) / "digits.npz")
        cut = len(images) * 4 // 5
        np.savez(
            file,
            train_x=images[:cut],
            train_y=labels[:cut],
            test_x=images[cut:],
            test_y=labels[cut:],
        )
        for _ in range(pairs):
            for side in chosen:
                with tempfile.TemporaryDirectory() as folder:
                    for result in results:
                        if side.name in result["failed"]:
                            continue
                        try:
                            seconds, losses, accuracy = job(side, file, caches(folder))
                        except CaseFailed as error:
                            for each in results:
                                each["failed"][side.name] = str(error)[:200]
                            break
                        entry = result["sides"].setdefault(side.name, {"seconds": []})
                        entry["seconds"].append(seconds)
                        entry["accuracy"] = accuracy
                        # later losses drift apart by rounding, but the accuracy must agree
                        learned[side.name] = [
                            np.array(losses[:COMPARED_STEPS]),
                            np.array([accuracy]),
                        ]
            for name, why in agree(learned, DRIFT).items():
                for result in results:
                    result["failed"][name] = why
    for result in results:
        result["sides"] = {n: s for n, s in result["sides"].items() if n not in result["failed"]}
    return [conclude(result, DIGITS) for result in results]


def job(side: Side, file: str, more: dict[str, str]) -> tuple[float, list[float], float]:
    """Run the digits job on a side.

    Return its seconds, the losses of its steps, and its accuracy on held-out digits.
    """
    own = dict(side.environment)
    python = own.pop("PYTHON", sys.executable)
    command = [python, str(Path(__file__).parent / "workloads" / "job.py"), side.module, file]
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(**own, **more),
        cwd=tempfile.gettempdir(),
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise CaseFailed(
            (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        )
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["accuracy"] < 0.9:
        raise CaseFailed(
            f"learns nothing: {answer['accuracy']:.1%} of the digits held out are right"
        )
    return seconds, answer["losses"], answer["accuracy"]


def caches(folder: str) -> dict[str, str]:
    """Return environment variables that make the frameworks cache compiled code in `folder`."""
    names = ("DUOGRAPH_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
    return {**dict.fromkeys(names, folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}  # fmt: skip


def conclude(result: dict, row: Row) -> dict:
    """Add medians, speeds, the best peer, and ratios to a result; return it."""
    for entry in result["sides"].values():
        entry["median"] = statistics.median(entry["seconds"])
        if row.size:
            entry["GB/s"] = row.size / entry["median"] / 1e9
        if row.operations:
            entry["GFLOP/s"] = row.operations / entry["median"] / 1e9
    peers = {n: s for n, s in result["sides"].items() if not n.startswith("duograph")}
    if peers:
        best = result["best peer"] = min(peers, key=lambda n: peers[n]["median"])
        for entry in result["sides"].values():
            pairs = zip(peers[best]["seconds"], entry["seconds"], strict=False)
            entry["ratio"] = statistics.median(theirs / own for theirs, own in pairs)
    return result


def growth(kind: str, results: list[dict]) -> dict[str, str]:
    """Return for each side the doubling of the work that increased the cost most.

    The number is the growth of the time divided by the growth of the work: 1 is linear, more is
    worse.
    """
    found = sorted((int(r["case"][len(kind) :]), r) for r in results if r["case"].startswith(kind))
    worst: dict[str, tuple[float, str]] = {}
    for (small, before), (large, after) in itertools.pairwise(found):
        for name in before["sides"].keys() & after["sides"].keys():
            times = before["sides"][name]["median"], after["sides"][name]["median"]
            factor = times[1] / times[0] / (large / small)
            text = (
                f"{small} to {large}, {duration(times[0])} to {duration(times[1])}: "
                f"{factor:.2f} of linear"
            )
            worst[name] = max(worst.get(name, (0.0, "")), (factor, text))
    return {name: text for name, (_, text) in sorted(worst.items())}


def copy_speed() -> float:
    """Return the present speed of STREAM's copy in GB/s."""
    worker = Worker("copy", "copy")
    worker.prepare("copy_large")
    worker.run("copy_large", 2)
    seconds = statistics.median(worker.run("copy_large", 2) for _ in range(5))
    worker.close()
    return 8 * data.LARGE / seconds / 1e9


# ---- showing -------------------------------------------------------------------------------------


def lines(result: dict) -> list[str]:
    """Return the results of one workload as lines of text."""
    best = result.get("best peer")
    out = [
        result["what"]
        + (f"   (wanted: {result['wanted']} x the best peer)" if result["wanted"] else "")
    ]
    for name, entry in result["sides"].items():
        text = f"  {name:<16} {duration(entry['median']):>9}"
        if "ratio" in entry:
            text += f"  {entry['ratio']:6.2f}x"
        for unit in ("GB/s", "GFLOP/s"):
            if unit in entry:
                text += f"  {entry[unit]:6.1f} {unit}"
        if "memory" in entry:
            text += (
                f"  {entry['memory']['steps'] / 2**20:7.1f} MiB (at most "
                f"{entry['memory']['all'] / 2**20:.1f})"
            )
        if "accuracy" in entry:
            text += f"  {entry['accuracy']:.1%} right"
        if "first step" in entry:
            text += f"  first {duration(entry['first step'])}"
        out.append(text + ("   best peer" if name == best else ""))
    out += [f"  {name:<16} {why}" for name, why in result["failed"].items()]
    return out


def machine() -> dict:
    try:
        info = Path("/proc/cpuinfo").read_text()
        model = next(
            line.split(":")[1].strip()
            for line in info.splitlines()
            if line.startswith("model name")
        )
    except (OSError, StopIteration):
        model = platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": THREADS,
        "memory GiB": round(memory, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def versions(mindspore: str | None) -> dict[str, str]:
    found = {n: metadata.version(n) for n in ("duograph", "numpy", "torch", "jax", "onnxruntime")}
    if mindspore:
        code = "from importlib.metadata import version; print(version('mindspore'))"
        found["mindspore"] = subprocess.check_output([mindspore, "-c", code], text=True).strip()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="", help="cases that contain one of these words, with commas between"
    )
    parser.add_argument("--levels", default="eager,O0,O1", help="how duograph runs")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="interleaved repetitions")
    parser.add_argument("--peers", default="", help="only these, by name, with commas between")
    parser.add_argument(
        "--brief", action="store_true", help="without sides that compile a row for half a minute"
    )
    parser.add_argument("--mindspore", metavar="PYTHON", help="an interpreter that has MindSpore")
    parser.add_argument("--out", type=Path, default=Path("build/benchmarks"))
    options = parser.parse_args()
    if options.pairs < PAIRS:
        print(f"note: fewer than {PAIRS} pairs is too few for a figure that anyone should cite")
    table = sides(
        options.levels.split(","), options.mindspore and os.path.abspath(options.mindspore)
    )
    words = options.only.split(",")
    wanted = options.peers.split(",") if options.peers else list(table)

    def chosen(row: Row) -> list[Side]:
        peers = [n for n in row.peers if n in wanted and not (options.brief and n in row.slow)]
        return [s for s in table.values() if s.ours or s.name in peers]

    report = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(), "versions": versions(options.mindspore), "pairs": options.pairs,
        "load at the start": os.getloadavg()[0], "copy GB/s": copy_speed(), "rows": [],
    }  # fmt: skip
    printed: list[str] = []

    def say(*texts: str) -> None:
        printed.extend(texts)
        print("\n".join(texts), flush=True)

    def add(result: dict) -> None:
        report["rows"].append(result)
        say(*lines(result))

    say(json.dumps({k: v for k, v in report.items() if k != "rows"}, indent=1))
    for row in ROWS:
        if any(word in row.case for word in words):
            add(measure(row, chosen(row), options.pairs))
    report["growth"] = {kind: growth(kind, report["rows"]) for kind in ("depth", "batch")}
    for kind, found in report["growth"].items():
        for name, worst in found.items():
            say(f"{kind}: the worst step of {name} is {worst}")
    pairs = min(options.pairs, 3)  # two processes each, and some compile for half a minute
    for row in FIRST:
        if any(word in f"first-{row.case}" for word in words):
            for result in first_results(
                row, [s for s in chosen(row) if s.name != "duograph eager"], pairs
            ):
                add(result)
    if any(word in DIGITS.case for word in words):
        for result in jobs(chosen(DIGITS), pairs):
            add(result)
    report["load at the end"] = os.getloadavg()[0]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "whole.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    (options.out / "whole.txt").write_text("\n".join(printed) + "\n", encoding="utf-8")
    from picture import draw

    draw(report, options.out / "whole.svg")
    print(f"wrote whole.txt, whole.json and whole.svg to {options.out}")
    return int(any(n.startswith("duograph") for row in report["rows"] for n in row["failed"]))


if __name__ == "__main__":
    sys.exit(main())
