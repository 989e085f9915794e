"""Measure data-parallel training on two emulated hosts, and on two cores.

Usage: parallel.py link|cores [--sides compiled,eager,torch] [--rate 1gbit] [--rounds N]
    [--pairs N] [--torch PYTHON] [--out build/benchmarks]

- link: two network namespaces are two hosts, joined by a pair of virtual links that `tc tbf` limits
  to `--rate`; the traffic stays inside this machine. It needs root, `ip` and `tc` (iproute2) and
  `unshare`. One rank per host and per core trains a GPT (`ranks_worker.py`); in each round every
  variant runs one step. duograph uses MPI over TCP, torch DDP uses gloo.
- cores: two ranks on two cores against one process on one core, with the same batch per rank.

Sides alternate, `--pairs` times. Times are medians over all rounds, in milliseconds, of the slower
rank of each round. `work` is the processor time of a step, which other programs on the machine
disturb less than its duration. Exposed communication is a variant minus the floor.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOSTS = ("10.99.0.1", "10.99.0.2")
AGENT = """#!/bin/sh
# what `ssh HOST COMMAND` would do, for a host that is a network namespace
host=$1; shift
exec ip netns exec duograph-$host unshare -u sh -c "hostname duograph-$host; $*"
"""


def command(*words):
    subprocess.run([str(w) for w in words], check=True)


@contextlib.contextmanager
def two_hosts(rate):
    """Return a context with two network namespaces, joined by a link limited to `rate`."""
    names = [f"duograph-{host}" for host in HOSTS]
    made = []
    try:
        for name in names:
            command("ip", "netns", "add", name)
            made.append(name)
        command("ip", "link", "add", "dg0", "netns", names[0], "type", "veth",
                "peer", "name", "dg1", "netns", names[1])  # fmt: skip
        for k, (name, host) in enumerate(zip(names, HOSTS, strict=True)):
            inside = ("ip", "netns", "exec", name)
            command(*inside, "ip", "addr", "add", f"{host}/24", "dev", f"dg{k}")
            command(*inside, "ip", "link", "set", f"dg{k}", "up")
            command(*inside, "ip", "link", "set", "lo", "up")
            command(*inside, "tc", "qdisc", "add", "dev", f"dg{k}", "root", "tbf", "rate", rate,
                    "burst", "256kbit", "latency", "50ms")  # fmt: skip
        yield names
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def environment(**more):
    return os.environ | {"OMP_NUM_THREADS": "1", "BENCH_CORES": "0,1"} | more


def on_hosts(names, side, out, rounds, torch):
    """Run one rank of `ranks_worker.py` on each emulated host."""
    worker = [str(HERE / "ranks_worker.py"), side, out, str(rounds)]
    if side != "torch":
        agent = Path(tempfile.mkdtemp()) / "agent.sh"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        wanted = ("PYTHONPATH", "PATH", "BENCH_CORES", "BENCH_BATCH", "OMP_NUM_THREADS")
        passed = [v for v in wanted if v in environment()]
        arguments = [
            "mpirun", "--allow-run-as-root", "--host", ",".join(f"{h}:1" for h in HOSTS), "-n", "2",
            "--prtemca", "plm_ssh_agent", str(agent), "--mca", "pml", "ob1", "--mca", "btl",
            "tcp,self", "--mca", "btl_tcp_if_include", "10.99.0.0/24", "--prtemca",
            "prte_if_include", "10.99.0.0/24", "--prtemca", "oob_tcp_if_include", "10.99.0.0/24",
            "--bind-to", "none", *[w for v in passed for w in ("-x", v)], sys.executable, *worker,
        ]  # fmt: skip
        inside = f'hostname {names[0]}; exec "$@"'
        full = ["ip", "netns", "exec", names[0], "unshare", "-u", "sh", "-c", inside, "sh"]
        subprocess.run([*full, *arguments], env=environment(), check=True, timeout=900)
        return
    ranks = []
    for rank, name in enumerate(names):
        own = environment(
            RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR=HOSTS[0], MASTER_PORT="29511",
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
    with two_hosts(options.rate) as names:
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
