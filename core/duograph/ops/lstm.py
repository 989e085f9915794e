"""The LSTM primitive class: layers and directions, unrolled over `recurrent.lstm_step`.

Users construct it; `nn.LSTM` has its own loop. The class must not keep state between calls, since
callers pass the states in and out.
"""

from __future__ import annotations

from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..tensor import Tensor
from .creation import fill
from .dropouts import dropout
from .linalg import matmul_of
from .movement import concat_by, slice_by
from .primitive import Primitive
from .recurrent import lstm_step
from .shape_primitives import reshape_to

__all__ = ["LSTM"]


class LSTM(Primitive):
    """Long short-term memory (LSTM) of several layers and one or two directions.

    `LSTM(input_size, hidden_size, num_layers, has_bias, bidirectional, dropout)(x, h, c, w)`.

    x: (T, N, input_size). h, c: (layers * directions, N, hidden_size). w concatenates, for every
    layer and direction, the input weights (4 * hidden, inputs), then the hidden weights (4 *
    hidden, hidden), then, with `has_bias`, the sums of both biases (4 * hidden,). The gates are in
    the order i, f, g, o (input, forget, cell, output).

    Returns (output (T, N, directions * hidden), h, c, reserve, state); the last two are empty.

    Raises:
        ValueError: the sizes do not match, or a projection size, which is not supported.

    Examples:
        >>> import duograph as ms
        >>> lstm = ms.ops.LSTM(3, 4, 1, False, False, 0.0)
        >>> x, h, w = ms.ops.ones((5, 2, 3)), ms.ops.zeros((1, 2, 4)), ms.ops.ones((112, 1, 1))
        >>> [t.shape for t in lstm(x, h, h, w)[:3]]
        [(5, 2, 4), (1, 2, 4), (1, 2, 4)]
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        has_bias: bool,
        bidirectional: bool,
        dropout: float,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        for key, value in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"LSTM: got {key}={value!r}; wanted an int")
            if value < 1:
                raise ArgumentValueError(f"LSTM: got {key}={value}; wanted at least 1")
        if proj_size:
            raise ArgumentValueError(
                f"LSTM: got proj_size={proj_size}; wanted 0, projections are not supported"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.has_bias, self.bidirectional, self.dropout = has_bias, bidirectional, dropout

    def _weights(self, w: Tensor) -> list[tuple[Tensor, Tensor, Tensor | None]]:
        """Slice the flat weights `w` into one triple per layer and direction.

        A triple is (input weight, hidden weight, bias or None), of 4 * hidden_size rows each.
        Elements of `w` beyond the last weight are not used.
        """
        directions = 2 if self.bidirectional else 1
        hidden = self.hidden_size
        rows = 4 * hidden
        shapes = [
            (rows, self.input_size if layer == 0 else hidden * directions)
            for layer in range(self.num_layers)
            for _ in range(directions)
        ]
        cells = len(shapes)
        shapes += [(rows, hidden)] * cells
        flat: list[tuple[int, ...]] = [*shapes, *([(rows,)] * cells if self.has_bias else [])]
        sizes = [s[0] * (s[1] if len(s) > 1 else 1) for s in flat]
        if w.size < sum(sizes):
            raise ShapeError(f"LSTM: got w of {w.size} elements; wanted {sum(sizes)} or more")
        line, at, parts = reshape_to(w, (w.size,)), 0, []
        for shape, size in zip(flat, sizes, strict=True):
            parts.append(reshape_to(slice_by(line, (at,), (at + size,), (1,)), shape))
            at += size
        biases = parts[2 * cells :] if self.has_bias else [None] * cells
        return list(zip(parts[:cells], parts[cells : 2 * cells], biases, strict=True))

    def __call__(self, x: Tensor, h: Tensor, c: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        """Run all LSTM layers over `x` (T, N, input_size) from the states `h` and `c`.

        Returns (output, last h, last c, reserve, state). `reserve` and `state` are empty tensors:
        MindSpore's class returns buffers there that only its own gradient reads.
        """
        directions = 2 if self.bidirectional else 1
        state = (self.num_layers * directions, x.shape[1] if x.ndim == 3 else -1, self.hidden_size)
        if x.ndim != 3 or x.shape[2] != self.input_size or h.shape != state or c.shape != state:
            raise ShapeError(
                f"LSTM: got x of shape {x.shape}, h of shape {h.shape} and c of shape "
                f"{c.shape}; wanted "
                f"(T, N, {self.input_size}) and ({state[0]}, N, {self.hidden_size}) twice"
            )
        weights = self._weights(w)
        last_h, last_c = [], []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                cell = layer * directions + direction
                out, one, two = _run(
                    x, _row(h, cell), _row(c, cell), *weights[cell], direction == 1
                )
                outputs.append(out)
                last_h.append(one)
                last_c.append(two)
            x = outputs[0] if directions == 1 else concat_by(outputs, 2)
            if self.dropout and layer + 1 < self.num_layers:
                x = dropout.public(x, self.dropout)
        empty = fill((0,), 0, x.dtype)
        return x, _stacked(last_h), _stacked(last_c), empty, empty


def _row(x: Tensor, i: int) -> Tensor:
    n = x.ndim
    found = slice_by(x, (i, *[0] * (n - 1)), (i + 1, *x.shape[1:]), (1,) * n)
    return reshape_to(found, x.shape[1:])


def _stacked(rows: list[Tensor]) -> Tensor:
    return concat_by([reshape_to(r, (1, *r.shape)) for r in rows], 0)


def _run(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    w_input: Tensor,
    w_hidden: Tensor,
    bias: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one LSTM layer in one direction; return (outputs of all steps, last h, last c).

    `x` is (T, N, features). `reverse` means that the last step is computed first; the outputs are
    in the order of `x` in either case.
    """
    steps, n, size = x.shape
    own = matmul_of(reshape_to(x, (steps * n, size)), w_input, False, True)
    own = reshape_to(own, (steps, n, w_input.shape[0]))
    outputs = []
    for t in reversed(range(steps)) if reverse else range(steps):
        h, c = lstm_step(_row(own, t), h, c, w_hidden, bias)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    return _stacked(outputs), h, c
