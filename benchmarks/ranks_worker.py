"""One rank of `parallel.py`: trains a GPT, and measures steps with and without communication.

Usage: ranks_worker.py SIDE OUT ROUNDS. SIDE is `eager`, `compiled` or `torch`. In each round the
rank runs one step of every variant, after a barrier; OUT.RANK.json gets the times in milliseconds:

- floor: no communication.
- sequential: all gradients are computed, then combined, then the optimiser runs.
- overlapped: what a user gets, `nn.TrainOneStepCell` or `DistributedDataParallel`.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

WIDTH, HEADS, LAYERS, LENGTH, VOCABULARY = 256, 4, 4, 64, 512
BATCH = int(os.environ.get("BENCH_BATCH", "8"))  # of one rank
RATE = 0.01


def tokens(rank):
    random = np.random.default_rng(rank)
    return random.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)


def duograph_variants(mode, data):
    import duograph as ms
    from duograph import nn, ops
    from duograph.communication import init

    init()
    ms.set_context(mode=ms.PYNATIVE_MODE if mode == "eager" else ms.GRAPH_MODE, jit_level="O1")
    mask = ms.Tensor(np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1))

    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
            self.qkv, self.out = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
            self.inner, self.outer = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)

        def construct(self, x):
            n = x.shape[0]
            split = self.qkv(self.first(x)).reshape(n, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = split.transpose(2, 0, 3, 1, 4).unbind(0)
            scores = ops.matmul(q, k.swapaxes(-1, -2)) * (WIDTH // HEADS) ** -0.5 + mask
            mixed = ops.matmul(ops.softmax(scores), v).swapaxes(1, 2).reshape(n, LENGTH, WIDTH)
            x = x + self.out(mixed)
            return x + self.outer(ops.gelu(self.inner(self.second(x))))

    class GPT(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.position = ms.Parameter(ops.zeros((LENGTH, WIDTH), ms.float32), "position")
            self.blocks = nn.SequentialCell(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm((WIDTH,)), nn.Dense(WIDTH, VOCABULARY)

        def construct(self, x, y):
            out = self.head(self.norm(self.blocks(self.embedding(x) + self.position)))
            return ops.cross_entropy(out.reshape(-1, VOCABULARY), y.reshape(-1))

    x, y = ms.Tensor(data[:, :-1]), ms.Tensor(data[:, 1:])

    def step(parallel):
        ms.set_auto_parallel_context(
            parallel_mode="data_parallel" if parallel else "stand_alone", gradients_mean=True
        )
        ms.set_seed(1)
        net = GPT().set_train()
        optimiser = nn.Momentum(net.trainable_params(), RATE, 0.9)
        return nn.TrainOneStepCell(net, optimiser).set_train()

    def sequential():
        made = step(True)
        gradients = ms.value_and_grad(made.network, None, made.weights)
        update = made.optimizer
        if mode != "eager":
            gradients = ms.jit(
                lambda x, y: ms.value_and_grad(made.network, None, made.weights)(x, y)
            )

        def run():
            loss, grads = gradients(x, y)
            update(made.grad_reducer(grads))
            return loss

        return run

    alone, overlapped, barrier = step(False), step(True), ms.ops.AllReduce()
    one_after_the_other = sequential()
    one = ms.Tensor(np.ones(1, np.float32))
    return {
        "floor": lambda: alone(x, y).asnumpy(),
        "sequential": lambda: one_after_the_other().asnumpy(),
        "overlapped": lambda: overlapped(x, y).asnumpy(),
    }, lambda: barrier(one).asnumpy()


def torch_variants(data):
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn import functional as F
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    if "MASTER_ADDR" in os.environ:
        dist.init_process_group("gloo")

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.inner, self.outer = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            n = x.shape[0]
            split = self.qkv(self.first(x)).view(n, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(n, LENGTH, WIDTH))
            return x + self.outer(F.gelu(self.inner(self.second(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, x, y):
            out = self.head(self.norm(self.blocks(self.embedding(x) + self.position)))
            return F.cross_entropy(out.view(-1, VOCABULARY), y.reshape(-1))

    x, y = torch.from_numpy(data[:, :-1]).long(), torch.from_numpy(data[:, 1:]).long()

    def step(wrap, combine=None):
        torch.manual_seed(1)
        net = GPT()
        wrapped = wrap(net)
        optimiser = torch.optim.SGD(net.parameters(), RATE, 0.9)

        def run():
            optimiser.zero_grad()
            loss = wrapped(x, y)
            loss.backward()
            if combine is not None:
                combine(net)
            optimiser.step()
            return loss.item()

        return run

    def combine(net):
        flat = torch.cat([p.grad.view(-1) for p in net.parameters()])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        at = 0
        for p in net.parameters():
            p.grad = flat[at : at + p.numel()].view_as(p)
            at += p.numel()

    found = {"floor": step(lambda net: net)}
    if dist.is_initialized():
        found["sequential"] = step(lambda net: net, combine)
        found["overlapped"] = step(DistributedDataParallel)
        found["overlapped, 2 MB"] = step(
            lambda net: DistributedDataParallel(net, bucket_cap_mb=2, gradient_as_bucket_view=True)
        )
    return found, (dist.barrier if dist.is_initialized() else lambda: None)


def main():
    side, out, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rank = int(
        next((os.environ[v] for v in ("OMPI_COMM_WORLD_RANK", "RANK") if v in os.environ), 0)
    )
    cores = os.environ.get("BENCH_CORES")
    if cores:
        os.sched_setaffinity(0, {int(cores.split(",")[rank])})
    data = tokens(rank)
    variants, barrier = torch_variants(data) if side == "torch" else duograph_variants(side, data)
    times, work = ({name: [] for name in variants} for _ in range(2))
    losses = {}
    for i in range(rounds + 2):
        for name, run in variants.items():
            barrier()
            begin, spent = time.perf_counter(), time.process_time()
            loss = run()
            took, spent = time.perf_counter() - begin, time.process_time() - spent
            if i >= 2:
                times[name].append(took * 1e3)
                work[name].append(spent * 1e3)
            losses[name] = float(loss)
    with open(f"{out}.{rank}.json", "w") as f:
        json.dump({"times": times, "work": work, "losses": losses}, f)


if __name__ == "__main__":
    main()
