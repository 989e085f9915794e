"""Recurrent layers over sequences: RNN, LSTM, GRU.

`nn` exports them. One matmul multiplies the whole sequence by the input weights of all gates; then
each time step is one op, such as `ops.lstm_step`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ... import ops
from ...common.initializer import Uniform, initializer
from ...dtype import float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...parameter import Parameter, ParameterTuple
from ...tensor import Tensor
from .. import _check
from .._types import DTypeLike
from ..cell import Cell
from .basic import Dropout

__all__ = ["RNN", "LSTM", "GRU"]

States: TypeAlias = "tuple[Tensor, ...]"  # (h,), or (h, c) of an LSTM


class _Recurrent(Cell):
    """Base of RNN, GRU and LSTM: Parameters, layers, directions and the loop over time.

    A subclass sets `_gates`, the number of gates stacked in each weight, and `_states`, the number
    of state tensors (2 for LSTM, else 1). It implements `_step`.
    """

    _gates = 1
    _states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.input_size = _check.positive_int(owner, "input_size", input_size)
        self.hidden_size = _check.positive_int(owner, "hidden_size", hidden_size)
        self.num_layers = _check.layer_count(owner, "num_layers", num_layers)
        self.has_bias = _check.boolean(owner, "has_bias", has_bias)
        self.batch_first = _check.boolean(owner, "batch_first", batch_first)
        self.dropout = _check.in_range(owner, "dropout", dropout, 0, 1, open_high=True)
        self.bidirectional = _check.boolean(owner, "bidirectional", bidirectional)
        self.dropout_op = Dropout(p=float(dropout))
        rows = self._gates * hidden_size
        init = Uniform(1 / math.sqrt(hidden_size))
        directions = ("", "_reverse") if bidirectional else ("",)
        made: dict[str, list[Parameter]] = {k: [] for k in ("w_ih", "w_hh", "b_ih", "b_hh")}
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * len(directions)
            for suffix in directions:
                for key, name, shape in (
                    ("w_ih", "weight_ih", (rows, width)),
                    ("w_hh", "weight_hh", (rows, hidden_size)),
                    ("b_ih", "bias_ih", (rows,)),
                    ("b_hh", "bias_hh", (rows,)),
                ):
                    if key[0] == "w" or has_bias:
                        value = initializer(init, shape, dtype)
                        made[key].append(Parameter(value, name=f"{name}_l{layer}{suffix}"))
        self.w_ih_list = ParameterTuple(made["w_ih"])
        self.w_hh_list = ParameterTuple(made["w_hh"])
        if has_bias:
            self.b_ih_list = ParameterTuple(made["b_ih"])
            self.b_hh_list = ParameterTuple(made["b_hh"])

    def _step(self, gates: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
        """Compute one time step: return the new states; RNN, GRU and LSTM override it.

        Args:
            gates: what the input contributes to all gates, (N, gates * hidden_size).
            states: the hidden states before the step; for an LSTM (h, c).
            weight, bias: weight and bias that apply to the hidden state.
        """
        raise NotImplementedError

    def construct(
        self,
        x: Tensor,
        hx: Tensor | States | None = None,
        seq_length: Tensor | Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor | States]:
        owner = type(self).__name__
        _check.rank(owner, x, 3)
        if x.shape[2] != self.input_size:
            raise ShapeError(
                f"{owner}: input has shape {x.shape}; wanted {self.input_size} on the last axis, "
                "the layer's input_size"
            )
        if self.batch_first:
            x = x.swapaxes(0, 1)
        steps, batch = x.shape[:2]
        layers = self.num_layers * (2 if self.bidirectional else 1)
        starts = self._initial_states(x, hx, layers, batch)
        order, masks = self._lengths(seq_length, steps, batch)
        ends: list[States] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = self.dropout_op(x)
            halves = []
            for direction in range(2 if self.bidirectional else 1):
                i = layer * (2 if self.bidirectional else 1) + direction
                own = _reversed(x, order) if direction else x
                out, end = self._run(own, i, tuple(s[i] for s in starts), masks)
                halves.append(_reversed(out, order) if direction else out)
                ends.append(end)
            x = halves[0] if len(halves) == 1 else ops.concat(halves, 2)
        if self.batch_first:
            x = x.swapaxes(0, 1)
        finals = tuple(ops.stack([e[k] for e in ends], 0) for k in range(self._states))
        return x, finals if self._states > 1 else finals[0]

    def _run(
        self, x: Tensor, i: int, states: States, masks: list[Tensor] | None
    ) -> tuple[Tensor, States]:
        """Run one recurrent layer in one direction over all time steps.

        `x` is (T, N, features). `i` is the index of the layer's weights in lists such as
        `w_ih_list`, which have one item per layer and direction. `masks` has a bool tensor (N, 1)
        per step, or is None if all sequences have full length. Where a mask is False, the sequence
        has ended: the output is 0 and the states do not change. Returns (outputs of all steps, last
        states).
        """
        steps, batch, width = x.shape
        bias_ih = self.b_ih_list[i] if self.has_bias else None
        bias_hh = self.b_hh_list[i] if self.has_bias else None
        parts = ops.dense(x.reshape(steps * batch, width), self.w_ih_list[i], bias_ih)
        parts = parts.reshape(steps, batch, self._gates * self.hidden_size)
        outs = []
        for t in range(steps):
            new = self._step(parts[t], states, self.w_hh_list[i], bias_hh)
            out = new[0]
            if masks is not None:
                mask = masks[t]
                out = ops.where(mask, out, ops.zeros_like(out))
                new = tuple(ops.where(mask, a, b) for a, b in zip(new, states, strict=True))
            states = new
            outs.append(out)
        return ops.stack(outs, 0), states

    def _initial_states(
        self, x: Tensor, hx: Tensor | States | None, layers: int, batch: int
    ) -> States:
        """Return the user's states `hx`, checked, or zeros for None, as a tuple of state tensors.

        Each has shape (layers, N, hidden_size), `layers` counting both directions.
        """
        owner = type(self).__name__
        shape = (layers, batch, self.hidden_size)
        if hx is None:
            return (ops.zeros(shape, x.dtype),) * self._states
        states = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
        if len(states) != self._states:
            wanted = "one Tensor h" if self._states == 1 else "a tuple of two Tensors, (h, c)"
            raise ArgumentError(
                f"{owner}: got {len(states)} Tensor{'s' * (len(states) != 1)} for the initial "
                f"state (hx); wanted {wanted}"
            )
        for h in states:
            if h.shape != shape:
                raise ShapeError(f"{owner}: a state in hx has shape {h.shape}; wanted {shape}")
        return states

    def _lengths(
        self, seq_length: Tensor | Sequence[int] | None, steps: int, batch: int
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        """Return (row indices, masks) for sequences of different lengths, or (None, None).

        `seq_length` has the length of each of the `batch` (N) sequences; if it is None, both
        results are None. `steps` is T, the size of the time axis. Gathering rows of the input (T *
        N, features) by the row indices (T * N,) reverses each sequence in time. `masks` has a bool
        tensor (N, 1) for each time step, which is True where the sequence has not ended.
        """
        if seq_length is None:
            return None, None
        lengths = seq_length.asnumpy() if isinstance(seq_length, Tensor) else np.asarray(seq_length)
        if lengths.shape != (batch,):
            raise ShapeError(
                f"{type(self).__name__}: seq_length has shape {lengths.shape}; wanted ({batch},)"
            )
        if lengths.size and (lengths.min() < 0 or lengths.max() > steps):
            raise ArgumentValueError(
                f"{type(self).__name__}: got seq_length {lengths.tolist()} for {steps} steps; "
                f"wanted lengths of 0 to {steps}"
            )
        t = np.arange(steps)[:, None]
        inside = t < lengths
        rows = np.where(inside, lengths - 1 - t, t) * batch + np.arange(batch)
        masks = [Tensor(inside[i][:, None]) for i in range(steps)]
        return Tensor(rows.reshape(-1).astype(np.int64)), masks

    def extend_repr(self) -> str:
        return ""


def _reversed(x: Tensor, order: Tensor | None) -> Tensor:
    """Reverse a tensor (T, N, E) along time.

    If the sequences have different lengths, `order` has the row indices from `_lengths`, and each
    sequence is reversed within its length. If `order` is None, the whole time axis is reversed.
    """
    if order is None:
        return ops.flip(x, (0,))
    flat = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
    return ops.gather(flat, order, 0).reshape(x.shape)


class RNN(_Recurrent):
    """Plain recurrent layers (`mindspore.nn.RNN`).

    Args:
        input_size, hidden_size: lengths of the last axis of input and output.
        num_layers: number of layers on top of each other.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        has_bias: whether to add biases.
        batch_first: whether the input is (N, T, input_size) rather than (T, N, input_size).
        dropout: probability of dropout between layers, in training.
        bidirectional: whether to run also backwards in time; the outputs are concatenated on the
            last axis.
        dtype: dtype of the Parameters.

    Inputs: x; hx, the initial state (layers * directions, N, hidden_size), zeros if None;
        seq_length (N,), the length of each sequence: outputs past it are zeros.
    Outputs: the output of every time step, and the last state.

    Raises:
        ValueError: an argument out of range, or inputs of other shapes.

    Examples:
        >>> import duograph as ms
        >>> out, h = ms.nn.RNN(3, 4)(ms.ops.ones((5, 2, 3), ms.float32))
        >>> out.shape, h.shape
        ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional,
            dtype,
        )  # fmt: skip
        self.nonlinearity = _check.one_of("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"))

    def _step(self, gates: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
        return (ops.rnn_step(gates, states[0], weight, bias, self.nonlinearity == "relu"),)


class GRU(_Recurrent):
    """GRU layers (`mindspore.nn.GRU`).

    Arguments, inputs and outputs are those of `RNN`, without `nonlinearity`.

    Examples:
        >>> import duograph as ms
        >>> out, h = ms.nn.GRU(3, 4, 2, bidirectional=True)(ms.ops.ones((5, 2, 3), ms.float32))
        >>> out.shape, h.shape
        ((5, 2, 8), (4, 2, 4))
    """

    _gates = 3

    def _step(self, gates: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
        return (ops.gru_step(gates, states[0], weight, bias),)


class LSTM(_Recurrent):
    """LSTM layers (`mindspore.nn.LSTM`).

    Arguments, inputs and outputs are those of `RNN`, without `nonlinearity`. hx and the last state
    are pairs (h, c).

    Examples:
        >>> import duograph as ms
        >>> out, (h, c) = ms.nn.LSTM(3, 4, batch_first=True)(ms.ops.ones((2, 5, 3), ms.float32))
        >>> out.shape, h.shape, c.shape
        ((2, 5, 4), (1, 2, 4), (1, 2, 4))
    """

    _gates = 4
    _states = 2

    def _step(self, gates: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
        return ops.lstm_step(gates, states[0], states[1], weight, bias)
