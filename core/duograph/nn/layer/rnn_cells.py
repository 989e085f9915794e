"""One time step of recurrent layers: RNNCell, LSTMCell, GRUCell.

`nn` exports them. Each multiplies the input by the stacked weights of all gates (`ops.dense`) and
computes the rest of the step by one op, such as `ops.lstm_step`.
"""

from __future__ import annotations

import math

from ... import ops
from ...common.initializer import Uniform, initializer
from ...dtype import float32
from ...errors import ArgumentError, ShapeError
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._types import DTypeLike
from ..cell import Cell

__all__ = ["RNNCell", "LSTMCell", "GRUCell"]


class _StepCell(Cell):
    """Base class of RNNCell, LSTMCell and GRUCell.

    A subclass sets `_gates`, the number of gates. Each weight Parameter has the rows of all gates,
    one gate after another.
    """

    _gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: DTypeLike = float32
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.input_size = _check.positive_int(owner, "input_size", input_size)
        self.hidden_size = _check.positive_int(owner, "hidden_size", hidden_size)
        self.has_bias = _check.boolean(owner, "has_bias", has_bias)
        init = Uniform(1 / math.sqrt(hidden_size))
        rows = self._gates * hidden_size
        self.weight_ih = Parameter(initializer(init, (rows, input_size), dtype), name="weight_ih")
        self.weight_hh = Parameter(initializer(init, (rows, hidden_size), dtype), name="weight_hh")
        self.bias_ih: Parameter | None = None
        self.bias_hh: Parameter | None = None
        if has_bias:
            self.bias_ih = Parameter(initializer(init, (rows,), dtype), name="bias_ih")
            self.bias_hh = Parameter(initializer(init, (rows,), dtype), name="bias_hh")

    def _input_gates(self, x: Tensor, *states: Tensor) -> Tensor:
        """Check the shapes of input and states; return what the input contributes to all gates.

        The result is ``x @ weight_ih.T + bias_ih``, of shape (N, gates * hidden_size).
        """
        owner = type(self).__name__
        _check.rank(owner, x, 2)
        if x.shape[1] != self.input_size:
            raise ShapeError(f"{owner}: input has shape {x.shape}; wanted (N, {self.input_size})")
        for h in states:
            if h.shape != (x.shape[0], self.hidden_size):
                raise ShapeError(
                    f"{owner}: the state has shape {h.shape}; wanted ({x.shape[0]}, "
                    f"{self.hidden_size})"
                )
        return ops.dense(x, self.weight_ih, self.bias_ih)


class RNNCell(_StepCell):
    """`h' = tanh(W_ih x + b_ih + W_hh h + b_hh)` (`mindspore.nn.RNNCell`).

    Args:
        input_size, hidden_size: lengths of the last axis of x and h.
        has_bias: whether to add biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        dtype: dtype of the Parameters.

    Inputs: x of (N, input_size), hx of (N, hidden_size). Outputs: h' of (N, hidden_size).

    Raises:
        ValueError: another nonlinearity, or inputs of other shapes.

    Examples:
        >>> import duograph as ms
        >>> cell = ms.nn.RNNCell(3, 4)
        >>> cell(ms.ops.ones((2, 3), ms.float32), ms.ops.zeros((2, 4), ms.float32)).shape
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.nonlinearity = _check.one_of("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"))

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        part = self._input_gates(x, hx)
        return ops.rnn_step(part, hx, self.weight_hh, self.bias_hh, self.nonlinearity == "relu")


class LSTMCell(_StepCell):
    """One step of an LSTM (`mindspore.nn.LSTMCell`); gates in the order i, f, g, o.

    Inputs: x of (N, input_size), hx: (h, c), each (N, hidden_size). Outputs: (h', c').

    Raises:
        TypeError: hx is not a pair.
        ValueError: inputs of other shapes.

    Examples:
        >>> import duograph as ms
        >>> zeros = ms.ops.zeros((2, 4), ms.float32)
        >>> h, c = ms.nn.LSTMCell(3, 4)(ms.ops.ones((2, 3), ms.float32), (zeros, zeros))
        >>> h.shape
        (2, 4)
    """

    _gates = 4

    def construct(self, x: Tensor, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise ArgumentError(f"LSTMCell: got hx of {type(hx).__name__}; wanted the pair (h, c)")
        part = self._input_gates(x, *hx)
        h, c = ops.lstm_step(part, hx[0], hx[1], self.weight_hh, self.bias_hh)
        return h, c


class GRUCell(_StepCell):
    """One step of a GRU (`mindspore.nn.GRUCell`); gates in the order r, z, n.

    Inputs: x of (N, input_size), hx of (N, hidden_size). Outputs: h' of (N, hidden_size).

    Raises:
        ValueError: inputs of other shapes.

    Examples:
        >>> import duograph as ms
        >>> cell = ms.nn.GRUCell(3, 4)
        >>> cell(ms.ops.ones((2, 3), ms.float32), ms.ops.zeros((2, 4), ms.float32)).shape
        (2, 4)
    """

    _gates = 3

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        return ops.gru_step(self._input_gates(x, hx), hx, self.weight_hh, self.bias_hh)
