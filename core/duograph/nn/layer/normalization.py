"""Batch, layer, group and instance normalisation.

`nn` exports these layers. Layers of batch and instance normalisation update their moving statistics
in training, and a new `SyncBatchNorm` may create a group of ranks; nothing else here has a side
effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import ops
from ...common.initializer import initializer
from ...dtype import float32
from ...errors import ArgumentError, ArgumentValueError, ShapeError
from ...ops.collective import reduced
from ...ops.instance_normalization import move_statistics
from ...parameter import Parameter
from ...ranks.world import world
from ...tensor import Tensor
from .. import _check
from .._operators import Operator
from .._types import DTypeLike, Init
from ..cell import Cell

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
]  # fmt: skip


def _parameter(name: str, init: Init, features: int, dtype: DTypeLike, trained: bool) -> Parameter:
    """Create a Parameter of a normalisation layer of shape (features,), one value per channel.

    `trained` says whether the Parameter requires a gradient.
    """
    return Parameter(initializer(init, (features,), dtype), name=name, requires_grad=trained)


class _BatchNorm(Cell):
    """Base class of the batch normalisation layers.

    A subclass sets `_ranks`, the numbers of input axes that it accepts.
    """

    bn_train = Operator("BatchNorm", lambda c: {"is_training": True, **c._operator_arguments()})
    bn_infer = Operator("BatchNorm", lambda c: {"is_training": False, **c._operator_arguments()})
    reduce_mean = Operator("ReduceMean", lambda c: {"keep_dims": True})
    square = Operator("Square")
    sqrt = Operator("Sqrt")
    cast = Operator("Cast")
    dtype = Operator("DType")
    reshape = Operator("Reshape")
    shape = Operator("Shape")

    _ranks: tuple[int, ...] = (4,)

    group_size = 1  # how many ranks share the statistics of their batches

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        moving_mean_init: Init = "zeros",
        moving_var_init: Init = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.num_features = _check.positive_int(owner, "num_features", num_features)
        self.eps = _check.in_range(owner, "eps", eps, 0)
        # the weight of the new statistics, as MindSpore's layers store it
        self.momentum = 1.0 - _check.in_range(owner, "momentum", momentum, 0, 1)
        _check.boolean(owner, "affine", affine)
        if use_batch_statistics is not None:
            _check.boolean(owner, "use_batch_statistics", use_batch_statistics)
        self.use_batch_statistics = use_batch_statistics
        self.data_format = _check.one_of(
            owner, "data_format", data_format, ("NCHW", "NHWC", "NCDHW")
        )
        self.moving_mean = _parameter("mean", moving_mean_init, num_features, dtype, False)
        self.moving_variance = _parameter("variance", moving_var_init, num_features, dtype, False)
        self.gamma = _parameter("gamma", gamma_init, num_features, dtype, affine)
        self.beta = _parameter("beta", beta_init, num_features, dtype, affine)

    def _trained(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        """Normalise a batch by its own statistics; return (result, mean, variance, count).

        `x` and the result have shape (N, C, ...), mean and variance (C,). The variance of the
        moving average is variance * count / (count - 1); a count of 1 stands for the factor 1.
        """
        count = x.size // self.num_features
        return (*ops.batch_norm_train(x, self.gamma, self.beta, eps=self.eps), count)

    def _operator_arguments(self) -> dict[str, object]:
        """Return the constructor arguments of the layer's primitives `bn_train` and `bn_infer`."""
        return {"epsilon": self.eps, "momentum": self.momentum, "data_format": self.data_format}

    def construct(self, x: Tensor) -> Tensor:
        owner = type(self).__name__
        _check.rank(owner, x, *self._ranks)
        last = self.data_format == "NHWC"
        if last:
            x = x.transpose(0, 3, 1, 2)
        if x.shape[1] != self.num_features:
            raise ShapeError(
                f"{owner}: input has shape {x.shape}; wanted {self.num_features} channels on "
                "axis 1, the num_features of the layer"
            )
        use_batch = self.use_batch_statistics
        if self.training if use_batch is None else use_batch:
            out, mean, variance, count = self._trained(x)
            moved_mean, moved_variance = ops.moving_statistics(
                self.moving_mean, self.moving_variance,
                ops.stop_gradient(mean), ops.stop_gradient(variance),
                keep=1.0 - self.momentum, count=count,
            )  # fmt: skip
            self.moving_mean.set_data(moved_mean)
            self.moving_variance.set_data(moved_variance)
        else:
            out = ops.batch_norm_infer(
                x, self.gamma, self.beta, self.moving_mean, self.moving_variance, eps=self.eps
            )
        return out.transpose(0, 2, 3, 1) if last else out

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={1.0 - self.momentum}, "
            f"gamma={self.gamma}, beta={self.beta}, moving_mean={self.moving_mean}, "
            f"moving_variance={self.moving_variance}"
        )


class BatchNorm2d(_BatchNorm):
    """Normalises every channel of (N, C, H, W) (`mindspore.nn.BatchNorm2d`).

    Args:
        num_features: number of channels.
        eps: number that is added to the variance.
        momentum: weight of the *old* moving average, 0.9 by default.
        affine: whether gamma and beta are trained.
        gamma_init, beta_init, moving_mean_init, moving_var_init: initial values.
        use_batch_statistics: True: always use the statistics of the batch; False: always the moving
            ones; None: those of the batch in training, the moving ones otherwise.
        data_format: ``"NCHW"`` or ``"NHWC"``.
        dtype: dtype of the Parameters.

    In training the moving mean and the moving (unbiased) variance are updated.

    Raises:
        ValueError: `num_features` below 1, `momentum` outside [0, 1], or an input of another rank
            or number of channels.

    Examples:
        >>> import duograph as ms
        >>> net = ms.nn.BatchNorm2d(3)
        >>> net(ms.ops.ones((2, 3, 2, 2), ms.float32)).shape
        (2, 3, 2, 2)
    """


class BatchNorm1d(_BatchNorm):
    """Normalises every channel of (N, C) or (N, C, L) (`mindspore.nn.BatchNorm1d`); see
    `BatchNorm2d`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.BatchNorm1d(3)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 4)
    """

    _ranks = (2, 3)


class BatchNorm3d(_BatchNorm):
    """Normalises every channel of (N, C, D, H, W) (`mindspore.nn.BatchNorm3d`); see `BatchNorm2d`.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.BatchNorm3d(3)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 4, 4, 4)
    """

    _ranks = (5,)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        moving_mean_init: Init = "zeros",
        moving_var_init: Init = "ones",
        use_batch_statistics: bool | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init,
            moving_var_init, use_batch_statistics, "NCDHW", dtype,
        )  # fmt: skip


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all ranks (`mindspore.nn.SyncBatchNorm`).

    In training, mean and variance are those of the batches of all ranks together, whose sizes may
    differ. With one rank it is the same as BatchNorm.

    Args:
        process_groups: lists of ranks that share their statistics; each rank is in one at most.
            None: all ranks share them.

    Raises:
        ValueError: `process_groups` are not lists of different ranks.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.SyncBatchNorm(3)(ms.ops.ones((2, 3, 4, 4), ms.float32)).shape
        (2, 3, 4, 4)
    """

    _ranks = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        moving_mean_init: Init = "zeros",
        moving_var_init: Init = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: Sequence[Sequence[int]] | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init,
            moving_var_init, use_batch_statistics, "NCHW", dtype,
        )  # fmt: skip
        self.group = shared_group("SyncBatchNorm", process_groups)
        self.group_size = world().group("SyncBatchNorm", self.group).size if self.group else 1

    def _trained(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        if self.group_size == 1:
            return super()._trained(x)
        return (*synchronized(x, self.gamma, self.beta, self.eps, self.group), 1)


def shared_group(owner: str, process_groups: Sequence[Sequence[int]] | None) -> str:
    """Return the name of the group of ranks with which this rank shares statistics, or "".

    `process_groups` has one list of ranks for each group; None means one group of all ranks. The
    result is "" if no list contains this rank. If the group does not exist yet, it is created, and
    every rank of the group must make this call too.

    Raises:
        ArgumentValueError: `process_groups` are not lists of different ranks.
    """
    own = world()
    if process_groups is None:
        return own.whole.name
    members = [tuple(g) if isinstance(g, (list, tuple)) else () for g in process_groups]
    everyone = [r for g in members for r in g]
    if len(set(everyone)) < len(everyone) or any(
        type(r) is not int or not 0 <= r < own.size for r in everyone
    ):
        raise ArgumentValueError(
            f"{owner}: got process_groups={process_groups!r}; wanted lists of different ranks from "
            f"0 to {own.size - 1}"
        )
    for ranks in members:
        if own.rank in ranks:
            name = f"{owner}-{'-'.join(map(str, ranks))}"
            if name not in own.groups:
                own.create_group(name, ranks)
            return name
    return ""


def synchronized(
    x: Tensor, gamma: Tensor, beta: Tensor, eps: float, group: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise channels with the statistics of all ranks.

    Returns (result, mean, unbiased variance). The variance by which it divides is the biased one.

    Args:
        x: Tensor (N, C, ...), with the same C on all ranks.
        gamma, beta: scale and offset (C,).
        eps: number that is added to the variance.
        group: name of the group of ranks.
    """
    axes = tuple(i for i in range(x.ndim) if i != 1)
    shape = tuple(-1 if i == 1 else 1 for i in range(x.ndim))
    wide = x.astype(float32)
    own = ops.zeros((1,), float32) + x.size // x.shape[1]
    total, count = reduced("SyncBatchNorm", [wide.sum(axes), own], "sum", group)
    mean = total / count
    centred = wide - mean.reshape(shape)
    (squares,) = reduced("SyncBatchNorm", [(centred * centred).sum(axes)], "sum", group)
    variance = squares / count
    scale = ops.rsqrt(variance + eps) * gamma
    out = centred * scale.reshape(shape) + beta.reshape(shape)
    return out.astype(x.dtype), mean, squares / ops.maximum(count - 1, 1.0)


class LayerNorm(Cell):
    """Normalises each sample over its last axes (`mindspore.nn.LayerNorm`).

    Args:
        normalized_shape: tuple or list, shape of gamma and beta.
        begin_norm_axis: first of the axes to normalise over.
        begin_params_axis: first axis of the input that gamma and beta cover.
        gamma_init, beta_init: initial values.
        epsilon: added to the variance, 1e-7 by default.
        dtype: dtype of the Parameters.

    Raises:
        TypeError: `normalized_shape` is not a tuple or list.
        ShapeError: the input does not end in `normalized_shape`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.nn.LayerNorm((2,))(ms.Tensor([[1.0, 3.0]])).round())
        [[-1.  1.]]
    """

    layer_norm = Operator(
        "LayerNorm",
        lambda c: {
            "begin_norm_axis": c.begin_norm_axis, "begin_params_axis": c.begin_params_axis,
            "epsilon": c.epsilon,
        },
    )  # fmt: skip

    def __init__(
        self,
        normalized_shape: Sequence[int],
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        epsilon: float = 1e-7,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            raise ArgumentError(
                f"LayerNorm: got normalized_shape={normalized_shape!r}; wanted a tuple or list of "
                "ints"
            )
        if not normalized_shape:
            raise ArgumentValueError(
                "LayerNorm: got an empty normalized_shape; wanted at least one axis"
            )
        self.normalized_shape = tuple(
            _check.positive_int("LayerNorm", "normalized_shape", n) for n in normalized_shape
        )
        self.begin_norm_axis = begin_norm_axis
        self.begin_params_axis = begin_params_axis
        self.epsilon = _check.in_range("LayerNorm", "epsilon", epsilon, 0)
        self.gamma = Parameter(initializer(gamma_init, self.normalized_shape, dtype), name="gamma")
        self.beta = Parameter(initializer(beta_init, self.normalized_shape, dtype), name="beta")

    def construct(self, x: Tensor) -> Tensor:
        norm = self.begin_norm_axis % x.ndim
        params = self.begin_params_axis % x.ndim
        if x.shape[params:] != self.normalized_shape:
            count = len(self.normalized_shape)
            last = "the last axis" if count == 1 else f"the last {count} axes"
            usual = self.begin_params_axis == -count
            begin = f"the axes from begin_params_axis={self.begin_params_axis} on"
            raise ShapeError(
                f"LayerNorm: input has shape {x.shape}; wanted the normalized_shape, "
                f"{self.normalized_shape}, on {last if usual else begin}"
            )
        if norm == params:
            out, _, _ = ops.layer_norm_core(x, self.gamma, self.beta, axis=norm, eps=self.epsilon)
            return out
        one, zero = ops.ones(x.shape[norm:], x.dtype), ops.zeros(x.shape[norm:], x.dtype)
        out, _, _ = ops.layer_norm_core(x, one, zero, axis=norm, eps=self.epsilon)
        return out * self.gamma + self.beta

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma}, beta={self.beta}"
        )


class GroupNorm(Cell):
    """Normalises groups of channels of (N, C, ...) (`mindspore.nn.GroupNorm`).

    Raises:
        ValueError: the channels do not divide into the groups, or the input has another number of
            channels.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.GroupNorm(2, 4)(ms.ops.ones((1, 4, 3, 3), ms.float32)).shape
        (1, 4, 3, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        self.num_groups = _check.positive_int("GroupNorm", "num_groups", num_groups)
        self.num_channels = _check.positive_int("GroupNorm", "num_channels", num_channels)
        if num_channels % num_groups:
            raise ArgumentValueError(
                f"GroupNorm: got num_channels={num_channels} for num_groups={num_groups}; wanted "
                "num_channels to be a multiple of num_groups"
            )
        self.eps = _check.in_range("GroupNorm", "eps", eps, 0)
        self.affine = _check.boolean("GroupNorm", "affine", affine)
        self.gamma = _parameter("gamma", gamma_init, num_channels, dtype, affine)
        self.beta = _parameter("beta", beta_init, num_channels, dtype, affine)

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(
                f"GroupNorm: input has shape {x.shape}; wanted {self.num_channels} channels on "
                "axis 1"
            )
        return _group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


def _group_norm(x: Tensor, groups: int, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    """Normalise each of `groups` groups of adjacent channels of `x` (N, C, ...) for each sample.

    Then `gamma` and `beta` (C,) scale and shift each channel. The computation is in float32 at
    least, because squares of float16 overflow; the result has the dtype of `x`.
    """
    shape, dtype = x.shape, x.dtype
    if dtype.itemsize == 2:
        x = x.astype(float32)
    rows = x.reshape(shape[0] * groups, math.prod(shape[1:]) // groups)
    mean = rows.mean(1, True)
    centred = rows - mean
    variance = (centred * centred).mean(1, True)
    normal = (centred * ops.rsqrt(variance + eps)).reshape(shape)
    affine = (1, shape[1]) + (1,) * (len(shape) - 2)
    out = normal * gamma.reshape(affine) + beta.reshape(affine)
    return out if out.dtype is dtype else out.astype(dtype)


class _InstanceNorm(Cell):
    """Base class of the instance normalisation layers.

    A subclass sets `_ranks`, the numbers of input axes that it accepts.
    """

    instance_bn = Operator("InstanceNorm", lambda c: {"epsilon": c.eps, "momentum": c.momentum})
    shape = Operator("Shape")

    _ranks: tuple[int, ...] = (4,)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        gamma_init: Init = "ones",
        beta_init: Init = "zeros",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.num_features = _check.positive_int(owner, "num_features", num_features)
        self.eps = _check.in_range(owner, "eps", eps, 0)
        self.momentum = _check.in_range(owner, "momentum", momentum, 0, 1)
        _check.boolean(owner, "affine", affine)
        self.moving_mean = _parameter("mean", "zeros", num_features, dtype, False)
        self.moving_variance = _parameter("variance", "ones", num_features, dtype, False)
        self.gamma = _parameter("gamma", gamma_init, num_features, dtype, affine)
        self.beta = _parameter("beta", beta_init, num_features, dtype, affine)

    def construct(self, x: Tensor) -> Tensor:
        owner = type(self).__name__
        _check.rank(owner, x, *self._ranks)
        if x.shape[1] != self.num_features:
            raise ShapeError(
                f"{owner}: input has shape {x.shape}; wanted {self.num_features} channels on "
                "axis 1, the num_features of the layer"
            )
        if self.training:
            move_statistics(x, self.moving_mean, self.moving_variance, self.momentum)
        return _group_norm(x, self.num_features, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"gamma={self.gamma}, beta={self.beta}, moving_mean={self.moving_mean}, "
            f"moving_variance={self.moving_variance}"
        )


class InstanceNorm2d(_InstanceNorm):
    """Normalises every channel of every sample of (N, C, H, W) (`mindspore.nn.InstanceNorm2d`).

    The statistics are those of each sample, in training and in evaluation. In training the moving
    mean and the moving (unbiased) variance become ``momentum * old + (1 - momentum) * mean over the
    samples``; the layer's output does not depend on them.

    Raises:
        ValueError: an input of another rank or number of channels.

    Examples:
        >>> import duograph as ms
        >>> ms.nn.InstanceNorm2d(3)(ms.ops.ones((1, 3, 2, 2), ms.float32)).shape
        (1, 3, 2, 2)
    """


class InstanceNorm1d(_InstanceNorm):
    """`InstanceNorm2d` for (N, C, L) (`mindspore.nn.InstanceNorm1d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.InstanceNorm1d(3)(ms.ops.ones((1, 3, 4), ms.float32)).shape
        (1, 3, 4)
    """

    _ranks = (3,)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm2d` for (N, C, D, H, W) (`mindspore.nn.InstanceNorm3d`).

    Examples:
        >>> import duograph as ms
        >>> ms.nn.InstanceNorm3d(3)(ms.ops.ones((1, 3, 4, 4, 4), ms.float32)).shape
        (1, 3, 4, 4, 4)
    """

    _ranks = (5,)
