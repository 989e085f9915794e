"""Primitive classes of reductions and cumulative ops, such as `ops.ReduceSum(keep_dims)(x, axis)`.

Users construct them. They convert MindSpore's constructor and call arguments to the attributes of
an op, to which kernels and gradients belong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dtype import DType, DTypeLike, as_dtype, bool_, int32, int64
from ..errors import ArgumentError, ArgumentValueError
from ..tensor import Tensor
from . import extremes, reduction, scan
from .axes import axes_of, axis_of
from .creation import cast_to
from .elementwise import maximum
from .movement import identity
from .norms import vector_norm
from .primitive import Primitive

__all__ = [
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAll", "ReduceAny",
    "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "CumSum", "CumProd", "LpNorm",
    "reduce_sum", "reduce_mean", "reduce_max", "reduce_min",
]  # fmt: skip


class _Reduce(Primitive):
    """Base class of the primitives of reductions: `Op(keep_dims=False)(x, axis=())`."""

    def __init__(self, keep_dims: bool = False) -> None:
        super().__init__()
        if not isinstance(keep_dims, bool):
            raise ArgumentError(
                f"{type(self).__name__}: got keep_dims={keep_dims!r}; wanted True or False"
            )
        self.keep_dims = keep_dims

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, object]) -> Primitive:
        """Return the primitive that stands for a call of the op with these attributes.

        A gradient rule that the user registered for the class receives this instance. The op's
        attribute `keepdims` becomes MindSpore's `keep_dims`.
        """
        made = super().from_attributes(attributes)
        made.keep_dims = bool(attributes.get("keepdims", False))  # type: ignore[attr-defined]
        return made

    def __call__(self, x: Tensor, axis: int | Sequence[int] = ()) -> Tensor:
        """Reduce over `axis`, an int or a tuple of ints; () means all axes."""
        assert self.op is not None
        if axis is None:
            raise ArgumentError(f"{self.name}: got axis=None; wanted ints, or () for all axes")
        return self.op(x, axes_of(self.name, axis, x.ndim), self.keep_dims)


class ReduceSum(_Reduce):
    """Sum over axes: `ReduceSum(keep_dims=False, skip_mode=False)(x, axis=())`.

    An `axis` of () means all axes, but with `skip_mode` no axis.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.ReduceSum(keep_dims=True)(ms.Tensor([[1.0, 2.0]]), 1))
        [[3.]]
    """

    op = reduction.reduce_sum

    def __init__(self, keep_dims: bool = False, skip_mode: bool = False) -> None:
        super().__init__(keep_dims)
        self.skip_mode = skip_mode

    def __call__(self, x: Tensor, axis: int | Sequence[int] = ()) -> Tensor:
        """Return the sum over `axis`; () means all axes, or with `skip_mode` none."""
        if self.skip_mode and isinstance(axis, (tuple, list)) and not axis:
            return identity(x)
        if x.dtype is bool_:  # the sum of bools is whether there is one
            return cast_to(super().__call__(cast_to(x, int32), axis), bool_)
        return super().__call__(x, axis)


class ReduceMean(_Reduce):
    """Mean over axes: `ReduceMean(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_mean


class ReduceMax(_Reduce):
    """Largest element over axes: `ReduceMax(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_max


class ReduceMin(_Reduce):
    """Smallest element over axes: `ReduceMin(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_min


class ReduceProd(_Reduce):
    """Product over axes: `ReduceProd(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_prod


class ReduceAll(_Reduce):
    """Logical and over axes: `ReduceAll(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_all


class ReduceAny(_Reduce):
    """Logical or over axes: `ReduceAny(keep_dims=False)(x, axis=())`."""

    op = reduction.reduce_any


class ArgMaxWithValue(Primitive):
    """Index and value of the largest element along an axis.

    `ArgMaxWithValue(axis=0, keep_dims=False)(x)` returns (index, value).

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.ArgMaxWithValue()(ms.Tensor([1.0, 3.0, 2.0])))
        1 3.0
    """

    op = reduction.max_with_index

    def __init__(self, axis: int = 0, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = axis
        self.keep_dims = keep_dims

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (index, value) of the largest element along the constructor's `axis`."""
        value, index = extremes.max(x, self.axis, self.keep_dims)
        return index, value


class ArgMinWithValue(Primitive):
    """Index and value of the smallest element along an axis.

    `ArgMinWithValue(axis=0, keep_dims=False)(x)` returns (index, value).
    """

    op = reduction.min_with_index

    def __init__(self, axis: int = 0, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = axis
        self.keep_dims = keep_dims

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (index, value) of the smallest element along the constructor's `axis`."""
        value, index = extremes.min(x, self.axis, self.keep_dims)
        return index, value


def _index_dtype(name: str, dtype: DType) -> DType:
    """Return the argument `output_type` of the primitive `name`, if it is int32 or int64."""
    if dtype not in (int32, int64):
        raise ArgumentValueError(f"{name}: got output_type={dtype.name}; wanted int32 or int64")
    return dtype


class Argmax(Primitive):
    """Index of the largest element: `Argmax(axis=-1, output_type=int32)(x)`."""

    op = reduction.argmax_along

    def __init__(self, axis: int = -1, output_type: DTypeLike = int32) -> None:
        super().__init__()
        self.axis = axis
        self.output_type = as_dtype(output_type)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the index of the largest element along an axis, which the result does not have.

        The axis and the dtype of the result are `axis` and `output_type` of the constructor.
        """
        return cast_to(extremes.argmax(x, self.axis), _index_dtype(self.name, self.output_type))


class Argmin(Primitive):
    """Index of the smallest element: `Argmin(axis=-1, output_type=int32)(x)`."""

    op = reduction.argmin_along

    def __init__(self, axis: int = -1, output_type: DTypeLike = int32) -> None:
        super().__init__()
        self.axis = axis
        self.output_type = as_dtype(output_type)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the index of the smallest element along an axis, which the result does not have.

        The axis and the dtype of the result are `axis` and `output_type` of the constructor.
        """
        return cast_to(extremes.argmin(x, self.axis), _index_dtype(self.name, self.output_type))


class _Scan(Primitive):
    """Base class of cumulative sum and product: `Op(exclusive=False, reverse=False)(x, axis)`."""

    def __init__(self, exclusive: bool = False, reverse: bool = False) -> None:
        super().__init__()
        self.exclusive = exclusive
        self.reverse = reverse

    def __call__(self, x: Tensor, axis: int) -> Tensor:
        """Return the cumulative sums or products along `axis`.

        With `exclusive`, an element is not part of its own result; with `reverse`, the last element
        comes first.
        """
        assert self.op is not None
        return self.op(x, axis_of(self.name, axis, x.ndim), self.exclusive, self.reverse)


class CumSum(_Scan):
    """Running sum: `CumSum(exclusive=False, reverse=False)(x, axis)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.CumSum(exclusive=True)(ms.Tensor([1.0, 2.0, 3.0]), 0))
        [0. 1. 3.]
    """

    op = scan.scan_sum


class CumProd(_Scan):
    """Running product: `CumProd(exclusive=False, reverse=False)(x, axis)`."""

    op = scan.scan_prod


class LpNorm(Primitive):
    """p-norm over axes, bounded below by `epsilon`.

    `LpNorm(axis, p=2, keep_dims=False, epsilon=1e-12)(x)`.
    """

    def __init__(
        self, axis: int | Sequence[int], p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12
    ) -> None:
        super().__init__()
        self.axis = axis
        self.p = p
        self.keep_dims = keep_dims
        self.epsilon = epsilon

    def __call__(self, x: Tensor) -> Tensor:
        """Return the p-norm of `x` over the axes of the constructor, at least `epsilon`."""
        axes = axes_of("LpNorm", self.axis, x.ndim)
        return maximum(vector_norm(x, float(self.p), axes, self.keep_dims), self.epsilon)


def reduce_sum(x: Tensor, axis: int | Sequence[int] = ()) -> Tensor:
    """Return the sum of a tensor over `axis`; () means all axes (`mindspore.ops.reduce_sum`).

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.reduce_sum(ms.Tensor([1.0, 2.0])))
        3.0
    """
    return _SUM(x, axis)


def reduce_mean(x: Tensor, axis: int | Sequence[int] = ()) -> Tensor:
    """Return the mean of a tensor over `axis`; () means all axes (`mindspore.ops.reduce_mean`).

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.reduce_mean(ms.Tensor([1.0, 2.0])))
        1.5
    """
    return _MEAN(x, axis)


def reduce_max(x: Tensor, axis: int | Sequence[int] = ()) -> Tensor:
    """Return the maximum of a tensor over `axis`; () means all axes (`mindspore.ops.reduce_max`).

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.reduce_max(ms.Tensor([1.0, 2.0])))
        2.0
    """
    return _MAX(x, axis)


def reduce_min(x: Tensor, axis: int | Sequence[int] = ()) -> Tensor:
    """Return the minimum of a tensor over `axis`; () means all axes (`mindspore.ops.reduce_min`).

    Raises:
        ValueError: an axis out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.reduce_min(ms.Tensor([1.0, 2.0])))
        1.0
    """
    return _MIN(x, axis)


_SUM, _MEAN, _MAX, _MIN = ReduceSum(), ReduceMean(), ReduceMax(), ReduceMin()
