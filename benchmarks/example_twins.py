"""The trainings of `examples/` written in torch, with the same sizes, data, schedules and steps.

Each function has the name of an example. Its arguments are the example's module (for data and
constants), the numbers of steps and a progress bar; it returns the example's figure of merit.
`examples.py` calls it.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch_chip
from torch import nn

torch.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))
SEED = 1


def cosine(low: float, high: float, step: int, steps: int) -> float:
    """Return the learning rate that `nn.cosine_decay_lr` has at a step."""
    return low + 0.5 * (high - low) * (1 + math.cos(math.pi * step / steps))


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of an optimiser."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def descend(
    optimizer: torch.optim.Optimizer, loss: torch.Tensor, clip: float | None = None
) -> float:
    """Run one step of an optimiser; return the loss as a number."""
    optimizer.zero_grad()
    loss.backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], clip)
    optimizer.step()
    return loss.item()


def classify(net, data, epochs: int, rates: tuple[float, float], bar) -> float:
    """Train a classifier on images in batches of 32; return its accuracy on held-out images."""
    images, labels, test_images, test_labels = [torch.from_numpy(np.array(x)) for x in data]
    steps = len(images) // 32
    optimizer = torch.optim.Adam(net.parameters())
    shuffle = np.random.default_rng(SEED)
    pace = bar(total=epochs * steps)
    for epoch in range(epochs):
        set_rate(optimizer, cosine(*rates, epoch, epochs))
        order = shuffle.permutation(len(images))
        for step in range(steps):
            rows = order[step * 32 : (step + 1) * 32]
            descend(optimizer, F.cross_entropy(net(images[rows]), labels[rows].long()))
            pace.update()
    net.eval()
    with torch.no_grad():
        return (net(test_images).argmax(1) == test_labels).float().mean().item()


def digits(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, 10),
    )  # fmt: skip
    return classify(net, example.load(SEED), steps.epochs, (1e-4, 3e-3), bar)


def serve_onnx(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    return classify(net, example.load(SEED), steps.epochs, (1e-5, 3e-3), bar)


def block(inputs: int, outputs: int) -> nn.Sequential:
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, classes: int, width: int = 12):
        super().__init__()
        sizes = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList(map(block, [1, *sizes[:-1]], sizes))
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(2 * size, size, 2, stride=2) for size in sizes[:-1]
        )
        self.join = nn.ModuleList(block(2 * size, size) for size in sizes[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        seen = []
        for i, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for i in (2, 1, 0):
            x = self.join[i](torch.cat((seen[i], self.up[i](x)), 1))
        return self.head(x)


def unet(example, steps, bar) -> float:
    torch.manual_seed(SEED)

    def made(count: int, seed: int) -> list[torch.Tensor]:
        rng = np.random.default_rng(seed)
        columns = zip(*[example.draw_shapes(rng, 64) for _ in range(count)], strict=True)
        return [torch.from_numpy(np.stack(column)) for column in columns]

    batch = 16
    (images, labels), (test, truth) = made(1200, SEED), made(150, SEED + 1)
    net = UNet(len(example.CLASSES))
    optimizer = torch.optim.Adam(net.parameters())
    shuffle = np.random.default_rng(SEED)
    pace = bar(total=steps.epochs * len(images) // batch)
    for epoch in range(steps.epochs):
        set_rate(optimizer, cosine(1e-5, 5e-3, epoch, steps.epochs))
        for rows in np.split(shuffle.permutation(len(images)), len(images) // batch):
            descend(optimizer, F.cross_entropy(net(images[rows]), labels[rows].long()))
            pace.update()
    net.eval()
    with torch.no_grad():
        found = torch.cat([net(part).argmax(1) for part in test.split(16)])
    hits = [((found == k) & (truth == k)).sum() / ((found == k) | (truth == k)).sum()
            for k in range(len(example.CLASSES))]  # fmt: skip
    return float(torch.stack(hits).mean())


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, example, vocabulary: int):
        super().__init__()
        width = example.WIDTH
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(example.CONTEXT, width)
        nn.init.normal_(self.tokens.weight, std=0.01)  # duograph's initial values
        nn.init.normal_(self.places.weight, std=0.01)
        self.blocks = nn.Sequential(*[Block(width, example.HEADS) for _ in range(example.LAYERS)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.places.weight)))


def text_loss(net, ids: np.ndarray, starts: np.ndarray, context: int) -> torch.Tensor:
    """Return the cross entropy of the next characters of text sections that begin at `starts`."""
    rows = torch.from_numpy(ids[starts[:, None] + np.arange(context + 1)]).long()
    return F.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def train_text(net, ids: np.ndarray, rates: list[float], context: int, bar) -> None:
    """Train a language model by Adam with batches of 16, one step per learning rate in `rates`."""
    weights = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(weights, betas=(0.9, 0.99), eps=1e-8)
    shuffle = np.random.default_rng(SEED)
    pace = bar(total=len(rates))
    for rate in rates:
        set_rate(optimizer, rate)
        starts = shuffle.integers(0, len(ids) - context, 16)
        descend(optimizer, text_loss(net, ids, starts, context), clip=1.0)
        pace.update()


def held_out(net, ids: np.ndarray, context: int, limit: int | None = None) -> float:
    starts = np.arange(0, len(ids) - context, context)[:limit]
    with torch.no_grad():
        parts = np.array_split(starts, max(1, len(starts) // 32))
        return sum(text_loss(net, ids, p, context).item() * len(p) for p in parts) / len(starts)


def char_gpt(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    characters, ids, test = example.load()
    net = GPT(example, len(characters))
    warm = min(steps.steps, 50)
    rates = [2e-3 * (k + 1) / warm for k in range(warm)]
    rates += [cosine(1e-4, 2e-3, k, steps.steps) for k in range(warm, steps.steps)]
    train_text(net, ids, rates, example.CONTEXT, bar)
    return held_out(net, test, example.CONTEXT)


class Low(nn.Module):
    """A frozen layer plus a trainable product of two thin matrices (LoRA)."""

    def __init__(self, dense: nn.Linear, rank: int = 8):
        super().__init__()
        self.dense = dense
        self.down = nn.Linear(dense.in_features, rank, bias=False)
        self.up = nn.Linear(rank, dense.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.dense(x) + 2.0 * self.up(self.down(x))


def lora(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    prose, code = example.load()
    context = example.CONTEXT
    net = GPT(example, len(example.CHARACTERS))

    def rates(count: int, high: float) -> list[float]:
        return [cosine(high / 20, high, k, count) for k in range(count)]

    train_text(net, prose[0], rates(steps.steps, 4e-3), context, bar)
    before = held_out(net, code[1], context, 512)
    kept = {name: p.clone() for name, p in net.state_dict().items()}
    train_text(net, code[0], rates(steps.adapt, 2e-3), context, bar)
    full = held_out(net, code[1], context, 512)
    net.load_state_dict(kept)
    net.requires_grad_(False)
    for each in net.blocks:
        for name in ("qkv", "out", "up", "down"):
            setattr(each, name, Low(getattr(each, name)))
    train_text(net, code[0], rates(steps.adapt, 1e-2), context, bar)
    return (before - held_out(net, code[1], context, 512)) / (before - full)


class VAE(nn.Module):
    def __init__(self, example):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(128, 2), nn.Linear(128, 2)
        self.decoder = nn.Sequential(
            nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64)
        )
        self.levels = example.LEVELS
        choices = [math.log(math.comb(self.levels, k)) for k in range(self.levels + 1)]
        self.log_choices = torch.tensor(choices)

    def forward(self, counts):
        x = self.encoder(counts / self.levels)
        mean, log_variance = self.mean(x), self.log_variance(x)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        logits = self.decoder(z)
        likelihood = self.log_choices[counts.int()] + counts * logits
        likelihood = likelihood - self.levels * F.softplus(logits)
        divergence = 0.5 * (mean**2 + torch.exp(log_variance) - 1 - log_variance)
        return likelihood.sum(1) - divergence.sum(1)


def vae(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    counts, test, _ = example.load(SEED)
    counts, test = torch.from_numpy(counts), torch.from_numpy(test)
    net = VAE(example)
    optimizer = torch.optim.Adam(net.parameters())
    rng = np.random.default_rng(SEED)
    for epoch in bar(range(steps.epochs)):
        set_rate(optimizer, cosine(1e-5, 2e-3, epoch, steps.epochs))
        order = rng.permutation(len(counts))
        for k in range(len(counts) // 64):
            descend(optimizer, -net(counts[order[64 * k : 64 * k + 64]]).mean())
    with torch.no_grad():
        return float(np.mean([net(test).mean().item() for _ in range(100)]))


def gan(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)

    def mlp(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(inputs, 128), nn.LeakyReLU(0.2), nn.Linear(128, 128), nn.LeakyReLU(0.2),
            nn.Linear(128, outputs),
        )  # fmt: skip

    def noise(count: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal((count, example.NOISE)).astype(np.float32))

    generator, discriminator = mlp(example.NOISE, 2), mlp(2, 1)
    both = [
        torch.optim.Adam(n.parameters(), betas=(0.5, 0.999)) for n in (generator, discriminator)
    ]
    for step in bar(range(steps.steps)):
        for optimizer in both:
            set_rate(optimizer, cosine(1e-5, 1e-3, step, steps.steps))
        real = torch.from_numpy(example.data_points(rng, 256)).requires_grad_()
        opinion = discriminator(real)
        (slope,) = torch.autograd.grad(opinion.sum(), real, create_graph=True)
        fake = generator(noise(256)).detach()
        loss = F.softplus(-opinion).mean() + F.softplus(discriminator(fake)).mean()
        descend(both[1], loss + example.PENALTY / 2 * (slope**2).sum(1).mean())
        descend(both[0], F.softplus(-discriminator(generator(noise(256)))).mean())
    with torch.no_grad():
        return example.coverage(generator(noise(10_000)).numpy())[0]


def dqn(example, steps, bar) -> float:
    torch.manual_seed(SEED)

    def make() -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)
        )

    net, slow = make(), make()
    slow.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters())

    class Agent:
        def act(self, state: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                return net(torch.from_numpy(state).float()).argmax(1).numpy()

        def learn(self, state, action, after, fell):
            with torch.no_grad():
                best = net(after).argmax(1, keepdim=True)
                value = slow(after).gather(1, best)[:, 0]
                target = 1 + example.DISCOUNT * (1 - fell) * value
            values = net(state).gather(1, action[:, None].long())[:, 0]
            loss = descend(optimizer, F.smooth_l1_loss(values, target))
            with torch.no_grad():
                torch._foreach_lerp_(
                    list(slow.parameters()), list(net.parameters()), example.FOLLOW
                )
            return loss

    agent, taken = Agent(), [0]
    learn = agent.learn

    def learn_at_rate(*batch):
        set_rate(optimizer, cosine(1e-5, 1e-3, taken[0], steps.steps))
        taken[0] += 1
        return learn(*batch)

    agent.learn = learn_at_rate
    example.tqdm = bar
    example.Replay.batch = lambda self, count: [
        torch.from_numpy(column[rows])
        for rows in [self.rng.integers(0, min(self.count, self.size), count)]
        for column in self.columns
    ]
    args = type("Arguments", (), {"seed": SEED, "carts": 16, "batch": 128, "steps": steps.steps})
    example.train(agent, args)
    return float(example.play(agent, 100, SEED + 1)[0].mean())


def neural_ode(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    motion = example.simulate(example.random_starts(rng, 32), 80)
    motion += rng.normal(0, example.NOISE, motion.shape)
    true = example.simulate(example.random_starts(rng, 32), 100)
    field = nn.Sequential(
        nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)
    )
    weights = list(field.parameters())
    optimizer = torch.optim.Adam(weights)
    h = example.STEP

    def rates(state, a):
        with torch.enable_grad():
            state = state.detach().requires_grad_()
            value = field(state)
            for_state, *for_weights = torch.autograd.grad(value, [state, *weights], a)
        return [value.detach(), -for_state, *[-g for g in for_weights]]

    def back(state, a, sums):
        total, moves = None, [torch.zeros_like(state), torch.zeros_like(a)]
        for part, share in ((0, 1), (1 / 2, 2), (1 / 2, 2), (1, 1)):
            moves = rates(state - part * h * moves[0], a - part * h * moves[1])
            found = [share * m for m in moves]
            total = found if total is None else [s + f for s, f in zip(total, found, strict=True)]
        state, a, *sums = [x - h / 6 * t for x, t in zip((state, a, *sums), total, strict=True)]
        return state, a, sums

    rng = np.random.default_rng(SEED)
    for step in bar(range(steps.steps)):
        times = rng.integers(0, len(motion) - example.WINDOW, 64)
        which = rng.integers(0, 32, 64)
        rows = motion[times + np.arange(example.WINDOW + 1)[:, None], which]
        rows = torch.from_numpy(rows.astype(np.float32))
        with torch.no_grad():
            states = [rows[0]]
            for _ in range(example.WINDOW):
                states.append(example.runge_kutta(field, states[-1], h))
            jumps = 2 * (torch.stack(states[1:]) - rows[1:]) / rows[1:].numel()
            a, sums, state = torch.zeros_like(rows[0]), [torch.zeros_like(w) for w in weights], None
            state = states[-1]
            for i in reversed(range(example.WINDOW)):
                state, a, sums = back(state, a + jumps[i], sums)
        for weight, found in zip(weights, sums, strict=True):
            weight.grad = found
        set_rate(optimizer, cosine(1e-5, 1e-2, step, steps.steps))
        optimizer.step()
    with torch.no_grad():
        states = [torch.from_numpy(true[0].astype(np.float32))]
        for _ in range(100):
            states.append(example.runge_kutta(field, states[-1], h))
    return float(np.sqrt(((torch.stack(states).numpy() - true)[..., 0] ** 2).mean()))


def pinn(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    layers = nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(),
        nn.Linear(32, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(layers.parameters())

    def net(x, t):
        return t * (1 - x * x) * layers(torch.cat((x, 2 * t - 1), 1)) - torch.sin(np.pi * x)

    rng = np.random.default_rng(SEED)
    for step in bar(range(steps.steps)):
        x, t = rng.uniform(-1, 1, (512, 1)), rng.uniform(0, 1, (512, 1))
        x, t = (torch.from_numpy(c.astype(np.float32)).requires_grad_() for c in (x, t))
        u = net(x, t)
        u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
        set_rate(optimizer, cosine(1e-5, 5e-3, step, steps.steps))
        descend(optimizer, ((u_t + u * u_x - example.VISCOSITY * u_xx) ** 2).mean())
    x, t = np.linspace(-1, 1, 201), np.linspace(0, 1, 101)
    columns = [torch.from_numpy(c.reshape(-1, 1).astype(np.float32)) for c in np.meshgrid(x, t)]
    with torch.no_grad():
        found = net(*columns).numpy().reshape(len(t), len(x))
    true = np.stack([example.exact(x, time) for time in t])
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


def custom_op(example, steps, bar) -> float:
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as folder:  # the same C, as an operator of torch
        source, library = Path(folder) / "op.c", Path(folder) / "op.so"
        source.write_text(example.C)
        subprocess.run(
            ["cc", "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True
        )
        kernel = ctypes.CDLL(str(library)).recurrence

    def recurrence(a, b):
        h = torch.empty_like(b)
        a, b = a.contiguous(), b.contiguous()
        params = (ctypes.c_void_p * 3)(a.data_ptr(), b.data_ptr(), h.data_ptr())
        shape = (ctypes.c_int64 * 3)(*b.shape)
        kernel(3, params, None, (ctypes.POINTER(ctypes.c_int64) * 1)(shape), None, None, None)
        return h

    class Recurrence(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            h = recurrence(a, b)
            ctx.save_for_backward(a, h)
            return h

        @staticmethod
        def backward(ctx, dh):
            a, h = ctx.saved_tensors
            zero = torch.zeros_like(a[:, :1])
            later = torch.cat((a[:, 1:], zero), 1)
            g = recurrence(later.flip(1), dh.flip(1)).flip(1)
            return g * torch.cat((zero, h[:, :-1]), 1), g

    keep, gate, value, head = (nn.Linear(2, 32) for _ in range(4))
    head = nn.Linear(32, 1)
    weights = [p for layer in (keep, gate, value, head) for p in layer.parameters()]
    optimizer = torch.optim.Adam(weights)

    def net(x):
        a = torch.sigmoid(keep(x) + 7)
        b = torch.sigmoid(gate(x) - 3) * value(x)
        return head(Recurrence.apply(a, b)[:, -1])[:, 0]

    def batch(rng, count: int) -> list[torch.Tensor]:
        return [torch.from_numpy(tensor.asnumpy()) for tensor in example.sequences(rng, count)]

    rng = np.random.default_rng(SEED)
    for step in bar(range(steps.steps)):
        x, y = batch(rng, 32)
        set_rate(optimizer, cosine(1e-5, 2e-2, step, steps.steps))
        descend(optimizer, ((net(x) - y) ** 2).mean(), clip=1.0)
    x, y = batch(np.random.default_rng(SEED + 1), 1000)
    with torch.no_grad():
        return ((net(x) - y) ** 2).mean().item()


def custom_device(example, steps, bar) -> tuple[float, float, float]:
    chip = torch_chip.Chip(example)
    library = torch_chip.Ops(chip).register()
    images, labels, test_images, test_labels = example.load(SEED)
    images, test_images = torch.from_numpy(images), torch.from_numpy(test_images)
    labels, count = torch.from_numpy(labels).long(), len(images) // 32
    losses, accuracy = {}, {}
    for chip.bits in example.WIDTHS:
        chip.cycles.clear()
        net = nn.Sequential(
            nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10)
        )
        example.ms.set_seed(SEED)  # the same initial weights: all losses are equal bit by bit
        with torch.no_grad():
            for weight, start in zip(net.parameters(), example.Net().get_parameters(), strict=True):
                weight.copy_(torch.from_numpy(start.asnumpy()))
        net.to(torch_chip.NAME)
        optimizer = torch.optim.SGD(net.parameters(), momentum=0.9, fused=True)
        shuffle = np.random.default_rng(SEED)
        pace = bar(total=steps.epochs * count)
        for epoch in range(steps.epochs):
            set_rate(optimizer, cosine(1e-4, 0.1, epoch, steps.epochs))
            order = shuffle.permutation(len(images))
            for rows in np.split(order[: count * 32], count):
                x, y = images[rows].to(torch_chip.NAME), labels[rows].to(torch_chip.NAME)
                losses[chip.bits] = descend(optimizer, F.cross_entropy(net(x), y))
                pace.update()
        with torch.no_grad():
            found = net(test_images.to(torch_chip.NAME)).cpu().numpy().argmax(1)
        accuracy[chip.bits] = float((found == test_labels).mean())
    del library  # the ops are registered until here
    return accuracy[8], losses[8], sum(chip.cycles.values()) / (steps.epochs * count)
