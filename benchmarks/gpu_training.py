"""Measure compiled training steps on a GPU, beside PyTorch (eager and compiled) and JAX.

`gpu.py` prints the rows. The networks, weights and batches are those of `workloads`; the losses of
all sides are compared before a time counts. Each framework uses its own Adam. A peer that is not
installed or has no GPU is left out; small workloads run on its CPU.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Sequence

import duograph as ms
import numpy as np
from duograph import nn, ops
from workloads import data
from workloads import mindspore_api as ours

# Functions that run a step and return its loss, wait for the device, and read the loss.
Step = tuple[Callable[[], object], Callable[[], object], Callable[[object], float]]
RATE = 1e-4
SIDES = ("PyTorch", "torch.compile", "JAX")
NETWORKS = ("mlp", "resnet50", "gpt")
# "max-autotune" takes minutes to compile; "reduce-overhead" uses CUDA graphs as well
COMPILE_MODE = os.environ.get("BENCH_TORCH_MODE", "max-autotune")


def uses_tf32() -> bool:
    """Return whether float32 matmuls and convolutions of all sides may run in TF32."""
    return os.environ.get("DUOGRAPH_CUDA_TF32", "0") == "1"


def workloads(
    small: bool,
) -> Iterator[tuple[str, str, tuple[data.Arrays, np.ndarray, np.ndarray], bool]]:
    """Yield (printed name, network, (weights, inputs, labels), whether it computes in bfloat16)."""
    batch = 8 if small else 128
    yield f"MLP, batch {batch}", "mlp", data.mlp(batch), False
    data.IMAGE = (2, 3, 32, 32) if small else (64, 3, 224, 224)
    weights, images = data.resnet50()
    labels = np.random.default_rng(0).integers(0, 1000, len(images)).astype(np.int32)
    shape = "x".join(map(str, images.shape))
    yield f"ResNet-50, {shape}", "resnet50", (weights, images, labels), False
    if small:
        data.GPT.update(layers=2, width=32, heads=2, tokens=16, batch=2, vocabulary=100)
    else:  # GPT-2 small
        data.GPT.update(layers=12, width=768, heads=12, tokens=1024, batch=8, vocabulary=50257)
    text = (
        f"GPT, {data.GPT['layers']} layers of {data.GPT['width']}, "
        f"{data.GPT['batch']}x{data.GPT['tokens']} tokens"
    )
    yield f"{text}, bfloat16", "gpt", data.gpt(), True


def network_of(module: object, name: str) -> object:
    """Return the network `name` of a module of `workloads`."""
    if name == "mlp":
        return module.MLP(data.MLP_SIZES)
    return module.ResNet50() if name == "resnet50" else module.GPT(**data.GPT)


def duograph(name: str, arrays: tuple, short: bool, device: str, wait: Callable[[], None]) -> Step:
    """Return our training step, compiled at O2."""
    weights, x, y = arrays
    net = network_of(ours, name)
    ours._load(net, weights)
    net.set_train()
    if short:
        ms.amp.auto_mixed_precision(net, "O1", ms.bfloat16)
    optimizer = nn.Adam(net.trainable_params(), RATE)

    def loss_of(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        out = net(x)
        return ops.cross_entropy(out.reshape(-1, out.shape[-1]).astype(ms.float32), y.reshape(-1))

    forward = ms.value_and_grad(loss_of, None, optimizer.parameters)

    @ms.jit(jit_level="O2")
    def step(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        loss, grads = forward(x, y)
        optimizer(grads)
        return loss

    x, y = ms.Tensor(x, device=device), ms.Tensor(y, device=device)
    return lambda: step(x, y), wait, lambda loss: float(loss.asnumpy())


def pytorch(name: str, arrays: tuple, short: bool, small: bool, compiled: bool) -> Step | None:
    """Return the training step in PyTorch, or None if PyTorch or a GPU is missing."""
    try:
        torch = importlib.import_module("torch")
        module = importlib.import_module("workloads.torch_api")
    except ImportError:
        return None
    gpu = torch.cuda.is_available()
    if not gpu and not small:
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = uses_tf32()
    place = "cuda" if gpu else "cpu"
    weights, x, y = arrays
    net = network_of(module, name)
    net.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
    net = net.to(place).train()
    x, y = torch.from_numpy(x).to(place), torch.from_numpy(y).long().to(place)
    optimizer = torch.optim.Adam(net.parameters(), RATE, fused=True)

    def loss_of(x: object, y: object) -> object:
        with torch.autocast(place, torch.bfloat16, enabled=short):
            out = net(x)
        return torch.nn.functional.cross_entropy(out.float().flatten(0, -2), y.flatten())

    torch.compiler.reset()  # or it takes the shapes of one workload after another for a dynamic one
    forward = torch.compile(loss_of, mode=COMPILE_MODE, dynamic=False) if compiled else loss_of

    def step() -> object:
        optimizer.zero_grad()
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return (
            loss.detach().clone()
        )  # the memory of a compiled function's result is written again by its next call

    return step, torch.cuda.synchronize if gpu else lambda: None, lambda loss: loss.item()


def jax(name: str, arrays: tuple, short: bool, small: bool) -> Step | None:
    """Return the training step in JAX, or None if JAX or a GPU is missing."""
    os.environ.setdefault(
        "XLA_PYTHON_CLIENT_PREALLOCATE", "false"
    )  # three frameworks share the GPU here
    try:
        jax = importlib.import_module("jax")
        module = importlib.import_module("workloads.jax_api")
    except ImportError:
        return None
    if jax.default_backend() != "gpu" and not small:
        return None
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if uses_tf32() else "highest")
    jnp = jax.numpy
    network = getattr(module, f"{name}_network")
    weights, x, y = arrays
    weights = module._ours(weights)
    x, y = (
        jnp.asarray(np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if x.ndim == 4 else x),
        jnp.asarray(y),
    )
    init, update = module._adam(RATE, eps=1e-8)
    # the averages of batch normalisation go along, float32 in all networks
    averages = {k: w for k, w in weights.items() if "running" in k}
    weights = {k: w for k, w in weights.items() if k not in averages}
    state = weights, averages, init(weights)

    def loss_of(weights: dict, averages: dict, x: object, y: object) -> tuple:
        if short:
            weights = jax.tree.map(lambda w: w.astype(jnp.bfloat16), weights)
        moved: dict = {}
        log_p = jax.nn.log_softmax(network(weights, x, averages, moved).astype(jnp.float32))
        return -jnp.take_along_axis(log_p, y[..., None], -1).mean(), moved

    def advance(state: tuple, x: object, y: object) -> tuple:
        weights, averages, moments = state
        (loss, averages), grads = jax.value_and_grad(loss_of, has_aux=True)(weights, averages, x, y)
        weights, moments = update(weights, grads, moments)
        return (weights, averages, moments), loss

    advance = jax.jit(advance, donate_argnums=0)

    def step() -> object:
        nonlocal state
        state, loss = advance(state, x, y)
        return loss

    return step, lambda: jax.block_until_ready(state), float


def rows(
    device: str,
    small: bool,
    time_of: Callable[..., float],
    wait: Callable[[], None],
    networks: Sequence[str] = NETWORKS,
    peers: Sequence[str] = SIDES,
) -> Iterator[tuple[str, list[float | None]]]:
    """Yield the name of each workload with the seconds per step: ours, then those of `SIDES`.

    A time is None if the side was not selected, is missing, or computes another loss.
    """
    for text, name, arrays, short in workloads(small):
        if name not in networks:
            continue
        sides = [
            lambda n=name, a=arrays, s=short: duograph(n, a, s, device, wait),
            lambda n=name, a=arrays, s=short: pytorch(n, a, s, small, False),
            lambda n=name, a=arrays, s=short: pytorch(n, a, s, small, True),
            lambda n=name, a=arrays, s=short: jax(n, a, s, small),
        ]
        times: list[float | None] = []
        wanted: list[float] = []
        for k, side in enumerate(
            sides
        ):  # one after the other: the memory of one is free before the next one starts
            if k and SIDES[k - 1] not in peers:
                times.append(None)
                continue
            try:
                seconds, losses = _timed(side(), time_of)
            except Exception as error:
                if k == 0:
                    raise
                # a gap in the table
                print(f"{text}: {SIDES[k - 1]} failed: {type(error).__name__}: {str(error)[:500]}")
                seconds, losses = None, []
            wanted = losses if k == 0 else wanted
            # two images, normalised over two values in the last layers, go their own ways after the
            # first step
            count = 1 if small else len(losses)
            if not np.allclose(
                losses[:count], wanted[: len(losses[:count])], rtol=5e-2 if short else 2e-2
            ):
                print(f"{text}: losses {losses} are not near {wanted}, so this side does not count")
                seconds = None
            times.append(seconds)
        yield text, times


def _timed(made: Step | None, time_of: Callable[..., float]) -> tuple[float | None, list[float]]:
    """Return the seconds per step of a side, and its first three losses."""
    if made is None:
        return None, []
    step, finish, read = made
    losses = [read(step()) for _ in range(3)]
    return time_of(step, finish), losses
