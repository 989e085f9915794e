"""Layer, group and RMS normalisation and others, and what the families of normalisation share.

Users and normalisation layers call them; `batch_normalization.py` and `instance_normalization.py`
have the rest. All ops are composite, and a backend may have one kernel for each. Statistics of
16-bit floats must be float32, because sums of many elements lose too many digits in 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..call_cache import cached_call
from ..dtype import FLOATING, DType, float32
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..ir.builder import GraphTensor
from ..op import op
from ..op_signature import Axes, NewAxis
from ..tensor import Tensor
from ..types import TensorType, size_of
from .arguments import ints_of
from .axes import axes_of
from .creation import cast_to, fill
from .elementwise import maximum
from .exponential import exp, log
from .linalg import widened
from .movement import pad_by
from .norms import norm
from .powers import rsqrt
from .reduction import reduce_mean
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, strided_copy

__all__ = ["layer_norm", "group_norm", "rms_norm", "lrn", "l2_normalize", "normalize"]


def in_dtype(x: Tensor, dtype: DType) -> Tensor:
    """Cast `x` to a dtype; return `x` itself if it has that dtype already."""
    return x if x.dtype is dtype else cast_to(x, dtype)


def statistics_dtype(dtype: DType) -> DType:
    """Return the dtype in which means and variances are computed: float32 for 16-bit floats.

    For others it is `dtype`.
    """
    return float32 if dtype.itemsize == 2 else dtype


def is_zero(x: Tensor) -> bool:
    """Return whether `x` is a graph value made by filling with 0.

    The cotangent of an unused result is such a value.
    """
    if not isinstance(x, GraphTensor):
        return False
    for node in reversed(x._builder.nodes):
        if x._id in node.results:
            return node.op.name == "fill" and node.attributes["value"] == 0
    return False


def _mean(x: Tensor, axis: Sequence[int]) -> Tensor:
    return reduce_mean(x, tuple(axis), True)


# ---- layer --------------------------------------------------------------------------------------


@op(dtypes=FLOATING)
def layer_norm_core(input: Tensor, gamma: Tensor, beta: Tensor, axis: NewAxis, eps: float):
    """Composite op: layer normalisation over the axes from `axis` on (Ba et al., 2016).

    Returns (normalised * gamma + beta, mean, 1 / standard deviation). gamma and beta have the shape
    input.shape[axis:]; the statistics keep reduced axes with size 1.
    """
    axes = tuple(range(axis, input.ndim))
    x = widened(input)
    mean = _mean(x, axes)
    centred = x - mean
    rstd = rsqrt(_mean(centred * centred, axes) + eps)
    out = centred * rstd * in_dtype(gamma, x.dtype) + in_dtype(beta, x.dtype)
    return in_dtype(out, input.dtype), mean, rstd


@layer_norm_core.infer
def _(x, gamma, beta, axis, eps):
    for name, t in (("gamma", gamma), ("beta", beta)):
        if t.shape != x.shape[axis:]:
            raise ShapeError(
                f"layer_norm: got {name} of shape {t.shape} for input of shape {x.shape} "
                f"normalised "
                f"from axis {axis}; wanted {x.shape[axis:]}"
            )
    kept = TensorType.of((*x.shape[:axis], *[1] * (x.ndim - axis)), statistics_dtype(x.dtype))
    return x, kept, kept


@layer_norm_core.bprop
def _(x, gamma, beta, out, dout, axis, eps):
    _, mean, rstd = out
    dy, dmean, drstd = dout
    dx, dgamma, dbeta = layer_norm_grad(x, gamma, mean, rstd, dy, axis)
    n = size_of(x.shape[axis:])
    if not is_zero(dmean):
        dx = dx + in_dtype(broadcast_to(dmean * (1.0 / n), x.shape), x.dtype)
    if not is_zero(drstd):
        share = drstd * rstd * rstd * rstd * (-1.0 / n)
        dx = dx + in_dtype((widened(x) - mean) * share, x.dtype)
    return dx, dgamma, in_dtype(dbeta, beta.dtype)


def check_gradient(
    name: str,
    x: TensorType,
    dout: TensorType,
    gamma: TensorType,
    shape: tuple[int, ...],
    statistics: tuple[TensorType, ...],
    kept: TensorType,
) -> None:
    """Raise ShapeError unless the operands of a normalisation's gradient op fit its input `x`.

    Args:
        name: name of the gradient op.
        dout: cotangent of the result; it must have the type of `x`.
        gamma: scale factors, which must have the shape `shape`.
        statistics: the forward op's statistics; each must have the type `kept`.
    """
    if dout.plain is not x.plain or gamma.shape != shape:
        raise ShapeError(
            f"{name}: got an input of {x.plain}, a gradient of {dout.plain} and gamma of "
            f"{gamma.plain}; wanted a gradient like the input, and gamma of shape {shape}"
        )
    if any(t.plain is not kept for t in statistics):
        raise ShapeError(
            f"{name}: got statistics of {' and '.join(repr(t.plain) for t in statistics)}; wanted "
            f"{kept}"
        )


@op(dtypes=FLOATING)
def layer_norm_grad(
    input: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor, dout: Tensor, axis: NewAxis
):
    """Composite op: gradients of `layer_norm_core` with respect to input, gamma and beta.

    `mean` and `rstd` are the statistics that `layer_norm_core` returned, and `dout` is the
    cotangent of its first result.
    """
    axes, lead = tuple(range(axis, input.ndim)), tuple(range(axis))
    dy = widened(dout)
    normal = (widened(input) - mean) * rstd
    g = dy * in_dtype(gamma, dy.dtype)
    dx = (g - _mean(g, axes) - normal * _mean(g * normal, axes)) * rstd
    dgamma = reduce_sum(dy * normal, lead, False)
    dbeta = reduce_sum(dy, lead, False)
    return in_dtype(dx, input.dtype), in_dtype(dgamma, gamma.dtype), in_dtype(dbeta, gamma.dtype)


@layer_norm_grad.infer
def _(x, gamma, mean, rstd, dout, axis):
    kept = TensorType.of((*x.shape[:axis], *[1] * (x.ndim - axis)), statistics_dtype(x.dtype))
    check_gradient("layer_norm_grad", x, dout, gamma, x.shape[axis:], (mean, rstd), kept)
    return x, gamma, gamma


@op(dtypes=FLOATING)
def layer_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, axis: NewAxis, eps: float
):
    """Normalise the last axes to mean 0 and variance 1 (`mindspore.ops.layer_norm`).

    The result is multiplied by `weight`, and `bias` is added.

    Args:
        input: Tensor, floating.
        normalized_shape: sizes of the last axes, which are normalised together.
        weight, bias: Tensors of that shape, or None.
        eps: added to the variance.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        ValueError: the last axes have other sizes.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.layer_norm(ms.Tensor([[1.0, 3.0]]), (2,)).round(decimals=3))
        [[-1.  1.]]
    """
    shape = input.shape[axis:]
    gamma = fill(shape, 1.0, input.dtype) if weight is None else weight
    beta = fill(shape, 0.0, input.dtype) if bias is None else bias
    return layer_norm_core(input, gamma, beta, axis, eps)[0]


@layer_norm.normaliser
def _(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
):
    sizes = ints_of("layer_norm", "normalized_shape", normalized_shape)
    if not sizes or input.shape[input.ndim - len(sizes) :] != sizes:
        raise ShapeError(
            f"layer_norm: got input of shape {input.shape} and normalized_shape={sizes}; "
            f"wanted the "
            f"sizes of the last axes"
        )
    return (input, weight, bias, input.ndim - len(sizes), float(eps))


# ---- channels -----------------------------------------------------------------------------------


def along_channels(x: Tensor, ndim: int) -> Tensor:
    """Reshape (C,) to (C, 1, ...), so that it broadcasts along the channels of (N, C, ...).

    `ndim` is the number of axes of (N, C, ...).
    """
    return reshape_to(x, (x.shape[0], *[1] * (ndim - 2)))


def check_channels(name: str, x: TensorType, **given: TensorType) -> None:
    """Raise ShapeError unless each tensor in `given` has one element per channel of `x`.

    `name` is the op's name in the message.
    """
    if x.ndim < 2:
        raise ShapeError(f"{name}: got input of shape {x.shape}; wanted (N, C, ...)")
    for what, t in given.items():
        if t.shape != (x.shape[1],):
            raise ShapeError(
                f"{name}: got {what} of shape {t.shape} for input of shape {x.shape}; wanted "
                f"{(x.shape[1],)}, one number per channel"
            )


# ---- group, and others --------------------------------------------------------------------------


@op(dtypes=FLOATING)
def group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float):
    """Normalise groups of channels to mean 0 and variance 1 (`mindspore.ops.group_norm`).

    The result is multiplied by `weight`, and `bias` is added.

    Args:
        input: Tensor (N, C, ...), floating.
        num_groups: number of groups, a divisor of C.
        weight, bias: Tensors (C,), or None.
        eps: added to the variance.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        ValueError: `num_groups` does not divide C, or other sizes.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.group_norm(ms.ops.ones((2, 4, 3)), 2).shape
        (2, 4, 3)
    """
    n = input.shape[0]
    count = input.size // (n * groups) if n and groups else 0
    flat = reshape_to(input, (n, groups, count))
    one, zero = fill((count,), 1.0, input.dtype), fill((count,), 0.0, input.dtype)
    out = reshape_to(layer_norm_core(flat, one, zero, 2, eps)[0], input.shape)
    if weight is not None:
        out = out * along_channels(in_dtype(weight, input.dtype), input.ndim)
    return out if bias is None else out + along_channels(in_dtype(bias, input.dtype), input.ndim)


@group_norm.normaliser
def _(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
):
    if isinstance(num_groups, bool) or not isinstance(num_groups, int):
        raise ArgumentError(f"group_norm: got num_groups={num_groups!r}; wanted an int")
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ArgumentValueError(
            f"group_norm: got input of shape {input.shape} and num_groups={num_groups}; wanted "
            f"(N, C, ...) and a divisor of C"
        )
    given = {k: t._type for k, t in (("weight", weight), ("bias", bias)) if t is not None}
    check_channels("group_norm", input._type, **given)
    return (input, weight, bias, num_groups, float(eps))


@op(dtypes=FLOATING)
def rms_norm(x: Tensor, gamma: Tensor, eps: float):
    """Divide by the root mean square, and multiply by gamma (`mindspore.ops.rms_norm`).

    Source: Zhang and Sennrich, 2019.

    Args:
        x: Tensor, floating.
        gamma: Tensor of the shape of the last axes of `x`.
        epsilon: added to the mean square.

    Returns:
        (Tensor of the shape of `x`, 1 / root mean square), the second with reduced axes of size 1.

    Raises:
        ValueError: `gamma` does not have the shape of the last axes.

    Examples:
        >>> import duograph as ms
        >>> x, gamma = ms.Tensor([[3.0, 3.0]]), ms.Tensor([1.0, 2.0])
        >>> print(ms.ops.rms_norm(x, gamma)[0].round(decimals=4))
        [[1. 2.]]
    """
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    wide = widened(x)
    rstd = rsqrt(_mean(wide * wide, axes) + eps)
    return in_dtype(wide * rstd * in_dtype(gamma, wide.dtype), x.dtype), rstd


@rms_norm.normaliser
def _(x: Tensor, gamma: Tensor, epsilon: float = 1e-6):
    if gamma.ndim == 0 or x.shape[x.ndim - gamma.ndim :] != gamma.shape:
        raise ShapeError(
            f"rms_norm: got x of shape {x.shape} and gamma of shape {gamma.shape}; wanted the "
            f"sizes "
            f"of the last axes"
        )
    return (x, gamma, float(epsilon))


@op(
    dtypes=FLOATING,
    primitive="LRN(depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, "
    'norm_region="ACROSS_CHANNELS")(x)',
)
def lrn(x: Tensor, depth_radius: int, bias: float, alpha: float, beta: float):
    """Local response normalisation (Krizhevsky et al., 2012; `mindspore.ops.lrn`).

    Args:
        x: Tensor (N, C, H, W), floating.
        depth_radius: number of channels on each side whose squares are summed.
        bias, alpha, beta: numbers in the result, x / (bias + alpha * sum) ** beta.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: not four axes, or another region.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.lrn(ms.ops.ones((1, 3, 2, 2))).shape
        (1, 3, 2, 2)
    """
    wide = widened(x)
    r = depth_radius
    n, c = x.shape[:2]
    rest = size_of(x.shape[2:])
    squares = reshape_to(wide * wide, (n, c, rest))
    squares = pad_by(squares, (0, r, 0), (0, r, 0), 0)
    near = strided_copy(squares, (n, c, 2 * r + 1, rest), ((c + 2 * r) * rest, rest, rest, 1), 0)
    total = reshape_to(reduce_sum(near, (2,), False), x.shape)
    return in_dtype(wide * exp(log(total * alpha + bias) * -beta), x.dtype)


@lrn.normaliser
def _(
    x: Tensor,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
):
    if norm_region != "ACROSS_CHANNELS" or x.ndim != 4:
        raise ArgumentValueError(
            f"lrn: got norm_region={norm_region!r} and x of shape {x.shape}; wanted "
            f"'ACROSS_CHANNELS' "
            f"and (N, C, H, W)"
        )
    return (x, int(depth_radius), float(bias), float(alpha), float(beta))


@op(dtypes=FLOATING, primitive="L2Normalize(axis=0, epsilon=0.0001)(x)")
def l2_normalize(input: Tensor, axis: Axes, epsilon: float):
    """Divide by the 2-norm along axes.

    The squared norm is bounded below by `epsilon`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.l2_normalize(ms.Tensor([3.0, 4.0])))
        [0.6 0.8]
    """
    x = widened(input)
    total = maximum(reduce_sum(x * x, axis, True), fill((), epsilon, x.dtype))
    return in_dtype(x * rsqrt(total), input.dtype)


@l2_normalize.normaliser
def _(input: Tensor, axis: int | Sequence[int] = 0, epsilon: float = 1e-4):
    return (input, axes_of("l2_normalize", axis, input.ndim), float(epsilon))


@cached_call
def normalize(
    input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12
) -> Tensor:
    """Divide by the p-norm along `dim`, or by `eps` if that is larger.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.normalize(ms.Tensor([[3.0, 4.0]])))
        [[0.6 0.8]]
    """
    return input / maximum(norm(input, p, dim, True), fill((), eps, input.dtype))
