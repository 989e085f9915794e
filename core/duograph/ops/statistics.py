"""Statistics of tensors: variance, standard deviation, median, covariance and correlation.

Users call the functions; `norms` uses `converted` and `as_floating`. Integer inputs become float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..call_cache import cached_call
from ..dtype import FLOATING, DType, float32, int64
from ..errors import ArgumentError, ArgumentValueError, ShapeError
from ..op import op
from ..op_signature import Axes, Axis
from ..sizes import real
from ..tensor import Tensor
from .arguments import number_of, tensor_of
from .axes import axes_of, axis_of, spelled
from .comparison import equal, less
from .creation import cast_to, fill
from .elementwise import maximum
from .gather_scatter import gather_elements_by
from .linalg import matmul_of, widened
from .logic import select_by, shift_right
from .methods import tensor_method
from .powers import sqrt
from .reduction import reduce_mean
from .shape_primitives import reduce_sum, reduced_shape, reshape_to, strided_copy
from .sorting import sort_by

__all__ = [
    "var", "std", "var_mean", "std_mean", "median", "nanmedian", "cov", "corrcoef",
]  # fmt: skip


def converted(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else cast_to(x, dtype)


# ---- variance ------------------------------------------------------------------------------------


@op(dtypes=FLOATING)
def reduce_var(input: Tensor, axis: Axes, keepdims: bool, ddof: int):
    """Composite op: variance over axes, the sum of squared deviations divided by (count - ddof)."""
    x = widened(input)
    count = 1
    for i in axis:
        count *= x.shape[i]
    centred = x - reduce_mean(x, axis, True)
    total = reduce_sum(centred * centred, axis, keepdims)
    return converted(total / real(max(count - ddof, 0)), input.dtype)


def as_floating(x: Tensor) -> Tensor:
    return cast_to(x, float32) if x.dtype.kind in "biu" else x


def _spread_arguments(
    name: str, axis: object, ddof: object, keepdims: object, other: dict[str, object]
) -> tuple[Any, int, bool]:
    """Return (axis, ddof, keepdims) of var or std, from NumPy's or PyTorch's argument names.

    `other` has the further keyword arguments; `dim` or `keepdim` imply ddof 1. `name` is the user's
    function in errors.
    """
    if "correction" in other:
        ddof = other.pop("correction")
        if isinstance(ddof, bool):
            raise ArgumentError(f"{name}: got correction={ddof!r}; wanted an int")
    elif "dim" in other or "keepdim" in other:
        ddof = 1
    if isinstance(ddof, bool):  # torch's older order (dim, unbiased, keepdim)
        ddof = int(ddof)
    if not isinstance(ddof, int):
        raise ArgumentError(f"{name}: got ddof={ddof!r}; wanted an int")
    axis, keepdims = spelled(name, axis, keepdims, other)
    return axis, ddof, keepdims


@tensor_method("var")
@cached_call
def var(
    input: Tensor,
    axis: int | Sequence[int] | None = None,
    ddof: int = 0,
    keepdims: object = False,
    **dim: object,
) -> Tensor:
    """Return the variance over axes (`mindspore.ops.var`).

    Args:
        input: Tensor of any shape; integers are converted to float32.
        axis: int or tuple of ints; None and () mean all.
        ddof: number that is subtracted from the count in the divisor.
        keepdims: whether to keep the reduced axes, with size 1.

    The newer form `(dim=None, *, correction=1, keepdim=False)` divides by count - correction.

    Returns:
        Tensor with the axes removed.

    Raises:
        ValueError: an axis out of range, or named twice.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([1.0, 3.0])
        >>> print(x.var(), x.var(ddof=1), x.var(dim=0))
        1.0 2.0 2.0
    """
    axis, ddof, keepdims = _spread_arguments("var", axis, ddof, keepdims, dim)
    x = as_floating(input)
    return reduce_var(x, axes_of("var", axis, x.ndim), keepdims, ddof)


@tensor_method("std")
@cached_call
def std(
    input: Tensor,
    axis: int | Sequence[int] | None = None,
    ddof: int = 0,
    keepdims: object = False,
    **dim: object,
) -> Tensor:
    """Return the standard deviation over axes (`mindspore.ops.std`).

    Args:
        input, axis, ddof, keepdims: the arguments of `var`, in both forms.

    Returns:
        Tensor with the axes removed.

    Raises:
        ValueError: an axis out of range, or named twice.

    Examples:
        >>> import duograph as ms
        >>> print(ms.Tensor([1.0, 3.0]).std())
        1.0
    """
    axis, ddof, keepdims = _spread_arguments("std", axis, ddof, keepdims, dim)
    x = as_floating(input)
    return sqrt(reduce_var(x, axes_of("std", axis, x.ndim), keepdims, ddof))


@cached_call
def var_mean(
    input: Tensor, axis: int | Sequence[int] | None = None, ddof: int = 0, keepdims: object = False
) -> tuple[Tensor, Tensor]:
    """Return the variance and mean over axes (`mindspore.ops.var_mean`).

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.var_mean(ms.Tensor([1.0, 3.0])))
        1.0 2.0
    """
    x = as_floating(input)
    axes = axes_of("var_mean", axis, x.ndim)
    return var(x, axes, int(number_of("var_mean", "ddof", ddof)), keepdims), reduce_mean(
        x, axes, bool(keepdims)
    )


@cached_call
def std_mean(
    input: Tensor, axis: int | Sequence[int] | None = None, ddof: int = 0, keepdims: object = False
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and mean over axes (`mindspore.ops.std_mean`).

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.std_mean(ms.Tensor([1.0, 3.0])))
        1.0 2.0
    """
    x = as_floating(input)
    axes = axes_of("std_mean", axis, x.ndim)
    return std(x, axes, int(number_of("std_mean", "ddof", ddof)), keepdims), reduce_mean(
        x, axes, bool(keepdims)
    )


# ---- order statistics ----------------------------------------------------------------------------


@op(name="median", differentiable=True)
def median_along(input: Tensor, axis: Axis, keepdims: bool, ignore_nan: bool):
    """Composite op: median along an axis, and its index; returns (values, indices).

    Of an even number of elements, the smaller of the two middle ones is the median. The median is
    NaN if an element is NaN; with `ignore_nan`, NaN elements are left out instead.
    """
    x = input
    n = x.shape[axis]
    kept = reduced_shape(x.shape, (axis,), True)
    _, order = sort_by(x, axis, False)
    middle = fill(kept, (n - 1) // 2, int64)
    if x.dtype.is_floating:
        ordered = cast_to(equal(x, x), int64)
        count = reduce_sum(ordered, (axis,), True)
        if ignore_nan:
            whole = shift_right(maximum(count - 1, fill((), 0, int64)), fill((), 1, int64))
            middle = whole
        else:  # NaN is sorted last: the first NaN follows the numbers
            some = less(count, fill((), n, int64))
            middle = select_by(some, count, middle)
    index = gather_elements_by(order, middle, axis)
    values = gather_elements_by(x, index, axis)
    if keepdims:
        return values, index
    shape = reduced_shape(x.shape, (axis,), False)
    return reshape_to(values, shape), reshape_to(index, shape)


def _median(
    name: str, input: Tensor, axis: int, keepdims: object, ignore_nan: bool
) -> tuple[Tensor, Tensor]:
    if 0 in input.shape:
        raise ArgumentValueError(
            f"{name}: got a tensor of shape {input.shape}; wanted at least one element"
        )
    x = reshape_to(input, (1,)) if input.ndim == 0 else input
    values, index = median_along(x, axis_of(name, axis, x.ndim), bool(keepdims), ignore_nan)
    if input.ndim == 0:
        return reshape_to(values, ()), reshape_to(index, ())
    return values, index


@tensor_method("median")
@cached_call
def median(
    input: Tensor, axis: int = -1, keepdims: object = False, **dim: Any
) -> tuple[Tensor, Tensor]:
    """Return the middle element along an axis, the lower of two, and its index
    (`mindspore.ops.median`).

    Args:
        input: Tensor of any shape; any dtype but complex.
        axis: int. Also spelled `dim`.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        (values, int64 indices). The median of elements with a NaN is NaN.

    Raises:
        ValueError: there are no elements; an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.median(ms.Tensor([5.0, 1.0, 3.0, 4.0])))
        3.0 2
    """
    if dim:
        given = dim.pop("dim", None)
        axis = axis if given is None else given
        _, keepdims = spelled("median", None, keepdims, dim)
    return _median("median", input, axis, keepdims, False)


@tensor_method("nanmedian")
@cached_call
def nanmedian(input: Tensor, axis: int = -1, keepdims: object = False) -> tuple[Tensor, Tensor]:
    """Return the median of the elements that are not NaN, and its index
    (`mindspore.ops.nanmedian`).

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.nanmedian(ms.Tensor([5.0, float("nan"), 3.0])))
        3.0 2
    """
    return _median("nanmedian", input, axis, keepdims, True)


@tensor_method("cov")
@cached_call
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Return the covariance matrix of variables whose samples are in rows (`mindspore.ops.cov`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cov(ms.Tensor([[0.0, 2.0], [2.0, 0.0]])))
        [[ 2. -2.]
         [-2.  2.]]
    """
    if input.ndim > 2:
        raise ShapeError(f"cov: got input of shape {input.shape}; wanted at most two axes")
    x = as_floating(input)
    single = x.ndim < 2
    x = reshape_to(x, (1, x.size)) if single else x
    weight = None
    for w in (fweights, aweights):
        if w is not None:
            w = converted(tensor_of("cov", "a weight", w), x.dtype)
            weight = w if weight is None else weight * w
    if weight is None:
        total: float | Tensor = float(x.shape[1])
        mean = reduce_mean(x, (1,), True)
        centred = x - mean
        scaled = centred
        divisor: float | Tensor = max(total - correction, 0.0)
    else:
        total = reduce_sum(weight, (0,), False)
        mean = reduce_sum(x * weight, (1,), True) / total
        centred = x - mean
        scaled = centred * weight
        share = (
            total
            if aweights is None
            else reduce_sum(weight * converted(aweights, x.dtype), (0,), False) / total
        )
        divisor = total - correction * (1.0 if aweights is None else share)
    found = matmul_of(scaled, centred, False, True) / divisor
    return reshape_to(found, ()) if single else found


@tensor_method("corrcoef")
@cached_call
def corrcoef(input: Tensor) -> Tensor:
    """Return the correlation matrix of variables whose samples are in rows
    (`mindspore.ops.corrcoef`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.corrcoef(ms.Tensor([[0.0, 2.0], [2.0, 0.0]])).round(decimals=3))
        [[ 1. -1.]
         [-1.  1.]]
    """
    found = cov(input)
    if found.ndim == 0:
        return found / found
    n = found.shape[0]
    size = sqrt(strided_copy(found, (n,), (n + 1,), 0))
    return found / reshape_to(size, (n, 1)) / size
