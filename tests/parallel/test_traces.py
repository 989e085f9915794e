"""The traces of ranks in one file, and what a profile says of their communication."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.communication import get_rank
from duograph.profiler.merging import merged
from duograph_collectives.local import run_ranks

SCRIPT = """
import duograph as ms
from duograph import ops
from duograph.communication import get_rank, init

init()
both = ms.jit(lambda x: ops.AllReduce()(x + get_rank()))
for _ in range(3):
    both(ms.Tensor([1.0, 2.0]))
    ops.AllReduce("max")(ms.Tensor([1.0]))
"""


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_one_trace_of_all_ranks(tmp_path: pathlib.Path) -> None:
    script, out = tmp_path / "script.py", tmp_path / "out.json"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "duograph.run", "-n", "2", "--trace", str(out), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    events = found["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {0: "rank 0", 1000: "rank 1"}
    assert found["otherData"]["ranks"] == "0, 1"
    for pid in names:
        own = [e for e in events if e["pid"] == pid]
        begun = {e["id"]: e["ts"] for e in own if e["ph"] == "b"}
        ended = {e["id"]: e["ts"] for e in own if e["ph"] == "e"}
        assert len(begun) >= 6 and begun.keys() == ended.keys()
        assert all(ended[i] >= begun[i] >= 0 for i in begun)
        assert {"kernel", "communication"} <= {e.get("cat") for e in own}
    # ranks cannot end a collective before all have begun it: this holds if the clocks agree
    sums = [
        [(e["ts"], e["ph"]) for e in events if e["pid"] == pid and e["name"] == "AllReduce(max)"]
        for pid in names
    ]
    for k in range(0, 6, 2):
        (begin0, _), (end0, _) = sums[0][k : k + 2]
        (begin1, _), (end1, _) = sums[1][k : k + 2]
        assert max(begin0, begin1) <= min(end0, end1)


def test_parts_are_joined_by_their_clocks() -> None:
    def part(clock: int, at: float) -> dict[str, Any]:
        named = {"name": "process_name", "ph": "M", "ts": 0, "pid": 7, "tid": 0,
                 "args": {"name": "duograph host"}}  # fmt: skip
        device = {**named, "pid": 8, "args": {"name": "GPU:0"}}
        event = {"name": "add", "ph": "X", "ts": at, "dur": 1.0, "pid": 8, "tid": 1}
        return {"traceEvents": [named, device, event], "otherData": {"clock": str(clock)}}

    found = merged({1: part(5000, 1.0), 0: part(2000, 10.0)})["traceEvents"]
    assert [(e["pid"], e["ts"]) for e in found if e["name"] == "add"] == [(1, 10.0), (1001, 4.0)]
    named = [e["args"]["name"] for e in found if e["name"] == "process_name"]
    assert named == ["rank 0", "rank 0 GPU:0", "rank 1", "rank 1 GPU:0"]


def test_steps_say_what_was_sent_and_waited_for() -> None:
    """4 kB to one other rank: the values, and 16 bytes that stand for the call."""
    x = ms.Tensor(np.ones(1000, np.float32))

    def program() -> tuple[Any, str, list[str]]:
        if get_rank():
            for _ in range(2):
                ops.AllReduce()(x)
            return None, "", []
        with ms.profile() as p:
            for _ in range(2):
                ops.AllReduce()(x)
                p.step()
        rows = [row.name for row in p.rows()]
        return p.communication, p.summary(), rows

    (steps, text, rows), _ = run_ranks(program, 2)
    # threads share one profile, so that it may hold what the other rank has sent meanwhile
    assert [s.number for s in steps] == [0, 1]
    assert sum(s.nbytes for s in steps) in [4016 * n for n in (2, 3, 4)]
    assert all(s.exposed >= 0 for s in steps)
    assert "communication: 0.0" in text and "per step" in text
    assert "AllReduce(sum)" not in rows


def test_nothing_is_said_without_communication() -> None:
    with ms.profile() as p:
        ms.Tensor([1.0]) + 1
        p.step()
    assert p.communication == [(0, 0, 0.0)]
    assert "communication" not in p.summary()
