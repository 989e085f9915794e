"""Softmax, log_softmax, logsumexp and their gradients.

Users, losses, layers and attention call them. They are composite ops with gradient ops, so that a
backend can supply fused kernels. Sums must be computed in float32 or wider.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..call_cache import cached_call
from ..dtype import FLOATING, DTypeLike, as_dtype, float32
from ..errors import ArgumentError, DTypeError, ShapeError
from ..op import Op, op
from ..op_signature import Axes, Axis
from ..tensor import Tensor
from .axes import axes_of, axis_of, spelled
from .comparison import equal, isfinite, isinf
from .creation import cast_to, fill
from .elementwise import neg
from .exponential import exp, log
from .linalg import widened
from .logic import logical_and, select_by
from .methods import tensor_method
from .movement import identity, stop_gradient
from .primitive import primitive
from .reduction import reduce_max
from .shape_primitives import broadcast_reduced, reduce_sum, reshape_to, transpose_by

__all__ = ["softmax", "log_softmax", "softmin", "logsumexp"]


def _back(x: Tensor, like: Tensor) -> Tensor:
    return x if x.dtype is like.dtype else cast_to(x, like.dtype)


def _shifted(x: Tensor, axis: tuple[int, ...]) -> Tensor:
    """Subtract the maximum over the axes `axis`, so that exponentials cannot overflow."""
    return x - stop_gradient(reduce_max(x, axis, True))


@op(name="softmax", dtypes=FLOATING)
def softmax_along(input: Tensor, axis: Axis):
    """Composite op: exp(x) / sum(exp(x)) along one axis, a non-negative int."""
    if input.size == 0:
        return identity(input)
    e = exp(_shifted(widened(input), (axis,)))
    return _back(e / reduce_sum(e, (axis,), True), input)


@softmax_along.infer
def _(x, axis):
    return x


@softmax_along.bprop
def _(x, out, dout, axis):
    return (softmax_grad(out, dout, axis),)


@op(dtypes=FLOATING)
def softmax_grad(out: Tensor, dout: Tensor, axis: Axis):
    """Composite op: gradient of softmax from its result `out`: out * (dout - sum(out * dout))."""
    y, dy = widened(out), widened(dout)
    return _back(y * (dy - reduce_sum(y * dy, (axis,), True)), out)


def _same_types(out, dout, axis):
    if dout.plain is not out.plain:
        raise ShapeError(
            f"softmax: got a gradient of {dout.plain} for a result of {out.plain}; wanted the same"
        )
    return out


softmax_grad.infer(_same_types)


@op(name="log_softmax", dtypes=FLOATING)
def log_softmax_along(input: Tensor, axis: Axis):
    """Composite op: x - log(sum(exp(x))) along one axis, a non-negative int."""
    if input.size == 0:
        return identity(input)
    x = _shifted(widened(input), (axis,))
    return _back(x - log(reduce_sum(exp(x), (axis,), True)), input)


@log_softmax_along.infer
def _(x, axis):
    return x


@log_softmax_along.bprop
def _(x, out, dout, axis):
    return (log_softmax_grad(out, dout, axis),)


@op(dtypes=FLOATING)
def log_softmax_grad(out: Tensor, dout: Tensor, axis: Axis):
    """Composite op: gradient of log_softmax from its result `out`: dout - exp(out) * sum(dout)."""
    y, dy = widened(out), widened(dout)
    return _back(dy - exp(y) * reduce_sum(dy, (axis,), True), out)


log_softmax_grad.infer(_same_types)


def _floating(name: str, x: object, dtype: DTypeLike | None) -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{name}: got {type(x).__name__} for the input; wanted a Tensor")
    if dtype is not None:
        target = as_dtype(dtype)
        return x if x.dtype is target else cast_to(x, target)
    if not x.dtype.is_floating:
        raise DTypeError(
            f"{name}: input has dtype {x.dtype.name}; wanted one of float16, bfloat16, float32, "
            f"float64 (dtype=... casts it first)"
        )
    return x


@primitive("Softmax(axis=-1)(logits)", op="softmax")
@cached_call
def softmax(
    input: Tensor, axis: int | Sequence[int] = -1, *, dtype: DTypeLike | None = None, **dim: object
) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis (`mindspore.ops.softmax`).

    Args:
        input: Tensor of any shape, floating.
        axis: int; or a tuple of ints, whose axes are treated as one. Also spelled `dim`.
        dtype: floating dtype to which `input` is cast first.

    Returns:
        Tensor of the shape of `input`. The largest element is subtracted first, so nothing
        overflows.

    Raises:
        TypeError: `input` is not floating.
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.softmax(ms.Tensor([0.0, 0.0])))
        [0.5 0.5]
    """
    if dim:
        axis, _ = spelled("softmax", None, False, dim)
    return _along("softmax", softmax_along, _floating("softmax", input, dtype), axis)


@tensor_method("softmax")
@cached_call
def _tensor_softmax(
    self: Tensor,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    **dim: object,
) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis, which must be given; see `ops.softmax`."""
    if axis is None and not dim:
        raise ArgumentError("softmax: got no axis; wanted an int")
    return softmax(self, -1 if axis is None else axis, dtype=dtype, **dim)


def _along(name: str, run: Op, x: Tensor, axis: int | Sequence[int]) -> Tensor:
    if isinstance(axis, (tuple, list)) and len(axis) != 1:
        axes = axes_of(name, axis, x.ndim)
        rest = [i for i in range(x.ndim) if i not in axes]
        order = (*rest, *axes)
        moved = transpose_by(x, order)
        flat = reshape_to(
            moved, (*[x.shape[i] for i in rest], int(np.prod([x.shape[i] for i in axes])))
        )
        out = reshape_to(run(flat, len(rest)), moved.shape)
        return transpose_by(out, tuple(order.index(i) for i in range(x.ndim)))
    if x.ndim == 0:
        axis_of(name, axis, 0)
        return reshape_to(run(reshape_to(x, (1,)), 0), ())
    return run(x, axis_of(name, axis, x.ndim))


@primitive("LogSoftmax(axis=-1)(logits)", op="log_softmax")
@tensor_method("log_softmax")
@cached_call
def log_softmax(
    logits: Tensor, axis: int | Sequence[int] = -1, *, dtype: DTypeLike | None = None, **dim: object
) -> Tensor:
    """Return the logarithm of softmax along an axis (`mindspore.ops.log_softmax`).

    Args:
        logits: Tensor of any shape, floating.
        axis: int. Also spelled `dim`.
        dtype: floating dtype to which `logits` is cast first.

    Returns:
        Tensor of the shape of `logits`; exact where softmax itself would underflow.

    Raises:
        TypeError: `logits` is not floating.
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.log_softmax(ms.Tensor([0.0, 0.0])))
        [-0.6931472 -0.6931472]
    """
    if dim:
        axis, _ = spelled("log_softmax", None, False, dim)
    return _along("log_softmax", log_softmax_along, _floating("log_softmax", logits, dtype), axis)


@cached_call
def softmin(x: Tensor, axis: int | Sequence[int] = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return the softmax of -x (`mindspore.ops.softmin`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.softmin(ms.Tensor([1.0, 1.0])))
        [0.5 0.5]
    """
    return softmax(neg(_floating("softmin", x, dtype)), axis)


@op(method="logsumexp", dtypes=FLOATING)
def logsumexp(input: Tensor, axis: Axes, keepdims: bool):
    """Return log(sum(exp(x))) over axes, without overflow (`mindspore.ops.logsumexp`).

    Args:
        input: Tensor of any shape, floating; integers are converted to float32.
        axis: int or tuple of ints; () means all. Also spelled `dim`.
        keep_dims: whether to keep the reduced axes, with size 1. Also spelled `keepdim`.

    Returns:
        Tensor with the axes removed.

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.logsumexp(ms.Tensor([0.0, 0.0, 1000.0]), 0))
        1000.0
    """
    x = widened(input)
    if 0 in [x.shape[i] for i in axis]:
        return _back(log(reduce_sum(x, axis, keepdims)), input)
    top = reduce_max(x, axis, True)
    # an infinite maximum would give inf - inf
    top = stop_gradient(select_by(isfinite(top), top, fill((), 0.0, top.dtype)))
    total = reduce_sum(exp(x - top), axis, True)
    out = _back(log(total) + top, input)
    return (
        out
        if keepdims
        else reshape_to(out, tuple(n for i, n in enumerate(x.shape) if i not in axis))
    )


@logsumexp.normaliser
def _(
    input: Tensor, axis: int | Sequence[int] | None = None, keep_dims: object = False, **dim: object
):
    axis, keep_dims = spelled("logsumexp", axis, keep_dims, dim)
    x = cast_to(input, float32) if input.dtype.kind in "biu" else input
    return (x, axes_of("logsumexp", axis, x.ndim), keep_dims)


@logsumexp.bprop
def _(x, out, dout, axis, keepdims):
    full = broadcast_reduced(out, x.shape, axis, keepdims)
    weight = exp(widened(x) - widened(full))
    # an infinite result: elements equal to it have weight 1
    same = logical_and(equal(x, full), isinf(x))
    weight = select_by(same, fill((), 1.0, weight.dtype), weight)
    return (_back(weight * broadcast_reduced(dout, x.shape, axis, keepdims), x),)
