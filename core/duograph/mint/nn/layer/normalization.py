"""Batch, layer and group normalisation of `duograph.mint.nn`.

`mint/nn/__init__.py` exports these layers. In training, batch normalisation updates its running
statistics; `momentum` is the weight of the new batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from .... import ops as _ops
from ....common.initializer import initializer
from ....dtype import DTypeLike, float32, int64
from ....errors import ArgumentValueError, ShapeError, UnsupportedOpError
from ....nn import _check
from ....nn.cell import Cell
from ....option_checks import check_options
from ....parameter import Parameter
from ....ranks.world import world
from ....tensor import Tensor
from .. import functional as F

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "LayerNorm", "SyncBatchNorm",
]  # fmt: skip


class _BatchNorm(Cell):
    """Base class of the batch normalisation layers.

    A subclass sets `_ranks`, the numbers of input axes that it accepts.
    """

    _ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.num_features = _check.positive_int(owner, "num_features", num_features)
        self.eps = _check.in_range(owner, "eps", eps, 0)
        self.momentum = (
            None if momentum is None else _check.in_range(owner, "momentum", momentum, 0, 1)
        )
        self.affine = _check.boolean(owner, "affine", affine)
        self.track_running_stats = _check.boolean(owner, "track_running_stats", track_running_stats)
        kind = float32 if dtype is None else dtype
        shape = (num_features,)
        self.weight: Parameter | None = None
        self.bias: Parameter | None = None
        self.running_mean: Parameter | None = None
        self.running_var: Parameter | None = None
        self.num_batches_tracked: Parameter | None = None
        if affine:
            self.weight = Parameter(initializer("ones", shape, kind), name="weight")
            self.bias = Parameter(initializer("zeros", shape, kind), name="bias")
        if track_running_stats:
            self.running_mean = Parameter(
                initializer("zeros", shape, kind), name="running_mean", requires_grad=False
            )
            self.running_var = Parameter(
                initializer("ones", shape, kind), name="running_var", requires_grad=False
            )
            self.num_batches_tracked = Parameter(
                Tensor(0, int64), name="num_batches_tracked", requires_grad=False
            )

    def construct(self, input: Tensor) -> Tensor:
        _check.rank(type(self).__name__, input, *self._ranks)
        if input.shape[1] != self.num_features:
            raise ShapeError(
                f"{type(self).__name__}: input has shape {input.shape}; wanted "
                f"{self.num_features} channels on axis 1, "
                "the num_features of the layer"
            )
        if not self.training or self.running_mean is None or self.running_var is None:
            batch = self.training or self.running_mean is None
            return F.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, batch, 0.0,
                self.eps,
            )  # fmt: skip
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.set_data(self.num_batches_tracked + 1)
        if self.momentum is None:
            self._accumulate(input)
            return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, True,
            self.momentum, self.eps,
        )  # fmt: skip

    def _accumulate(self, input: Tensor) -> None:
        """Update the running statistics so that they average all batches, `input` included.

        It is used if `momentum` is None. `num_batches_tracked` is the number of batches.
        """
        mean, var, count = self.running_mean, self.running_var, self.num_batches_tracked
        assert mean is not None and var is not None and count is not None
        axes = tuple(i for i in range(input.ndim) if i != 1)
        x = _ops.stop_gradient(input)
        share = 1.0 / count.astype(mean.dtype)
        mean.set_data(mean + (_ops.mean(x, axes).astype(mean.dtype) - mean) * share)
        var.set_data(var + (_ops.var(x, axes, 1).astype(var.dtype) - var) * share)

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalises every channel of (N, C) or (N, C, L) (`mindspore.mint.nn.BatchNorm1d`); see
    `BatchNorm2d`.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.BatchNorm1d(3)(mint.ones((2, 3))).shape
        (2, 3)
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises every channel of (N, C, H, W) (`mindspore.mint.nn.BatchNorm2d`).

    Args:
        num_features: number of channels.
        eps: number that is added to the variance.
        momentum: weight of the batch in the running statistics; None averages over all batches.
        affine: whether to multiply by a trained weight and add a trained bias.
        track_running_stats: whether to keep running statistics, which evaluation uses; otherwise
            the statistics of the batch are used always.
        dtype: dtype of the Parameters; default float32.

    Raises:
        ValueError: `num_features` below 1, `momentum` outside [0, 1], or an input of another
            number of axes or channels.

    Examples:
        >>> from duograph import mint
        >>> net = mint.nn.BatchNorm2d(3).set_train()
        >>> net(mint.ones((2, 3, 2, 2))).shape
        (2, 3, 2, 2)
        >>> print(net.running_mean.asnumpy())
        [0.1 0.1 0.1]
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises every channel of (N, C, D, H, W) (`mindspore.mint.nn.BatchNorm3d`); see
    `BatchNorm2d`.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.BatchNorm3d(3)(mint.ones((1, 3, 2, 2, 2))).shape
        (1, 3, 2, 2, 2)
    """

    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation for one process, the same as that of `BatchNorm2d` and its like
    (`mindspore.mint.nn.SyncBatchNorm`).

    It accepts inputs of 2 to 5 axes; the arguments are those of `BatchNorm2d`. Several ranks cannot
    share statistics in it: use `nn.SyncBatchNorm`.

    Args:
        process_group: has no meaning with one process.

    Raises:
        NotImplementedError: there is more than one rank.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.SyncBatchNorm(3)(mint.ones((2, 3, 4, 4))).shape
        (2, 3, 4, 4)
    """

    _ranks = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        if world().size > 1:
            raise UnsupportedOpError(
                "mint.nn.SyncBatchNorm: statistics of several ranks are not built yet; use "
                "nn.SyncBatchNorm"
            )
        check_options("mint.nn.SyncBatchNorm", process_group=process_group)
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)


class LayerNorm(Cell):
    """Normalises each sample over its last axes (`mindspore.mint.nn.LayerNorm`).

    Args:
        normalized_shape: int, tuple or list: the sizes of the last axes.
        eps: number that is added to the variance.
        elementwise_affine: whether to multiply by a trained weight.
        bias: whether to add a trained bias as well.
        dtype: dtype of the Parameters; default float32.

    Raises:
        ValueError: a size below 1, or an input that does not end in `normalized_shape`.

    Examples:
        >>> from duograph import Tensor, mint
        >>> print(mint.round(mint.nn.LayerNorm(2)(Tensor([[1.0, 3.0]]))))
        [[-1.  1.]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        if not sizes:
            raise ArgumentValueError("LayerNorm: got an empty normalized_shape; wanted some axis")
        self.normalized_shape = tuple(
            _check.positive_int("LayerNorm", "normalized_shape", n) for n in sizes
        )
        self.eps = _check.in_range("LayerNorm", "eps", eps, 0)
        self.elementwise_affine = _check.boolean(
            "LayerNorm", "elementwise_affine", elementwise_affine
        )
        kind = float32 if dtype is None else dtype
        self.weight: Parameter | None = None
        self.bias: Parameter | None = None
        if elementwise_affine:
            self.weight = Parameter(initializer("ones", self.normalized_shape, kind), name="weight")
        if elementwise_affine and _check.boolean("LayerNorm", "bias", bias):
            self.bias = Parameter(initializer("zeros", self.normalized_shape, kind), name="bias")

    def construct(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Cell):
    """Normalises groups of channels of (N, C, ...) (`mindspore.mint.nn.GroupNorm`).

    Args:
        num_groups: number of groups; it divides `num_channels`.
        num_channels: number of channels.
        eps: number that is added to the variance.
        affine: whether to multiply by a trained weight and add a trained bias.
        dtype: dtype of the Parameters; default float32.

    Raises:
        ValueError: the channels do not divide into the groups, or an input of another number of
            channels.

    Examples:
        >>> from duograph import mint
        >>> mint.nn.GroupNorm(2, 4)(mint.ones((1, 4, 3, 3))).shape
        (1, 4, 3, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.num_groups = _check.positive_int("GroupNorm", "num_groups", num_groups)
        self.num_channels = _check.positive_int("GroupNorm", "num_channels", num_channels)
        if num_channels % num_groups:
            raise ArgumentValueError(
                f"GroupNorm: got num_groups={num_groups} for num_channels={num_channels}; wanted a "
                "divisor"
            )
        self.eps = _check.in_range("GroupNorm", "eps", eps, 0)
        self.affine = _check.boolean("GroupNorm", "affine", affine)
        kind = float32 if dtype is None else dtype
        self.weight: Parameter | None = None
        self.bias: Parameter | None = None
        if affine:
            self.weight = Parameter(initializer("ones", (num_channels,), kind), name="weight")
            self.bias = Parameter(initializer("zeros", (num_channels,), kind), name="bias")

    def construct(self, input: Tensor) -> Tensor:
        if input.ndim < 2 or input.shape[1] != self.num_channels:
            raise ShapeError(
                f"GroupNorm: input has shape {input.shape}; wanted {self.num_channels} channels "
                "on axis 1"
            )
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return (
            f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}"
        )
