"""Private functions of MindSpore's recurrent layers that published packages import.

Programs import them from `mindspore.nn.layer.rnn_cells`, a path that `paths.PATHS` maps to this
module; nothing in duograph imports it. Each function computes one time step. Its arguments are the
input, the present state, and the weights and biases of the input (`_ih`) and of the state (`_hh`).
"""

from __future__ import annotations

from .. import ops
from ..tensor import Tensor

Bias = Tensor | None


def _rnn_tanh_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias, b_hh: Bias
) -> Tensor:
    """Return tanh(inputs @ w_ih.T + b_ih + hidden @ w_hh.T + b_hh), the next hidden state."""
    return ops.rnn_step(ops.dense(inputs, w_ih, b_ih), hidden, w_hh, b_hh, False)


def _rnn_relu_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias, b_hh: Bias
) -> Tensor:
    """Return relu(inputs @ w_ih.T + b_ih + hidden @ w_hh.T + b_hh), the next hidden state."""
    return ops.rnn_step(ops.dense(inputs, w_ih, b_ih), hidden, w_hh, b_hh, True)


def _lstm_cell(
    inputs: Tensor,
    hidden: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Bias,
    b_hh: Bias,
) -> tuple[Tensor, Tensor]:
    """Return the next (hidden state, cell state) of an LSTM; `hidden` holds the present ones.

    Weights and biases have the rows of the gates in the order input, forget, cell, output.
    """
    h, c = ops.lstm_step(ops.dense(inputs, w_ih, b_ih), hidden[0], hidden[1], w_hh, b_hh)
    return h, c


def _gru_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias, b_hh: Bias
) -> Tensor:
    """Return the next hidden state of a GRU.

    Weights and biases have the rows of the gates in the order reset, update, new.
    """
    return ops.gru_step(ops.dense(inputs, w_ih, b_ih), hidden, w_hh, b_hh)
