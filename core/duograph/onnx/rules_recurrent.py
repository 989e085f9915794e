"""Rules of ONNX's recurrent operators: RNN, GRU and LSTM.

`running.apply` calls them through the table `model.RULES`. The loop over time steps is unrolled,
because the number of steps is known from the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import ops
from ..errors import OnnxError
from ..tensor import Tensor
from .model import Node, onnx_op
from .rules_elementwise import number_like

__all__: list[str] = []

Function = Callable[[Tensor], Tensor]


def _activation(name: str, alpha: float | None, beta: float | None) -> Function:
    """Return the activation function that ONNX calls `name`, with its parameters bound.

    `alpha` and `beta` are ONNX's attributes; None stands for ONNX's default.

    Raises:
        OnnxError: there is no such function.
    """
    table: dict[str, Callable[[Tensor, float, float], Tensor]] = {
        "sigmoid": lambda x, a, b: ops.sigmoid(x),
        "tanh": lambda x, a, b: ops.tanh(x),
        "relu": lambda x, a, b: ops.relu(x),
        "affine": lambda x, a, b: x * a + b,
        "leakyrelu": lambda x, a, b: ops.where(x < 0, x * a, x),
        "thresholdedrelu": lambda x, a, b: ops.where(x > a, x, number_like(x, 0)),
        "scaledtanh": lambda x, a, b: ops.tanh(x * b) * a,
        "hardsigmoid": lambda x, a, b: ops.clamp(x * a + b, 0.0, 1.0),
        "elu": lambda x, a, b: ops.where(x < 0, ops.expm1(x) * a, x),
        "softsign": lambda x, a, b: x / (ops.abs(x) + 1.0),
        "softplus": lambda x, a, b: ops.softplus(x),
    }
    defaults = {"leakyrelu": (0.01, 0.0), "hardsigmoid": (0.2, 0.5), "affine": (1.0, 0.0)}
    key = name.lower()
    if key not in table:
        raise OnnxError(f"got the activation {name!r}; wanted one of {', '.join(table)}")
    a, b = defaults.get(key, (1.0, 1.0))
    function = table[key]
    first, second = a if alpha is None else alpha, b if beta is None else beta
    return lambda x: function(x, first, second)


class _Settings:
    """The attributes and the input that all recurrent operators of ONNX have, in one form.

    Attributes:
        x: input (steps, batch, features).
        functions: for each direction its activation functions.
        reversed: for each direction whether it runs backwards in time.
    """

    def __init__(self, node: Node, x: Tensor, defaults: Sequence[str]) -> None:
        self.node = node
        self.batch_first = bool(node.get("layout", 0))
        self.x = ops.transpose(x, (1, 0, 2)) if self.batch_first else x
        direction = node.get("direction", "forward")
        self.reversed = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
            direction
        ]
        names = node.get("activations", list(defaults) * len(self.reversed))
        alphas, betas = (
            list(node.get("activation_alpha", [])),
            list(node.get("activation_beta", [])),
        )
        made = [
            _activation(n, alphas[i] if i < len(alphas) else None,
                        betas[i] if i < len(betas) else None)
            for i, n in enumerate(names)
        ]  # fmt: skip
        k = len(defaults)
        self.functions = [made[i * k : (i + 1) * k] for i in range(len(self.reversed))]
        self.clip = node.get("clip")

    def clipped(self, x: Tensor) -> Tensor:
        """Clamp `x` to [-clip, clip], where `clip` is the node's attribute.

        Without it, return `x`.
        """
        return x if self.clip is None else ops.clamp(x, -self.clip, self.clip)

    def initial(self, state: Tensor | None, hidden: int) -> list[Tensor]:
        """Return the initial state (batch, hidden) of each direction, zeros if `state` is None."""
        count, batch = len(self.reversed), self.x.shape[1]
        if state is None:
            return [ops.zeros((batch, hidden), self.x.dtype)] * count
        state = ops.transpose(state, (1, 0, 2)) if self.batch_first else state
        return [state[i] for i in range(count)]

    def run(
        self,
        states: Sequence[tuple[Tensor, ...]],
        step: Callable[[int, Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]],
        lengths: Tensor | None,
    ) -> tuple[Tensor, ...]:
        """Run all directions over all time steps.

        Args:
            states: for each direction its initial state tensors; the first of them is also the
                output.
            step: function from (direction, input of one step, states) to the next states.
            lengths: lengths of the sequences, or None if all are full. After the end of a sequence
                its states do not change and its output is 0.

        Returns:
            (outputs of all steps, final value of the first state tensor, of the second, ...). The
            outputs have shape (steps, directions, batch, hidden), each final value (directions,
            batch, hidden); if the node asks for batch-first layout, the batch axis comes first.
        """
        steps = self.x.shape[0]
        outputs, last = [], []
        for d, back in enumerate(self.reversed):
            state, rows = states[d], [None] * steps
            for t in range(steps - 1, -1, -1) if back else range(steps):
                new = step(d, self.x[t], state)
                if lengths is not None:
                    inside = ops.reshape(lengths > t, (-1, 1))
                    row = ops.where(inside, new[0], ops.zeros_like(new[0]))
                    new = tuple([ops.where(inside, a, b) for a, b in zip(new, state)])
                else:
                    row = new[0]
                rows[t], state = row, new
            outputs.append(ops.stack(rows, 0))
            last.append(state)
        y = ops.stack(outputs, 1)  # (steps, directions, batch, hidden)
        finals = [ops.stack([s[k] for s in last], 0) for k in range(len(last[0]))]
        if self.batch_first:
            y = ops.transpose(y, (2, 0, 1, 3))
            finals = [ops.transpose(f, (1, 0, 2)) for f in finals]
        return (y, *finals)


def _gates(x: Tensor, w: Tensor) -> Tensor:
    """Return ``x @ w.T``: the contribution of `x` to all gates in one time step."""
    return ops.matmul(x, ops.transpose(w, (1, 0)))


def _biases(b: Tensor | None, d: int, size: int, w: Tensor) -> tuple[Tensor, Tensor]:
    """Return the input and recurrent biases of direction `d`; zeros if `b` is None.

    `size` is the length of each of the two.
    """
    if b is None:
        zero = ops.zeros((size,), w.dtype)
        return zero, zero
    return b[d][:size], b[d][size:]


@onnx_op("RNN")
def _(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
) -> tuple[Tensor, ...]:
    s = _Settings(node, x, ("Tanh",))
    hidden = r.shape[2]

    def step(d: int, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        wb, rb = _biases(b, d, hidden, w)
        total = _gates(x, w[d]) + _gates(state[0], r[d]) + wb + rb
        return (s.functions[d][0](s.clipped(total)),)

    return s.run([(v,) for v in s.initial(h, hidden)], step, lengths)


@onnx_op("GRU")
def _(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
) -> tuple[Tensor, ...]:
    s = _Settings(node, x, ("Sigmoid", "Tanh"))
    n = r.shape[2]

    def step(d: int, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (old,) = state
        f, g = s.functions[d]
        wb, rb = _biases(b, d, 3 * n, w)
        inner = _gates(x, w[d]) + wb
        outer = _gates(old, r[d][: 2 * n]) + rb[: 2 * n]
        update = f(s.clipped(inner[:, :n] + outer[:, :n]))
        reset = f(s.clipped(inner[:, n : 2 * n] + outer[:, n:]))
        if node.get("linear_before_reset", 0):
            rest = reset * (_gates(old, r[d][2 * n :]) + rb[2 * n :])
        else:
            rest = _gates(reset * old, r[d][2 * n :]) + rb[2 * n :]
        new = g(s.clipped(inner[:, 2 * n :] + rest))
        return ((1.0 - update) * new + update * old,)

    return s.run([(v,) for v in s.initial(h, n)], step, lengths)


@onnx_op("LSTM")
def _(
    node: Node,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    c: Tensor | None = None,
    p: Tensor | None = None,
) -> tuple[Tensor, ...]:
    s = _Settings(node, x, ("Sigmoid", "Tanh", "Tanh"))
    n = r.shape[2]

    def step(d: int, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        old, cell = state
        f, g, last = s.functions[d]
        wb, rb = _biases(b, d, 4 * n, w)
        total = _gates(x, w[d]) + _gates(old, r[d]) + wb + rb
        i, o, forget, new = [total[:, k * n : (k + 1) * n] for k in range(4)]
        peep: list[object] = (
            [0.0] * 3 if p is None else [p[d][k * n : (k + 1) * n] for k in range(3)]
        )
        i = f(s.clipped(i + peep[0] * cell))
        keep = 1.0 - i if node.get("input_forget", 0) else f(s.clipped(forget + peep[2] * cell))
        made = keep * cell + i * g(s.clipped(new))
        o = f(s.clipped(o + peep[1] * made))
        return o * last(made), made

    states = list(zip(s.initial(h, n), s.initial(c, n)))
    return s.run(states, step, lengths)
