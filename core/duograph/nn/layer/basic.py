"""Dense, Flatten, Identity, Embedding, Dropout and other layers that belong to no family.

`nn` exports them. The layers hold Parameters and arguments; all computation is done by public ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import ops
from ...common.initializer import HeUniform, Uniform, initializer
from ...dtype import as_dtype, float32
from ...errors import ArgumentError, ShapeError
from ...option_checks import check_options, warn_unused
from ...parameter import Parameter
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from .._types import Activation, Axis, DTypeLike, Init
from ..cell import Cell
from .activation import get_activation

__all__ = [
    "Dense", "Flatten", "Identity", "Embedding", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d",
    "OneHot", "Norm", "ClipByNorm", "Unflatten", "BiDense", "MatMul",
]  # fmt: skip


class Dense(Cell):
    """Affine layer: `x @ weight.T + bias`, then the activation (`mindspore.nn.Dense`).

    Args:
        in_channels: length of the last axis of the input.
        out_channels: length of the last axis of the output.
        weight_init: Tensor of (out_channels, in_channels), name or Initializer; default
            HeUniform(sqrt(5)).
        bias_init: the same for the bias of (out_channels,); default uniform within
            1/sqrt(in_channels).
        has_bias: whether to add a bias.
        activation: name, Cell or function applied to the result; None for no activation.
        dtype: dtype of the Parameters.

    Inputs: x of (..., in_channels). Outputs: (..., out_channels).

    Raises:
        TypeError: an argument of the wrong kind.
        ValueError: a channel count below 1, an initial Tensor of another shape, or an input whose
            last axis is not `in_channels` long.

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
        >>> print(layer(ms.Tensor([[1.0, 2.0, 3.0]])))
        [[6. 6.]]
        >>> layer
        Dense(input_channels=3, output_channels=2, has_bias=True)
    """

    matmul = Operator("MatMul", lambda c: {"transpose_b": True})
    bias_add = Operator("BiasAdd")
    reshape = Operator("Reshape")
    shape_op = Operator("Shape")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Init = None,
        bias_init: Init = None,
        has_bias: bool = True,
        activation: Activation = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        self.in_channels = _check.positive_int("Dense", "in_channels", in_channels)
        self.out_channels = _check.positive_int("Dense", "out_channels", out_channels)
        self.has_bias = _check.boolean("Dense", "has_bias", has_bias)
        shape = (out_channels, in_channels)
        if isinstance(weight_init, Tensor) and weight_init.shape != shape:
            raise ShapeError(
                f"Dense: got weight_init of shape {weight_init.shape}; "
                f"wanted (out_channels, in_channels) = {shape}"
            )
        if isinstance(bias_init, Tensor) and bias_init.shape != (out_channels,):
            raise ShapeError(
                f"Dense: got bias_init of shape {bias_init.shape}; wanted ({out_channels},)"
            )
        if weight_init is None:
            weight_init = HeUniform(math.sqrt(5))
        self.weight = Parameter(initializer(weight_init, shape, dtype), name="weight")
        self.bias: Parameter | None = None
        if has_bias:
            if bias_init is None:
                bias_init = Uniform(1 / math.sqrt(in_channels))
            self.bias = Parameter(initializer(bias_init, (out_channels,), dtype), name="bias")
        if activation is not None and not isinstance(activation, str) and not callable(activation):
            raise ArgumentError(
                f"Dense: got activation={activation!r}; wanted a name, a Cell or a function"
            )
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        self.activation_flag = self.activation is not None

    def construct(self, x: Tensor) -> Tensor:
        out = ops.dense(x, self.weight, self.bias)
        return out if self.activation is None else self.activation(out)

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        if self.activation is not None:
            text += f", activation={self.activation}"
        return text


class BiDense(Cell):
    """Bilinear layer: `x1 @ weight[k] @ x2 + bias` for every output k (`mindspore.nn.BiDense`).

    Inputs: x1 of (..., in1_channels), x2 of (..., in2_channels). Outputs: (..., out_channels).

    Examples:
        >>> import duograph as ms
        >>> layer = ms.nn.BiDense(3, 4, 2)
        >>> layer(ms.ops.ones((5, 3), ms.float32), ms.ops.ones((5, 4), ms.float32)).shape
        (5, 2)
    """

    matmul = Operator("MatMul", lambda c: {"transpose_b": True})
    bias_add = Operator("BiasAdd")

    def __init__(
        self,
        in1_channels: int,
        in2_channels: int,
        out_channels: int,
        weight_init: Init = None,
        bias_init: Init = None,
        has_bias: bool = True,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        self.in1_channels = _check.positive_int("BiDense", "in1_channels", in1_channels)
        self.in2_channels = _check.positive_int("BiDense", "in2_channels", in2_channels)
        self.out_channels = _check.positive_int("BiDense", "out_channels", out_channels)
        self.has_bias = _check.boolean("BiDense", "has_bias", has_bias)
        bound = Uniform(1 / math.sqrt(in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        self.weight = Parameter(
            initializer(bound if weight_init is None else weight_init, shape, dtype), name="weight"
        )
        self.bias: Parameter | None = None
        if has_bias:
            self.bias = Parameter(
                initializer(bound if bias_init is None else bias_init, (out_channels,), dtype),
                name="bias",
            )

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        left = ops.matmul(
            input1, self.weight.transpose(1, 0, 2).reshape(self.in1_channels, -1)
        )  # (..., out * in2)
        left = left.reshape(*input1.shape[:-1], self.out_channels, self.in2_channels)
        out = (left * input2.expand_dims(-2)).sum(-1)
        return out if self.bias is None else out + self.bias

    def extend_repr(self) -> str:
        return (
            f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, "
            f"out_channels={self.out_channels}, has_bias={self.has_bias}"
        )


class Flatten(Cell):
    """Flattens the axes `start_dim` to `end_dim` into one (`mindspore.nn.Flatten`).

    Raises:
        TypeError: an axis is not an int.
        ValueError: `start_dim` comes after `end_dim`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Flatten()(ms.ops.ones((2, 3, 4), ms.float32)).shape
        (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        for name, value in (("start_dim", start_dim), ("end_dim", end_dim)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"Flatten: got {name}={value!r}; wanted an int")
        self.start_dim = start_dim
        self.end_dim = end_dim

    def construct(self, x: Tensor) -> Tensor:
        if self.start_dim == 1 and self.end_dim == -1 and x.ndim > 1:
            return x.reshape(x.shape[0], math.prod(x.shape[1:]))
        if x.ndim == 1 and self.start_dim == 1 and self.end_dim == -1:
            return x.reshape(x.shape[0], 1)
        return ops.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Unflatten(Cell):
    """Splits one axis into several: `axis` becomes `unflattened_size` (`mindspore.nn.Unflatten`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Unflatten(1, (2, 3))(ms.ops.ones((4, 6), ms.float32)).shape
        (4, 2, 3)
    """

    shape = Operator("Shape")
    reshape = Operator("Reshape")

    def __init__(self, axis: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.axis = axis
        self.unflattened_size = tuple(unflattened_size)

    def construct(self, x: Tensor) -> Tensor:
        axis = self.axis + x.ndim if self.axis < 0 else self.axis
        return x.reshape(*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1 :])


class Identity(Cell):
    """Returns its input; arguments of the constructor are ignored (`mindspore.nn.Identity`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Identity()(ms.Tensor([1, 2])))
        [1 2]
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def construct(self, x: object) -> object:
        return x


class Embedding(Cell):
    """A table of vectors, looked up by index (`mindspore.nn.Embedding`).

    Args:
        vocab_size: number of vectors.
        embedding_size: length of each vector.
        use_one_hot: whether to look up by a matmul with one-hot rows; an index out of range then
            yields zeros.
        embedding_table: initial values, by default ``"normal"``.
        padding_idx: index of a vector that is initialised to zeros.

    Inputs: integer Tensor of any shape. Outputs: that shape + (embedding_size,).

    Raises:
        ValueError: a size below 1 or a `padding_idx` outside the table.
        IndexError: an index outside the table, on devices that check it.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Embedding(10, 4)(ms.Tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    expand = Operator("ExpandDims")
    gather = Operator("Gather")
    reshape_flat = Operator("Reshape")
    reshape = Operator("Reshape")
    get_shp = Operator("Shape")
    array_mul = Operator("MatMul")
    concat = Operator("Concat")
    one_hot = Operator("OneHot")

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Init = "normal",
        dtype: DTypeLike = float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = _check.positive_int("Embedding", "vocab_size", vocab_size)
        self.embedding_size = _check.positive_int("Embedding", "embedding_size", embedding_size)
        self.use_one_hot = _check.boolean("Embedding", "use_one_hot", use_one_hot)
        self.dtype = as_dtype(dtype)
        self.padding_idx = padding_idx
        table = initializer(embedding_table, (vocab_size, embedding_size), dtype)
        if padding_idx is not None:
            _check.in_range("Embedding", "padding_idx", padding_idx, 0, vocab_size, open_high=True)
            values = table.asnumpy().copy()
            values[padding_idx] = 0
            table = Tensor(values)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Tensor) -> Tensor:
        if self.use_one_hot:
            rows = ops.one_hot(ids.reshape(-1), self.vocab_size).astype(self.embedding_table.dtype)
            out = ops.matmul(rows, self.embedding_table)
            return out.reshape(*ids.shape, self.embedding_size)
        return ops.gather(self.embedding_table, ids, 0)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, "
            f"use_one_hot={self.use_one_hot}, embedding_table={self.embedding_table}, "
            f"dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class Dropout(Cell):
    """In training, sets elements to 0 at random and scales the rest (`mindspore.nn.Dropout`).

    Args:
        keep_prob: probability of keeping an element; an older argument, used when `p` is None.
        p: probability of dropping an element.

    Raises:
        ValueError: `keep_prob` outside (0, 1] or `p` outside [0, 1).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Dropout(p=0.5)(ms.Tensor([1.0, 2.0])))
        [1. 2.]
    """

    dropout = Operator("Dropout", lambda c: {"keep_prob": 1.0 - c._drop})

    def __init__(
        self, keep_prob: float = 0.5, p: float | None = None, dtype: DTypeLike = float32
    ) -> None:
        super().__init__()
        check_options("nn.Dropout", dtype=dtype if dtype is not float32 else "float32")
        self.p = p
        self.keep_prob = keep_prob
        if p is not None:
            if keep_prob != 0.5:
                warn_unused("nn.Dropout", "keep_prob")
            self._drop = _check.in_range("Dropout", "p", p, 0, 1, open_high=True)
        else:
            self._drop = 1.0 - _check.in_range(
                "Dropout", "keep_prob", keep_prob, 0, 1, open_low=True
            )

    def construct(self, x: Tensor) -> Tensor:
        if not self.training or self._drop == 0:
            return x
        return ops.dropout(x, p=self._drop, training=True)

    def extend_repr(self) -> str:
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class _ChannelDropout(Cell):
    """Base class of layers that drop whole channels.

    A subclass sets `_ranks`, the numbers of input axes that it accepts.
    """

    _ranks: tuple[int, ...] = ()

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = _check.in_range(type(self).__name__, "p", p, 0, 1)

    def construct(self, x: Tensor) -> Tensor:
        _check.rank(type(self).__name__, x, *self._ranks)
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return ops.zeros_like(x)
        lead = x.ndim - (max(self._ranks) - 2)
        mask = ops.ones(x.shape[:lead] + (1,) * (x.ndim - lead), x.dtype)
        return x * ops.dropout(mask, p=self.p, training=True)

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(_ChannelDropout):
    """In training, sets whole channels of (N, C, L) or (C, L) to 0 (`mindspore.nn.Dropout1d`).

    Raises:
        ValueError: `p` outside [0, 1], or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Dropout1d(0.5)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 4)
    """

    _ranks = (2, 3)


class Dropout2d(_ChannelDropout):
    """In training, sets whole channels of (N, C, H, W) to 0 (`mindspore.nn.Dropout2d`).

    Raises:
        ValueError: `p` outside [0, 1], or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Dropout2d(0.5)(ms.ops.ones((1, 2, 3, 3), ms.float32)).shape
        (1, 2, 3, 3)
    """

    dropout2d = Operator("Dropout2D", lambda c: {"keep_prob": c.keep_prob})

    _ranks = (4,)


class Dropout3d(_ChannelDropout):
    """In training, sets whole channels of (N, C, D, H, W) to 0 (`mindspore.nn.Dropout3d`).

    Raises:
        ValueError: `p` outside [0, 1], or an input of another rank.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.Dropout3d(0.5)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 4, 4, 4)
    """

    dropout3d = Operator("Dropout3D", lambda c: {"keep_prob": c.keep_prob})

    _ranks = (5,)


class OneHot(Cell):
    """One-hot encoding of integers as vectors of length `depth` (`mindspore.nn.OneHot`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.OneHot(depth=3)(ms.Tensor([2, 0])))
        [[0. 0. 1.]
         [1. 0. 0.]]
    """

    onehot = Operator("OneHot", lambda c: {"axis": c.axis})

    def __init__(
        self,
        axis: int = -1,
        depth: int = 1,
        on_value: float = 1.0,
        off_value: float = 0.0,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        self.axis, self.depth, self.dtype = axis, depth, as_dtype(dtype)
        self.on_value, self.off_value = on_value, off_value

    def construct(self, indices: Tensor) -> Tensor:
        return ops.one_hot(
            indices, self.depth, Tensor(self.on_value, self.dtype),
            Tensor(self.off_value, self.dtype), self.axis,
        )  # fmt: skip


class Norm(Cell):
    """Square root of the sum of squares along axes (`mindspore.nn.Norm`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.Norm()(ms.Tensor([3.0, 4.0])))
        5.0
    """

    reduce_sum = Operator("ReduceSum", lambda c: {"keep_dims": True})
    sqrt = Operator("Sqrt")
    squeeze = Operator("Squeeze", lambda c: {"axis": c.axis})

    def __init__(self, axis: Axis = (), keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        axis = None if self.axis == () else self.axis
        return ops.sqrt(ops.sum(ops.square(x), axis, self.keep_dims))

    def extend_repr(self) -> str:
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class ClipByNorm(Cell):
    """Scales a tensor down to a norm of at most `clip_norm` (`mindspore.nn.ClipByNorm`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.ClipByNorm()(ms.Tensor([3.0, 4.0]), ms.Tensor(1.0)))
        [0.6 0.8]
    """

    def __init__(self, axis: Axis = None) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor, clip_norm: Tensor | float) -> Tensor:
        squares = ops.sum(ops.square(x), self.axis, True)
        # sqrt has an infinite derivative at 0, so a zero norm bypasses it
        norm = ops.sqrt(ops.where(squares > 0, squares, ops.ones_like(squares)))
        norm = ops.where(squares > 0, norm, squares)
        out = x * clip_norm / ops.maximum(norm, clip_norm)
        return out.reshape(x.shape)


class MatMul(Cell):
    """Matmul with optional transposes (`mindspore.nn.MatMul`, of older versions).

    Examples:
        >>> import duograph as ms
        >>> x, y = ms.ops.ones((2, 3), ms.float32), ms.ops.ones((4, 3), ms.float32)
        >>> ms.nn.MatMul(transpose_x2=True)(x, y).shape
        (2, 4)
    """

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        self.transpose_x1 = _check.boolean("MatMul", "transpose_x1", transpose_x1)
        self.transpose_x2 = _check.boolean("MatMul", "transpose_x2", transpose_x2)

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        if self.transpose_x1 and x1.ndim > 1:
            x1 = x1.swapaxes(-1, -2)
        if self.transpose_x2 and x2.ndim > 1:
            x2 = x2.swapaxes(-1, -2)
        return ops.matmul(x1, x2)
