"""Use mindspore-rl: Q-learning with its networks and policies on a corridor, in both modes.

Its replay buffers and environments on the device need operators of its own build of MindSpore.
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore_rl.network import FullyConnectedNet
from mindspore_rl.policy import EpsilonGreedyPolicy, GreedyPolicy

LENGTH = 6  # rooms in a row; the reward is in the last one


def state_of(room: int) -> ms.Tensor:
    """Return a room as a row of zeros and a one."""
    return ms.Tensor(np.eye(LENGTH, dtype=np.float32)[room : room + 1])


def walk(policy, steps: int, rng) -> list[tuple[int, int, float, int]]:
    """Return (room, action, reward, next room) of a walk that a policy chooses."""
    found, room = [], 0
    for k in range(steps):
        chosen = policy(state_of(room), ms.Tensor([float(k)], ms.float32))
        action = int(chosen.asnumpy().reshape(-1)[0])
        after = min(max(room + (1 if action else -1), 0), LENGTH - 1)
        found.append((room, action, float(after == LENGTH - 1), after))
        room = 0 if after == LENGTH - 1 else after
    return found


def main() -> int:
    """Learn to walk to the right; the greedy policy must then reach the end directly."""
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(1)
        rng = np.random.default_rng(0)
        net = FullyConnectedNet(LENGTH, 16, 2)
        walker = EpsilonGreedyPolicy(net, (1, 1), 1.0, 0.2, 40, 2)
        optimizer = nn.Adam(net.trainable_params(), 0.02)

        def loss(states, actions, targets, net=net):
            taken = ops.gather_elements(net(states), 1, actions)
            return ops.square(taken - targets).mean()

        step = ms.value_and_grad(loss, None, optimizer.parameters)
        memory, losses = walk(walker, 120, rng), []
        rooms, actions, rewards, after = (np.array(x) for x in zip(*memory, strict=True))
        eye = np.eye(LENGTH, dtype=np.float32)
        assert rewards.any() and set(actions.tolist()) == {0, 1}
        for _ in range(60):
            future = net(ms.Tensor(eye[after])).asnumpy().max(1) * (rewards == 0)
            targets = ms.Tensor((rewards + 0.8 * future)[:, None], ms.float32)
            value, grads = step(ms.Tensor(eye[rooms]), ms.Tensor(actions[:, None]), targets)
            optimizer(grads)
            losses.append(float(value.asnumpy()))
        greedy = GreedyPolicy(net)
        chosen = [
            int(greedy(state_of(room)).asnumpy().reshape(-1)[0]) for room in range(LENGTH - 1)
        ]
        print(f"mode {mode}: losses {losses[0]:.3f} to {losses[-1]:.3f}, actions {chosen}")
        assert chosen == [1] * (LENGTH - 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
