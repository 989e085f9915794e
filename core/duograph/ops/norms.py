"""Norms of vectors and matrices, clipping by norm, and distances.

Users, losses and optimizers call these functions. The gradient of a 2-norm that is 0 must be 0, not
NaN, because gradients and parameters are often zero at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..call_cache import cached_call
from ..dtype import FLOATING, DTypeLike, as_dtype, bool_, float32, float64
from ..errors import ArgumentValueError, NonFiniteError, ShapeError
from ..op import op
from ..op_signature import Axes, Axis
from ..tensor import Tensor
from ..types import broadcast_shapes
from . import elementwise, powers
from .arguments import number_of, tensors_of
from .axes import axes_of, axis_of, spelled
from .comparison import equal, isfinite, less
from .creation import cast_to, fill
from .elementwise import maximum, minimum
from .linalg import widened
from .logic import select_by
from .matrix_svd import singular_values
from .methods import tensor_method
from .movement import concat_by
from .powers import rsqrt, sqrt
from .reduction import reduce_max, reduce_min
from .shape_primitives import broadcast_to, reduce_sum, reduced_shape, reshape_to, transpose_by
from .statistics import as_floating, converted

__all__ = [
    "norm", "vector_norm", "renorm", "clip_by_norm", "clip_by_global_norm", "cosine_similarity",
    "cdist", "pairwise_distance",
]  # fmt: skip


@op(name="norm2", dtypes=FLOATING)
def norm2(input: Tensor, axis: Axes, keepdims: bool):
    """Composite op: 2-norm over axes, sqrt(sum(x^2)), whose gradient at 0 is 0."""
    x = widened(input)
    return converted(sqrt(reduce_sum(x * x, axis, keepdims)), input.dtype)


@norm2.bprop
def _(x, out, dout, axis, keepdims):
    if not keepdims:
        kept = reduced_shape(x.shape, axis, True)
        out, dout = reshape_to(out, kept), reshape_to(dout, kept)
    zero = equal(out, fill((), 0, out.dtype))
    safe = select_by(zero, fill((), 1, out.dtype), out)
    return (x * select_by(zero, fill((), 0, out.dtype), dout / safe),)


@op(dtypes=FLOATING)
def vector_norm(input: Tensor, p: float, axis: Axes, keepdims: bool):
    """Return the p-norm of the elements along axes (`mindspore.ops.vector_norm`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.vector_norm(ms.Tensor([3.0, 4.0])))
        5.0
    """
    x = widened(input)
    if p == 2.0:
        found = norm2(x, axis, keepdims)
    elif p == float("inf"):
        found = reduce_max(elementwise.abs(x), axis, keepdims)
    elif p == float("-inf"):
        found = reduce_min(elementwise.abs(x), axis, keepdims)
    elif p == 0.0:
        found = reduce_sum(cast_to(cast_to(x, bool_), x.dtype), axis, keepdims)
    elif p == 1.0:
        found = reduce_sum(elementwise.abs(x), axis, keepdims)
    else:
        found = powers.pow(reduce_sum(powers.pow(elementwise.abs(x), p), axis, keepdims), 1.0 / p)
    return converted(found, input.dtype)


@vector_norm.normaliser
def _(
    x: Tensor,
    ord: int | float | str | None = 2,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
):
    x = as_floating(x) if dtype is None else converted(x, as_dtype(dtype))
    return (
        x,
        number_of("vector_norm", "ord", ord),
        axes_of("vector_norm", axis, x.ndim),
        bool(keepdims),
    )


def _matrix_norm(
    x: Tensor, ord: int | float | str, axes: tuple[int, int], keepdims: bool
) -> Tensor:
    row, column = axes
    if ord == "fro":
        return norm2(x, tuple(sorted(axes)), keepdims)
    if ord in ("nuc", 2, -2):
        order = (*[i for i in range(x.ndim) if i not in axes], row, column)
        values = singular_values(transpose_by(x, order))
        last = (values.ndim - 1,)
        if ord == "nuc":
            out = reduce_sum(values, last, False)
        else:
            out = reduce_max(values, last, False) if ord == 2 else reduce_min(values, last, False)
        return reshape_to(out, reduced_shape(x.shape, axes, True)) if keepdims else out
    if ord in (1, -1, float("inf"), float("-inf")):
        first, second = (row, column) if abs(ord) == 1 else (column, row)
        sums = reduce_sum(elementwise.abs(x), (first,), True)
        reduce = reduce_max if ord > 0 else reduce_min
        out = reduce(sums, (second,), True)
        return out if keepdims else reshape_to(out, reduced_shape(x.shape, axes, False))
    raise ArgumentValueError(
        f"norm: got ord={ord!r} for a matrix; wanted 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
    )


@tensor_method("norm")
@cached_call
def norm(
    A: Tensor,
    ord: int | float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: object = False,
    *,
    dtype: DTypeLike | None = None,
    **axis: object,
) -> Tensor:
    """Return the norm of vectors or matrices (`mindspore.ops.norm`).

    Args:
        A: Tensor; integers are converted to float32.
        ord: None is the 2-norm of all elements along `dim`. A number is the degree of a vector norm
            if `dim` is an int (or A has one axis), of a matrix norm if `dim` is a pair (or A has
            two axes). ``"fro"`` and ``"nuc"`` are norms of matrices.
        dim: int or tuple of ints; None means all. Also spelled `axis`.
        keepdim: whether to keep the reduced axes, with size 1.
        dtype: dtype to which A is cast first.

    Returns:
        Tensor with the axes removed.

    Raises:
        ValueError: an axis out of range; a norm that does not exist for matrices.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.norm(ms.Tensor([[3.0, 4.0]])))
        5.0
    """
    dim, keepdim = spelled("norm", dim, keepdim, axis)
    x = as_floating(A) if dtype is None else converted(A, as_dtype(dtype))
    if ord is None:
        return vector_norm(x, 2.0, axes_of("norm", dim, x.ndim), keepdim)
    if dim is None:
        if x.ndim > 2 or (x.ndim != 2 and isinstance(ord, str)):
            raise ShapeError(
                f"norm: got A of shape {x.shape} with ord={ord!r} and no dim; wanted one or two "
                "axes, or dim"
            )
        dim = tuple(range(x.ndim))
    if isinstance(dim, (tuple, list)) and len(dim) == 2:
        axes = (axis_of("norm", dim[0], x.ndim), axis_of("norm", dim[1], x.ndim))
        if axes[0] == axes[1]:
            raise ArgumentValueError(f"norm: got dim={dim!r}, which names an axis twice")
        return _matrix_norm(x, ord, axes, keepdim)
    if isinstance(ord, str):
        raise ArgumentValueError(
            f"norm: got ord={ord!r} for vectors along {dim!r}; wanted a number, or a pair of axes"
        )
    return vector_norm(
        x, number_of("vector_norm", "ord", ord), axes_of("norm", dim, x.ndim), keepdim
    )


@op(name="clip_by_norm", dtypes=FLOATING)
def clip_by_norm_of(x: Tensor, clip_norm: Tensor, axis: Axes):
    """Composite op: scale `x` so that its 2-norm along axes is at most `clip_norm`."""
    total = norm2(widened(x), axis, True)
    bound = converted(clip_norm, total.dtype)
    larger = maximum(total, bound)
    return converted(widened(x) * (bound / larger), x.dtype)


def clip_by_norm(
    x: Any, max_norm: int | float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Any:
    """Scale tensors so that the norm of all of them together is at most `max_norm`
    (`mindspore.ops.clip_by_norm`).

    Args:
        x: Tensor, or tuple or list of them.
        max_norm: number.
        norm_type: degree of the norm.
        error_if_nonfinite: whether to raise an error if the norm is not finite.

    Returns:
        Tensor, tuple or list of the form of `x`.

    Raises:
        RuntimeError: the norm is not finite, and `error_if_nonfinite` is True.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.clip_by_norm(ms.Tensor([3.0, 4.0]), 1.0).round(decimals=4))
        [0.6 0.8]
    """
    single = isinstance(x, Tensor)
    tensors = (x,) if single else tensors_of("clip_by_norm", "x", x)
    norms = [vector_norm.public(t, norm_type, tuple(range(t.ndim))) for t in tensors]
    total = vector_norm.public(concat_by([reshape_to(n, (1,)) for n in norms], 0), norm_type)
    if error_if_nonfinite and not bool(isfinite(total)):
        raise NonFiniteError(
            "clip_by_norm: got tensors whose norm is not finite; error_if_nonfinite=False lets "
            "it pass"
        )
    scale = minimum(max_norm / (total + 1e-6), fill((), 1.0, total.dtype))
    clipped = [converted(t * converted(scale, t.dtype), t.dtype) for t in tensors]
    if single:
        return clipped[0]
    return type(x)(*clipped) if hasattr(x, "_fields") else type(x)(clipped)  # a namedtuple stays


@op(name="clip_by_global_norm")
def clip_by_global_norm_of(x: Sequence[Tensor], clip_norm: float, use_norm: float | None):
    """Composite op: multiply all tensors by clip_norm / max(their common 2-norm, clip_norm).

    `use_norm` is the common norm, or None to compute it.
    """
    total = None
    common = float64 if any(t.dtype is float64 for t in x) else float32
    for t in x:
        wide = widened(t)
        part = converted(reduce_sum(wide * wide, tuple(range(t.ndim)), False), common)
        total = part if total is None else total + part
    assert total is not None  # x has at least one tensor
    size = sqrt(total) if use_norm is None else fill((), use_norm, total.dtype)
    scale = clip_norm / maximum(size, fill((), clip_norm, size.dtype))
    return tuple(converted(widened(t) * converted(scale, widened(t).dtype), t.dtype) for t in x)


def clip_by_global_norm(
    x: Tensor | Sequence[Tensor], clip_norm: float = 1.0, use_norm: int | float | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Scale tensors so that their common 2-norm is at most `clip_norm`
    (`mindspore.ops.clip_by_global_norm`).

    Args:
        x: tuple or list of Tensors, or one.
        clip_norm: positive number.
        use_norm: the common norm, or None to compute it.

    Returns:
        Tuple of Tensors, or one.

    Raises:
        ValueError: `clip_norm` is not positive.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.clip_by_global_norm((ms.Tensor([3.0]), ms.Tensor([4.0])), 1.0)[1])
        [0.8]
    """
    if isinstance(clip_norm, Tensor):
        clip_norm = clip_norm.item()
    if not clip_norm > 0:
        raise ArgumentValueError(
            f"clip_by_global_norm: got clip_norm={clip_norm}; wanted a positive number"
        )
    if use_norm is not None:
        use_norm = number_of("clip_by_global_norm", "use_norm", use_norm)
    single = isinstance(x, Tensor)
    found = clip_by_global_norm_of(
        (x,) if single else tensors_of("clip_by_global_norm", "x", x), float(clip_norm), use_norm
    )
    found = found if isinstance(found, tuple) else (found,)
    return found[0] if single else found


@tensor_method("renorm")
@cached_call
def renorm(input: Tensor, p: float, axis: int, maxnorm: float) -> Tensor:
    """Scale the slices along an axis so that their p-norms are at most `maxnorm`
    (`mindspore.ops.renorm`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.renorm(ms.Tensor([[3.0, 4.0]]), 2, 0, 1.0).round(decimals=4))
        [[0.6 0.8]]
    """
    axis = axis_of("renorm", axis, input.ndim)
    rest = tuple(i for i in range(input.ndim) if i != axis)
    size = vector_norm(input, float(p), rest, True)
    one = fill((), 1.0, size.dtype)
    return input * select_by(
        less(fill((), float(maxnorm), size.dtype), size), maxnorm / (size + 1e-7), one
    )


@op(dtypes=FLOATING, promote="common")
def cosine_similarity(x1: Tensor, x2: Tensor, axis: Axis, eps: float):
    """Return the cosine of the angle between vectors along an axis
    (`mindspore.ops.cosine_similarity`).

    Args:
        x1, x2: Tensors whose shapes broadcast.
        dim: the axis, which is removed.
        eps: lower bound of the norms.

    Returns:
        Tensor of the broadcast shape without `dim`.

    Raises:
        ValueError: shapes that do not broadcast; an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> x, y = ms.Tensor([[3.0, 4.0]]), ms.Tensor([[6.0, 8.0]])
        >>> print(ms.ops.cosine_similarity(x, y).round(decimals=4))
        [1.]
    """
    x, y = widened(x1), widened(x2)
    tiny = fill((), eps * eps, x.dtype)
    a = rsqrt(maximum(reduce_sum(x * x, (axis,), False), tiny))
    b = rsqrt(maximum(reduce_sum(y * y, (axis,), False), tiny))
    return converted(reduce_sum(x * y, (axis,), False) * a * b, x1.dtype)


@cosine_similarity.normaliser
def _(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8):
    shape = broadcast_shapes(x1.shape, x2.shape)
    if shape is None:
        raise ShapeError(
            f"cosine_similarity: got shapes {x1.shape} and {x2.shape}; wanted ones that broadcast"
        )
    axis = axis_of("cosine_similarity", dim, len(shape))
    x1, x2 = (x if x.shape == shape else broadcast_to(x, shape) for x in (x1, x2))
    return (x1, x2, axis, float(eps))


@cached_call
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-norm distance of every pair of rows (`mindspore.ops.cdist`).

    Args:
        x1: Tensor (..., n, d).
        x2: Tensor (..., m, d); leading axes broadcast.
        p: degree of the norm, non-negative.

    Returns:
        Tensor (..., n, m).

    Raises:
        ValueError: rows of different length; p negative.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cdist(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0], [0.0, 1.0]])))
        [[5. 1.]]
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: got shapes {x1.shape} and {x2.shape}; wanted (..., n, d) and (..., m, d)"
        )
    if p < 0:
        raise ArgumentValueError(f"cdist: got p={p}; wanted 0 or more")
    n, m, d = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    a = reshape_to(x1, (*x1.shape[:-2], n, 1, d))
    b = reshape_to(x2, (*x2.shape[:-2], 1, m, d))
    if broadcast_shapes(a.shape, b.shape) is None:
        raise ShapeError(
            f"cdist: got shapes {x1.shape} and {x2.shape}, whose leading axes do not broadcast"
        )
    diff = a - b
    return vector_norm(diff, float(p), (diff.ndim - 1,), False)


@cached_call
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the p-norm of x1 - x2 + eps along the last axis.

    Examples:
        >>> import duograph as ms
        >>> x, y = ms.Tensor([[3.0, 4.0]]), ms.Tensor([[0.0, 0.0]])
        >>> print(ms.ops.pairwise_distance(x, y).round(decimals=3))
        [5.]
    """
    diff = x1 - x2 + eps
    return vector_norm(diff, float(p), (diff.ndim - 1,), bool(keepdim))
