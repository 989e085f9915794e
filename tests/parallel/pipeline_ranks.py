"""Trains a GPT on a pipeline with one stage per rank, for `test_pipeline`.

`python pipeline_ranks.py FOLDER [fail]` runs on the ranks that a launcher started, and writes what
each rank holds at the end to FOLDER. With `fail`, the last stage raises in its third step.
"""

from __future__ import annotations

import pathlib
import sys

import duograph as ms
import numpy as np
from duograph import nn
from duograph.communication import get_group_size, get_rank, init
from sharded_programs import GPT, LAYERS, TOKENS, LossCell

STEPS, MICRO_BATCHES = 4, 4


def train(count: int, fail: bool = False) -> dict[str, np.ndarray]:
    """Train on `count` stages; return the losses, and the Parameters of this rank by name."""
    if count > 1:
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", pipeline_stages=count, full_batch=True
        )
    ms.set_seed(1)
    net = GPT()
    stages = {"net.embedding": 0, "net.norm": count - 1, "net.head": count - 1}
    stages |= {f"net.blocks.{i}": i * count // LAYERS for i in range(LAYERS)}
    cell = nn.PipelineCell(LossCell(net), MICRO_BATCHES, stage_config=stages)
    step = nn.TrainOneStepCell(cell, nn.Adam(cell.trainable_params(), 1e-2))
    step.set_jit_config(ms.JitConfig("O0"))
    x, y = ms.Tensor(TOKENS[:, :-1]), ms.Tensor(TOKENS[:, 1:])
    losses = []
    for i in range(STEPS):
        if fail and i == 2 and get_rank() == count - 1:
            raise ValueError("the last stage fails")
        losses.append(step(x, y).item())
    held = {
        p.name: p.asnumpy()
        for p in step.get_parameters()
        if p._placement is None or p._placement.elsewhere is None
    }
    return {"losses": np.array(losses), **held}


if __name__ == "__main__":
    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    found = train(get_group_size(), "fail" in sys.argv)
    np.savez(pathlib.Path(sys.argv[1]) / f"{get_rank()}.npz", **found)
