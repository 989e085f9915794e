"""Ops for one time step of recurrent layers: rnn_step, lstm_step and gru_step.

The recurrent layers call them once per time step. Each must remain one composite op, so that the
tape records one node per step and a backend can supply a fused kernel.
"""

from __future__ import annotations

from ..errors import ShapeError
from ..op import op
from ..tensor import Tensor
from .activation import sigmoid
from .elementwise import add, mul, sub
from .hyperbolic import tanh
from .linalg import matmul_of
from .movement import slice_by
from .rectifiers import relu_of

__all__ = ["rnn_step", "lstm_step", "gru_step"]


def _columns(name: str, x: Tensor, h: Tensor) -> int:
    if x.ndim != 2 or h.ndim != 2:
        raise ShapeError(f"{name}: got shapes {x.shape} and {h.shape}; wanted two axes each")
    size: int = h.shape[1]
    return size


def _part(x: Tensor, i: int, n: int) -> Tensor:
    """Return gate number `i` of a matrix (N, gates * n): its columns i * n to (i + 1) * n - 1."""
    return slice_by(x, (0, i * n), (x.shape[0], (i + 1) * n), (1, 1))


@op(composite=True)
def rnn_step(
    x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None, relu_gate: bool = False
):
    """Composite op: one step of a plain recurrent layer, tanh(x + h @ weight.T + bias).

    `x` (N, H) is the input already multiplied by its weight, `h` (N, H) the previous state. With
    `relu_gate`, relu replaces tanh. Returns the new h.
    """
    out = add(x, matmul_of(h, weight, False, True))
    if bias is not None:
        out = add(out, bias)
    return relu_of(out) if relu_gate else tanh(out)


@op(composite=True)
def lstm_step(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None):
    """Composite op: one step of an LSTM (Hochreiter and Schmidhuber, 1997).

        i, f, g, o = the gates of x + h @ weight.T + bias
        new c      = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new h      = sigmoid(o) * tanh(new c)

    `x` (N, 4H) is the input already multiplied by its weight, `h` and `c` (N, H) are the previous
    states. The gates are columns, in the order i, f, g, o (input, forget, cell, output). Returns
    (new h, new c).
    """
    n = _columns("lstm_step", x, h)
    gates = add(x, matmul_of(h, weight, False, True))
    if bias is not None:
        gates = add(gates, bias)
    i, f, o = (sigmoid(_part(gates, k, n)) for k in (0, 1, 3))
    kept = add(mul(f, c), mul(i, tanh(_part(gates, 2, n))))
    return mul(o, tanh(kept)), kept


@op(composite=True)
def gru_step(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None):
    """Composite op: one step of a GRU (Cho et al., 2014).

        r, z, n    = the gates of x
        r', z', n' = the gates of h @ weight.T + bias
        reset      = sigmoid(r + r')
        update     = sigmoid(z + z')
        new h      = (1 - update) * tanh(n + reset * n') + update * h

    `x` (N, 3H) is the input already multiplied by its weight, `h` (N, H) the previous state. The
    gates are columns, in the order r, z, n (reset, update, new). Returns the new h.
    """
    n = _columns("gru_step", x, h)
    own = matmul_of(h, weight, False, True)
    if bias is not None:
        own = add(own, bias)
    r = sigmoid(add(_part(x, 0, n), _part(own, 0, n)))
    z = sigmoid(add(_part(x, 1, n), _part(own, 1, n)))
    new = tanh(add(_part(x, 2, n), mul(r, _part(own, 2, n))))
    return add(new, mul(z, sub(h, new)))
