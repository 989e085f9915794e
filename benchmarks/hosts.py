"""Emulated hosts: network namespaces of this machine, joined by links of limited bandwidth.

Each host has one link to a switch, which `tc tbf` limits in both directions; all traffic stays
inside this machine. It needs root, `ip` and `tc` (iproute2) and `unshare`.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

AGENT = """#!/bin/sh
# what `ssh HOST COMMAND` would do, for a host that is a network namespace
host=$1; shift
exec ip netns exec duograph-$host unshare -u sh -c "hostname duograph-$host; $*"
"""
SWITCH = "duograph-switch"


def address(host: int) -> str:
    return f"10.99.0.{host + 1}"


def name(host: int) -> str:
    return f"duograph-{address(host)}"


def _run(*words: object) -> None:
    subprocess.run([str(w) for w in words], check=True)


def _limit(namespace: str, link: str, rate: str) -> None:
    _run("ip", "netns", "exec", namespace, "tc", "qdisc", "add", "dev", link, "root", "tbf",
         "rate", rate, "burst", "256kbit", "latency", "50ms")  # fmt: skip


@contextlib.contextmanager
def emulated_hosts(count: int, rate: str) -> Iterator[list[str]]:
    """Return a context with `count` hosts, whose links have the bandwidth `rate`, as ``1gbit``.

    Its value is the list of the namespaces of the hosts; they are removed at the end.
    """
    names = [name(host) for host in range(count)]
    made = []
    try:
        for namespace in (SWITCH, *names):
            _run("ip", "netns", "add", namespace)
            made.append(namespace)
        _run("ip", "-n", SWITCH, "link", "add", "switch", "type", "bridge")
        _run("ip", "-n", SWITCH, "link", "set", "switch", "up")
        for host, namespace in enumerate(names):
            _run("ip", "link", "add", f"dg{host}", "netns", namespace, "type", "veth",
                 "peer", "name", f"port{host}", "netns", SWITCH)  # fmt: skip
            _run("ip", "-n", namespace, "addr", "add", f"{address(host)}/24", "dev", f"dg{host}")
            _run("ip", "-n", namespace, "link", "set", f"dg{host}", "up")
            _run("ip", "-n", namespace, "link", "set", "lo", "up")
            _run("ip", "-n", SWITCH, "link", "set", f"port{host}", "master", "switch", "up")
            _limit(namespace, f"dg{host}", rate)
            _limit(SWITCH, f"port{host}", rate)
        yield names
    finally:
        for namespace in made:
            subprocess.run(["ip", "netns", "del", namespace], check=False)


def run_with_mpi(
    names: Sequence[str], command: Sequence[str], env: dict[str, str], passed: Sequence[str]
) -> None:
    """Run one rank of `command` on each emulated host, started by Open MPI.

    Args:
        env: the environment of the launcher.
        passed: the variables of it that the ranks get.
    """
    hosts = [address(host) for host in range(len(names))]
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / "agent.sh"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        network = "10.99.0.0/24"
        launch = [
            "mpirun", "--allow-run-as-root", "--host", ",".join(f"{h}:1" for h in hosts),
            "-n", str(len(hosts)), "--prtemca", "plm_ssh_agent", str(agent), "--mca", "pml", "ob1",
            "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", network,
            "--prtemca", "prte_if_include", network, "--prtemca", "oob_tcp_if_include", network,
            "--bind-to", "none", *[w for v in passed if v in env for w in ("-x", v)], *command,
        ]  # fmt: skip
        inside = f'hostname {names[0]}; exec "$@"'
        full = ["ip", "netns", "exec", names[0], "unshare", "-u", "sh", "-c", inside, "sh"]
        subprocess.run([*full, *launch], env=env, check=True, timeout=900)
