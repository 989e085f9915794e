"""Every public name of `duograph.ops` has one home, whether or not the late families are loaded."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import duograph as ms
from duograph.ops import FAMILIES, primitive

# Calls by names that once had a second home in a late family, and what they print.
CALLS = {
    "ops.reduce_sum(x)": "10.0",
    "ops.reduce_mean(x, 1)": "[1.5 3.5]",
    "ops.reduce_max(x, (0, 1))": "4.0",
    "ops.reduce_min(x, 0)": "[1. 2.]",
    "ops.mean(x, 0)": "[2. 3.]",
    "ops.floor_mod(x, 2.0).sum()": "2.0",
    "ops.subtract(x, x).sum()": "0.0",
    "ops.is_complex(x)": "False",
    "ops.EmbeddingLookup()(x, ms.Tensor([1]), 1)": "[[1. 2.]]",
}
# Run in a process of its own, where nothing has loaded the late families yet.
FIRST_USE = """
import duograph as ms
from duograph import ops

x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
before = {name: vars(ops)[name] for name in ops._public if name in vars(ops)}
assert "AllReduce" not in before
for call in CALLS:
    print(eval(call))
ops.AllReduce
changed = sorted(name for name, value in before.items() if vars(ops)[name] is not value)
assert changed == [], changed
for call in CALLS:
    print(eval(call))
"""


def test_no_name_is_exported_by_two_families() -> None:
    homes = Counter(name for family in FAMILIES for name in family.__all__)
    assert [name for name, count in homes.items() if count > 1] == []


def test_late_families_change_no_name() -> None:
    script = f"CALLS = {list(CALLS)}\n{FIRST_USE}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stderr == ""
    assert run.stdout.splitlines() == [*CALLS.values(), *CALLS.values()]


def test_bases_of_primitives_have_one_home() -> None:
    assert ms.ops.PrimitiveWithInfer is primitive.PrimitiveWithInfer
    assert ms.ops.PrimitiveWithCheck is primitive.PrimitiveWithCheck
