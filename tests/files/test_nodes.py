"""Nodes as a file may contain them: the verifier refuses whatever kernels do not expect.

A node with a wrong attribute or operand must be refused, or run without an access outside its
buffers. Here a sample is run; `make fuzz-files` runs all under AddressSanitizer.
"""

from __future__ import annotations

import collections
import os
import random

import duograph as ms
import numpy as np
import pytest
from duograph.conformance.cases import all_cases
from duograph.errors import GraphError
from duograph.ir.text import parse
from duograph.ir.verify import verify
from files.mutated_nodes import mutations
from files.sampled_nodes import sampled_nodes
from files.verified_nodes import outcome

# Number of mutated nodes that are run; 0 stands for all.
COUNT = int(os.environ.get("DUOGRAPH_FUZZ_NODES", "1500"))
# Nodes of each op whose mutations are drawn from.
PER_OP = int(os.environ.get("DUOGRAPH_FUZZ_NODES_PER_OP", "2" if COUNT else "8"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy: infinity as an integer
def test_mutated_nodes_are_refused_or_run():
    rng = random.Random(14)
    cases = None if not COUNT else rng.sample(all_cases(), 60)
    nodes = [m for node in sampled_nodes(PER_OP, cases) for m in mutations(node)]
    if COUNT:
        nodes = rng.sample(nodes, min(COUNT, len(nodes)))
    before = ms.get_context("pynative_synchronize")
    ms.set_context(pynative_synchronize=True)
    found, kinds = [], collections.Counter()
    try:
        for i, node in enumerate(nodes):
            try:
                kinds[outcome(node, np.random.default_rng(i))] += 1
            except Exception as error:  # noqa: BLE001 (what escapes is the finding)
                found.append(f"{node!r:.300}: {type(error).__name__}: {error!s:.200}")
    finally:
        ms.set_context(pynative_synchronize=before)
    assert not found, f"{len(found)} of {len(nodes)}\n" + "\n".join(found[:40])
    assert kinds["refused"] > len(nodes) // 4 and kinds["ran"] > len(nodes) // 20


# One line of a graph each, of the operands %0: float32[2, 3] and %1: int64[2], with the result type
# that its author would like.
HOSTILE = {
    "concat, axis from the end": "concat(%0, %0, axis=-1) : float32[2, 6]",
    "concat, axis twice past the end": "concat(%0, %0, axis=-3) : float32[4, 3]",
    "iota": "iota(shape=(2, 4), axis=-1, dtype=int32) : int32[2, 4]",
    "iota past the end": "iota(shape=(2, 4), axis=2, dtype=int32) : int32[2, 4]",
    "a negative size": "iota(shape=(2, -4), axis=0, dtype=int32) : int32[2, 4]",
    "a fill too large": "fill(shape=(2), value=300, dtype=int8) : int8[2]",
    "one_hot": "one_hot(%1, depth=4, axis=-1, on=1, off=0, dtype=int32) : int32[2, 4]",
    "sort": "sort(%0, axis=-1, descending=False) : float32[2, 3]",
    "topk": "topk(%0, k=1, axis=-1, largest=True) : float32[2, 1]",
    "topk of more": "topk(%0, k=9, axis=1, largest=True) : float32[2, 9]",
    "median": "median(%0, axis=-1, keepdims=False, ignore_nan=False) : float32[2]",
    "cumsum": "cumsum(%0, axis=-1, exclusive=False, reverse=False) : float32[2, 3]",
    "argmax": "argmax(%0, axis=-1) : int64[2]",
    "max_with_index": "max_with_index(%0, axis=-1, keepdims=False) : float32[2]",
    "flip": "flip(%0, axes=(-1,)) : float32[2, 3]",
    "flip twice": "flip(%0, axes=(1, 1)) : float32[2, 3]",
    "transpose by an axis twice": "transpose(%0, perm=(0, 0)) : float32[2, 2]",
    "transpose of some axes": "transpose(%0, perm=(0,)) : float32[2]",
    "stack": "stack(%0, %0, axis=-1) : float32[2, 3, 2]",
    "softmax": "softmax(%0, axis=-1) : float32[2, 3]",
    "softmax_grad": "softmax_grad(%0, %2, axis=1) : float32[2, 3]",
    "reduce_sum": "reduce_sum(%0, axis=(-1,), keepdims=False) : float32[2]",
    "layer_norm_grad": "layer_norm_grad(%0, %2, %2, %2, %0, axis=1) : float32[2, 3]",
    "an axis that is a bool's text": "argmax(%0, axis='1') : int64[2]",
    "an axis that is a list": "flip(%0, axes=[1]) : float32[2, 3]",
    "a missing operand": "gather(%0, none, axis=0) : float32[2, 3]",
    "an int of 700 digits": f"topk(%0, k={'9' * 700}, axis=1, largest=True) : float32[2, 1]",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_lines_of_graphs_are_refused(name):
    line = HOSTILE[name]
    results = "%3, %4" if line.startswith(("sort", "topk", "max_with", "median")) else "%3"
    if "%4" in results:
        line += ", int64[" + line.rpartition("[")[2]
    if line.startswith("layer_norm_grad"):
        results, line = "%3, %4, %5", line + ", float32[4], float32[4]"
    text = (
        f"graph(%0: float32[2, 3], %1: int64[2], %2: float32[4]) {{\n  {results} = {line}\n"
        f"  return %3\n}}"
    )
    with pytest.raises(GraphError):
        verify(parse(text))
