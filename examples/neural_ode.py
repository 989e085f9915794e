"""Learn the motion of a pendulum from noisy observations by a neural differential equation.

    python examples/neural_ode.py [--mode graph] [--gradient adjoint] [--out neural_ode.png]

The program simulates 32 swings of a damped pendulum and observes angle and angular speed every
0.1 s, with an error of 0.01. A network f is to be the right-hand side of dz/dt = f(z), z being the
state: the solution that starts at an observed state must meet the next ten observations. It is
found by the Runge-Kutta method of fourth order.

The gradient of the loss comes from the adjoint equation (Chen et al., 2018,
https://arxiv.org/abs/1806.07366), which is solved backwards in time and needs no memory of the way
forward; `--gradient solver` differentiates all steps of the solver instead. The program prints by
how much the two gradients differ.

The figure is the error of the angle, as root mean square over 10 s from 32 new starts, which the
network must predict from the first state alone. It must be below 0.1 radian. It is 0.04 in graph
mode after 7 s of processor time. The modes agree within rounding.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Sequence

import duograph as ms
import numpy as np
from duograph import nn, ops
from tqdm import tqdm

MODES = {"graph": ms.GRAPH_MODE, "pynative": ms.PYNATIVE_MODE}
GOAL = 0.1  # radian
STEP, WINDOW, NOISE = 0.1, 10, 0.01  # seconds between observations, observations to meet, error
GRAVITY, DAMPING = 4.0, 0.15  # of the pendulum: speed' = -GRAVITY sin(angle) - DAMPING speed


def simulate(starts: np.ndarray, count: int) -> np.ndarray:
    """The true motion, (count + 1, starts, 2), in steps that are ten times as fine."""

    def rate(state: np.ndarray) -> np.ndarray:
        angle, speed = state.T
        return np.stack([speed, -GRAVITY * np.sin(angle) - DAMPING * speed], axis=1)

    states = [starts]
    for _ in range(count):
        state = states[-1]
        for _ in range(10):
            state = runge_kutta(rate, state, STEP / 10)
        states.append(state)
    return np.stack(states)


def random_starts(rng: np.random.Generator, count: int) -> np.ndarray:
    """Angles up to 115 degrees, and speeds."""
    return rng.uniform(-1, 1, (count, 2)) * (2.0, 2.0)


def runge_kutta(rate, state, step):
    """One step of the classical method of fourth order, for arrays and for Tensors."""
    k1 = rate(state)
    k2 = rate(state + step / 2 * k1)
    k3 = rate(state + step / 2 * k2)
    k4 = rate(state + step * k3)
    return state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class Field(nn.Cell):
    """States (batch, 2) to their derivatives in time."""

    def __init__(self, hidden: int = 64):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Dense(2, hidden), nn.Tanh(), nn.Dense(hidden, hidden), nn.Tanh(), nn.Dense(hidden, 2)
        )

    def construct(self, state):
        return self.layers(state)


def solve(field: Field, start, count: int):
    """The states (count, batch, 2) that follow a start."""
    states = [start]
    for _ in range(count):
        states.append(runge_kutta(field, states[-1], STEP))
    return ops.stack(states[1:])


def distance(states, observed):
    """Mean square of the error."""
    return ((states - observed) ** 2).mean()


def solver_gradient(field: Field, weights):
    """(start, observed) -> loss and its gradients, by differentiation of every step."""
    return ms.value_and_grad(
        lambda start, observed: distance(solve(field, start, len(observed)), observed),
        None,
        weights,
    )


def adjoint_gradient(field: Field, weights):
    """The same by the adjoint equation: a = dloss/dz obeys da/dt = -a df/dz.

    The gradient for the weights is the integral of a df/dw. State, a and integral run backwards
    together, by the same method; at each observation a jumps by the gradient of its error.
    """
    loss_and_jumps = ms.value_and_grad(distance, 0)

    def rates(state, a):
        """Derivatives in time of the three."""
        value, pull = ms.vjp(field, state, weights=weights)
        (for_state,), for_weights = pull(a)
        return value, -for_state, [-g for g in for_weights]

    def back(state, a, sums):
        """One step of Runge-Kutta back in time."""
        total = None
        k, j = ops.zeros_like(state), ops.zeros_like(a)
        for part, share in ((0, 1), (1 / 2, 2), (1 / 2, 2), (1, 1)):
            k, j, m = rates(state - part * STEP * k, a - part * STEP * j)
            found = [share * rate for rate in (k, j, *m)]
            total = found if total is None else [s + f for s, f in zip(total, found, strict=True)]
        moves = [-STEP / 6 * t for t in total]
        return state + moves[0], a + moves[1], [s + m for s, m in zip(sums, moves[2:], strict=True)]

    def gradient(start, observed):
        states = solve(field, start, len(observed))
        loss, jumps = loss_and_jumps(states, observed)
        state, a = states[-1], ops.zeros_like(start)
        sums = [ops.zeros_like(w) for w in weights]
        for i in reversed(range(len(observed))):
            state, a, sums = back(state, a + jumps[i], sums)
        return loss, tuple(sums)

    return gradient


GRADIENTS = {"adjoint": adjoint_gradient, "solver": solver_gradient}


def windows(motion: np.ndarray, rng: np.random.Generator, batch: int) -> tuple[ms.Tensor, ...]:
    """Some observed states (batch, 2), and the observations (WINDOW, batch, 2) after them."""
    times = rng.integers(0, len(motion) - WINDOW, batch)
    which = rng.integers(0, motion.shape[1], batch)
    rows = motion[times + np.arange(WINDOW + 1)[:, None], which]
    return ms.Tensor(rows[0], ms.float32), ms.Tensor(rows[1:], ms.float32)


def train(field: Field, motion: np.ndarray, args: argparse.Namespace) -> list[float]:
    """Adam; the loss of every step."""
    rate = nn.cosine_decay_lr(1e-5, 1e-2, args.steps, 1, args.steps)
    optimizer = nn.Adam(field.trainable_params(), rate)
    grad_fn = GRADIENTS[args.gradient](field, optimizer.parameters)

    def train_step(start, observed):
        loss, grads = grad_fn(start, observed)
        optimizer(grads)
        return loss

    if args.mode == "graph":  # both ways through time and the update as one compiled graph
        train_step = ms.jit(train_step)
    rng = np.random.default_rng(args.seed)
    losses: list[float] = []
    pause = 0.1 if sys.stderr.isatty() else 2.0  # seconds between lines; a log file wants few
    with tqdm(total=args.steps, unit="step", mininterval=pause) as bar:
        for _ in range(args.steps):
            losses.append(float(train_step(*windows(motion, rng, args.batch))))
            bar.set_postfix_str(f"loss {losses[-1]:.5f}", refresh=False)
            bar.update()
    return losses


def difference_of_gradients(field: Field, motion: np.ndarray, seed: int) -> float:
    """Relative difference between the gradients of the adjoint equation and of the solver."""
    start, observed = windows(motion, np.random.default_rng(seed), 64)
    found = [
        np.concatenate([g.asnumpy().ravel() for g in make(field, field.trainable_params())(
            start, observed
        )[1]])
        for make in (adjoint_gradient, solver_gradient)
    ]  # fmt: skip
    return float(np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[1]))


def predict(field: Field, starts: np.ndarray, count: int, mode: str) -> np.ndarray:
    """The network's motion, (count + 1, starts, 2)."""
    step = ms.jit(runge_kutta) if mode == "graph" else runge_kutta
    states = [ms.Tensor(starts, ms.float32)]
    for _ in range(count):
        states.append(step(field, states[-1], STEP))
    return np.stack([state.asnumpy() for state in states])


def draw(path: pathlib.Path, field: Field, true: np.ndarray, found: np.ndarray, error: float):
    """The learned field with trajectories, and angles over time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = ["#1f4e8c", "#c62828", "#f2a900"]
    figure, (plane, curve) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    x, y = np.meshgrid(np.linspace(-3, 3, 19), np.linspace(-4.5, 4.5, 19))
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    u, v = field(ms.Tensor(points, ms.float32)).asnumpy().T
    plane.quiver(x, y, u.reshape(x.shape), v.reshape(x.shape), color="#b8c7d9", width=0.003)
    seconds = np.arange(len(true)) * STEP
    for i, colour in enumerate(colours):
        plane.plot(*true[:, i].T, color=colour, linewidth=1)
        plane.plot(*found[:, i].T, ".", color=colour, markersize=4)
        curve.plot(seconds, true[:, i, 0], color=colour, linewidth=1)
        curve.plot(seconds, found[:, i, 0], ".", color=colour, markersize=4)
    plane.set(xlabel="angle (rad)", ylabel="angular speed (rad/s)", title="The learned field")
    curve.plot([], [], color="#555555", linewidth=1, label="true motion")
    curve.plot([], [], ".", color="#555555", label="network, from the first state alone")
    curve.legend(loc="upper right", frameon=False)
    curve.set(
        xlabel="seconds",
        ylabel="angle (rad)",
        title=f"New starts: root mean square error {error:.3f} rad",
        ylim=(-2.8, 3.6),
    )
    for axis in (plane, curve):
        axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> tuple[list[float], float, float]:
    """Train, test, draw; the losses, the error in radian, and the difference of gradients."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="graph")
    parser.add_argument("--gradient", choices=GRADIENTS, default="adjoint")
    parser.add_argument("--device", help="an installed device; see `duograph devices`")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("neural_ode.png"))
    args = parser.parse_args(arguments)
    if args.steps < 1 or args.batch < 1:
        parser.error("--steps and --batch must be 1 or more")

    begin = time.perf_counter()
    if args.device:
        ms.set_context(device_target=args.device)
    ms.set_context(mode=MODES[args.mode])
    ms.set_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    motion = simulate(random_starts(rng, 32), 80)
    motion += rng.normal(0, NOISE, motion.shape)
    true = simulate(random_starts(rng, 32), 100)

    field = Field()
    losses = train(field, motion, args)
    difference = difference_of_gradients(field, motion, args.seed)
    found = predict(field, true[0], len(true) - 1, args.mode)
    error = float(np.sqrt(((found - true)[..., 0] ** 2).mean()))
    print(f"the gradients by adjoint and solver differ by {difference:.1e} of their norm")
    print(f"error {error:.3f} rad over 10 s after {time.perf_counter() - begin:.1f} s")
    draw(args.out, field, true, found, error)
    print(f"wrote {args.out}")
    return losses, error, difference


if __name__ == "__main__":
    if main()[1] > GOAL:
        sys.exit(f"missed: wanted an error of {GOAL} rad or less")
