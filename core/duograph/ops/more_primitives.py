"""Primitive classes of functions of other modules, with MindSpore's names and arguments.

Users construct them; `ops.auto_generate` lists many, such as `AddExt`. Each class calls an existing
function after adapting the arguments. New ops and formulas do not belong here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import DTypeLike, float32, int64, largest_finite
from ..errors import ArgumentValueError, ShapeError
from ..tensor import Tensor
from . import (
    elementwise,
    grid_sampling,
    linalg,
    margin_loss,
    normalization,
    norms,
    reduction_functions,
    scan,
    sorting,
    statistics,
)
from .activation import silu
from .arguments import Axis
from .combinations import clamp
from .creation import cast, cast_to, fill
from .creation_functions import one_hot, zeros_like
from .creation_ranges import arange
from .diagonals import tril
from .division import fmod
from .einstein import einsum
from .extremes import amax
from .gathering import index_select
from .joining import chunk, split, stack
from .movement import concat_by, slice_axis
from .padding import batch_to_space_nd
from .primitive import Primitive, primitive
from .repeating import repeat_interleave
from .scattering import Index, Source, scatter, tensor_scatter_elements
from .shape_primitives import reduce_sum, reshape_to, transpose_by
from .softmax_ops import log_softmax
from .windows import Ints

__all__ = [
    "Einsum", "Median", "OneHotExt", "RmsNorm", "SquareSumAll", "StackExt", "SubAndFilter",
    "rotary_position_embedding", "swiglu", "tensor_muls",
]  # fmt: skip

Number = int | float


# ---- arithmetic and reductions -------------------------------------------------------------------


@primitive("AddExt()(input, other, alpha=1)")
def _add(input: Tensor, other: Tensor | Number, alpha: Number) -> Tensor:
    return elementwise.add(input, other if alpha == 1 else elementwise.mul(other, alpha))


@primitive("SubExt()(input, other, alpha=1)")
def _sub(input: Tensor, other: Tensor | Number, alpha: Number) -> Tensor:
    return elementwise.sub(input, other if alpha == 1 else elementwise.mul(other, alpha))


@primitive("Muls()(input, other)")
def tensor_muls(input: Tensor, other: Number) -> Tensor:
    """Multiply a tensor by a number (`mindspore.ops.tensor_muls`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.tensor_muls(ms.Tensor([1.0, 2.0]), 3))
        [3. 6.]
    """
    return elementwise.mul(input, other)


@primitive("FmodScalar()(input, other)")
def _fmod(input: Tensor, other: Number) -> Tensor:
    found: Tensor = fmod(input, other)
    return found


@primitive("ClampScalar()(input, min=None, max=None)")
def _clamp(input: Tensor, min: Number | None, max: Number | None) -> Tensor:
    found: Tensor = clamp.public(input, min, max)
    return found


@primitive("SumExt()(input, dim=None, keepdim=False, dtype=None)")
def _sum(input: Tensor, dim: Axis, keepdim: bool, dtype: DTypeLike | None) -> Tensor:
    return reduction_functions.sum(input, dim, keepdim, dtype=dtype)


@primitive("MeanExt()(input, dim=None, keepdim=False, dtype=None)")
def _mean(input: Tensor, dim: Axis, keepdim: bool, dtype: DTypeLike | None) -> Tensor:
    return reduction_functions.mean(input if dtype is None else cast(input, dtype), dim, keepdim)


@primitive("CumsumExt()(input, dim, dtype=None)")
def _cumsum(input: Tensor, dim: int, dtype: DTypeLike | None) -> Tensor:
    return scan.cumsum(input, dim, dtype)


@primitive("CumulativeLogsumexp(exclusive=False, reverse=False)(x, axis)")
def _cumulative_logsumexp(
    input: Tensor, axis: Tensor | int, exclusive: bool, reverse: bool
) -> Tensor:
    at = int(axis.item()) if isinstance(axis, Tensor) else axis
    at = at % max(input.ndim, 1)
    x = input.flip((at,)) if reverse else input
    out = scan.logcumsumexp(x, at)
    if exclusive:
        n = out.shape[at]
        edge = [1 if i == at else size for i, size in enumerate(out.shape)]
        lowest = fill(tuple(edge), -largest_finite(out.dtype), out.dtype)
        out = concat_by((lowest, slice_axis(out, at, 0, n - 1)), at)
    return out.flip((at,)) if reverse else out


@primitive("CountNonZero(dims=None)(x)")
def _count_nonzero(input: Tensor, dims: Axis) -> Tensor:
    return reduction_functions.count_nonzero(input, dims)


class SquareSumAll(Primitive):
    """Sums of squares of two tensors: `SquareSumAll()(x, y)`."""

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sums of the squares of all elements of `x` and of `y`, as two 0-d tensors."""
        if x.shape != y.shape:
            raise ShapeError(f"SquareSumAll: got shapes {x.shape} and {y.shape}; wanted the same")
        axes = tuple(range(x.ndim))
        return reduce_sum(x * x, axes, False), reduce_sum(y * y, axes, False)


@primitive("ReduceStd(axis=(), unbiased=True, keep_dims=False)(input_x)")
def _reduce_std(input: Tensor, axis: Axis, unbiased: bool, keep_dims: bool) -> tuple[Tensor, ...]:
    dims = None if isinstance(axis, (tuple, list)) and not axis else axis
    found = statistics.std_mean(input, dims, int(unbiased), keep_dims)
    return found[0], found[1]


class Median(Primitive):
    """Median: `Median(global_median=False, axis=0, keep_dims=False, ignore_nan=False)(x)`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.Median(axis=1)(ms.Tensor([[1.0, 5.0, 3.0]]))[0])
        [3.]
    """

    def __init__(
        self,
        global_median: bool = False,
        axis: int = 0,
        keep_dims: bool = False,
        ignore_nan: bool = False,
    ) -> None:
        super().__init__()
        self.global_median, self.axis = global_median, axis
        self.keep_dims, self.ignore_nan = keep_dims, ignore_nan

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (median along an axis, its index); of two middle elements, the lower one is taken.

        With `global_median`, the median is that of all elements, and the index is 0.
        """
        function = statistics.nanmedian if self.ignore_nan else statistics.median
        if self.global_median:
            return function(reshape_to(x, (x.size,)), 0)[0], fill((), 0, int64)
        found = function(x, self.axis, self.keep_dims)
        return found[0], found[1]


@primitive("NthElement(reverse=False)(input, n)")
def _nth_element(input: Tensor, n: Tensor | int, reverse: bool) -> Tensor:
    at = int(n.item()) if isinstance(n, Tensor) else n
    size = input.shape[-1] if input.ndim else 0
    if not 0 <= at < size:
        raise ArgumentValueError(f"NthElement: got n={at} for {size} elements")
    ordered = sorting.sort(input, -1, reverse)[0]
    return reshape_to(slice_axis(ordered, input.ndim - 1, at, at + 1), input.shape[:-1])


@primitive("Renorm(p, dim, maxnorm)(x)")
def _renorm(input: Tensor, p: Number, dim: int, maxnorm: Number) -> Tensor:
    return norms.renorm(input, p, dim, maxnorm)


# ---- shapes --------------------------------------------------------------------------------------


@primitive("ConjugateTranspose()(x, perm)")
def _conjugate_transpose(input: Tensor, perm: Tensor | Sequence[int]) -> Tensor:
    order = tuple(perm.tolist()) if isinstance(perm, Tensor) else tuple(perm)
    turned = transpose_by(input, tuple(p % max(input.ndim, 1) for p in order))
    return turned.conj() if turned.dtype.is_complex else turned


@primitive("SliceExt()(input, dim, start, end, step)")
def _slice(input: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    index: list[object] = [slice(None)] * input.ndim
    index[dim] = slice(start, end, step)
    return input[tuple(index)]


@primitive("SplitWithSize()(input, split_size, dim=0)")
def _split_with_size(input: Tensor, split_size: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    return split(input, tuple(split_size), dim)


@primitive("Chunk()(input, chunks, dim=0)")
def _chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    return chunk(input, chunks, dim)


@primitive("IndexSelect()(input, dim, index)")
def _index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    return index_select(input, dim, index)


@primitive(
    "RepeatInterleaveInt()(input, repeats, dim=None, output_size=None)",
    "RepeatInterleaveTensor()(input, repeats, dim=None, output_size=None)",
)
def _repeat(input: Tensor, repeats: Index, dim: int | None, output_size: int | None) -> Tensor:
    out = repeat_interleave(input, repeats, dim)
    at = 0 if dim is None else dim
    if output_size is not None and out.shape[at] != output_size:
        raise ArgumentValueError(
            f"RepeatInterleave: got output_size={output_size}; the result has {out.shape[at]}"
        )
    return out


@primitive("Scatter()(input, dim, index, src, reduce='none')")
def _scatter(input: Tensor, dim: int, index: Tensor, src: Source, reduce: str) -> Tensor:
    if reduce not in ("none", "add"):
        raise ArgumentValueError(f"Scatter: got reduce={reduce!r}; wanted 'none' or 'add'")
    if reduce == "add":
        return tensor_scatter_elements(input, index, src, dim, "add")
    return scatter(input, dim, index, src)


@primitive("TrilExt()(input, diagonal=0)")
def _tril(input: Tensor, diagonal: int) -> Tensor:
    return tril(input, diagonal)


@primitive("Arange()(start, end, step, dtype=None)")
def _arange(start: Number, end: Number, step: Number, dtype: DTypeLike | None) -> Tensor:
    return arange(start, end, step, dtype=dtype)


@primitive("ZerosLikeExt()(input, dtype=None)")
def _zeros_like(input: Tensor, dtype: DTypeLike | None) -> Tensor:
    return zeros_like(input, dtype=dtype)


@primitive("TopkExt()(input, k, dim=-1, largest=True, sorted=True)")
def _topk(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    found = sorting.topk(input, k, dim, largest, sorted)
    return found[0], found[1]


@primitive("SortExt()(input, dim=-1, descending=False, stable=False)")
def _sort(input: Tensor, dim: int, descending: bool, stable: bool) -> tuple[Tensor, Tensor]:
    del stable  # the order of equal elements is always kept
    found = sorting.sort(input, dim, descending)
    return found[0], found[1]


@primitive("Bucketize(boundaries)(input)")
def _bucketize(input: Tensor, boundaries: Sequence[float]) -> Tensor:
    edges = Tensor(np.array(list(boundaries), np.float32))
    return sorting.searchsorted(edges, cast_to(input, float32), right=True).astype("int32")


@primitive("BatchToSpaceNDV2()(input_x, block_shape, crops)")
def _batch_to_space(input: Tensor, block_shape: Index, crops: Tensor | Sequence[Ints]) -> Tensor:
    sizes = block_shape.tolist() if isinstance(block_shape, Tensor) else block_shape
    cut = crops.tolist() if isinstance(crops, Tensor) else crops
    return batch_to_space_nd(input, sizes, cut)


class StackExt(Primitive):
    """Stacking of tensors along a new axis: `StackExt(dim=0)(tensors)`."""

    def __init__(self, dim: int = 0) -> None:
        super().__init__()
        self.dim = dim

    def __call__(self, tensors: Sequence[Tensor]) -> Tensor:
        """Stack the tensors along a new axis, number `dim` of the constructor."""
        return stack(tensors, self.dim)


class OneHotExt(Primitive):
    """One-hot encoding: `OneHotExt(axis=-1)(tensor, num_classes, on_value, off_value)`."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(
        self, tensor: Tensor, num_classes: int, on_value: Tensor, off_value: Tensor
    ) -> Tensor:
        """Encode class indices as vectors: `on_value` at the index and `off_value` elsewhere.

        The vectors have `num_classes` elements; -1 stands for the largest index plus 1.
        """
        depth = int(amax(tensor).item()) + 1 if num_classes == -1 else num_classes
        return one_hot(tensor, depth, on_value, off_value, self.axis)


class SubAndFilter(Primitive):
    """Subtraction of `offset` that keeps the results in [0, max_num).

    `SubAndFilter()(x, max_num, offset)` runs eagerly only, since the size of the result depends on
    values.

    Examples:
        >>> import duograph as ms
        >>> print(*ms.ops.SubAndFilter()(ms.Tensor([1, 3, 5, 8]), 5, 1))
        [0 2 4] [0 1 2]
    """

    def __call__(self, input_x: Tensor, max_num: int, offset: int) -> tuple[Tensor, Tensor]:
        """Subtract `offset` and keep the elements in [0, max_num).

        Returns (kept differences, their indices in `input_x`).
        """
        moved = input_x.asnumpy() - offset
        places = np.flatnonzero((moved >= 0) & (moved < max_num))
        return Tensor(moved[places]), cast(Tensor(places), input_x.dtype)


# ---- layers and losses ---------------------------------------------------------------------------


class Einsum(Primitive):
    """Einstein summation: `Einsum(equation)(operands)` of a tuple of Tensors; see `ops.einsum`."""

    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def __call__(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return the Einstein summation of `inputs` by the equation of the constructor."""
        return einsum(self.equation, *inputs)


@primitive("Dense()(input, weight, bias=None)")
def _dense(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = linalg.dense(input, weight, bias)
    return found


@primitive("BatchMatMulExt()(input, mat2)")
def _bmm(input: Tensor, mat2: Tensor) -> Tensor:
    return linalg.bmm(input, mat2)


@primitive("Outer()(input, vec2)")
def _outer(input: Tensor, vec2: Tensor) -> Tensor:
    return linalg.outer(input, vec2)


@primitive("SiLU()(input)")
def _silu(input: Tensor) -> Tensor:
    return silu(input)


@primitive("LogSoftmaxExt()(input, dim=None, dtype=None)")
def _log_softmax(input: Tensor, dim: int | None, dtype: DTypeLike | None) -> Tensor:
    x = input if dtype is None else cast(input, dtype)
    at = (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim
    return log_softmax(x, at)


@primitive("Swiglu()(input, dim=-1)")
def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """Multiply silu(first half) by the second half of an axis (`mindspore.ops.swiglu`).

    Args:
        input: Tensor, floating.
        dim: axis of even size.

    Returns:
        Tensor with half of the elements along the axis.

    Raises:
        ValueError: an axis out of range, or of odd size.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.swiglu(ms.Tensor([0.0, 3.0])))
        [0.]
    """
    if not -input.ndim <= dim < input.ndim or input.shape[dim] % 2:
        raise ArgumentValueError(
            f"swiglu: got shape {input.shape} and dim={dim}; wanted an axis of even size"
        )
    axis, n = dim % input.ndim, input.shape[dim]
    return silu(slice_axis(input, axis, 0, n // 2)) * slice_axis(input, axis, n // 2, n)


@primitive("RotaryPositionEmbedding()(x, cos, sin, mode=0)")
def rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor, mode: int = 0) -> Tensor:
    """Rotary position embedding (Su et al., 2021; `mindspore.ops.rotary_position_embedding`).

    Args:
        x: Tensor of four axes; pairs of elements along the last axis are rotated.
        cos, sin: Tensors of the cosines and sines of the angles; they broadcast to `x`.
        mode: which elements of the d along the last axis are a pair: 0: i and i + d/2;
            1: 2i and 2i + 1.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ValueError: a last axis of odd size, or another mode.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[[[1.0, 0.0]]]])
        >>> print(ms.ops.rotary_position_embedding(x, x * 0, x * 0 + 1))
        [[[[0. 1.]]]]
    """
    n = x.shape[-1] if x.ndim else 1
    if n % 2 or mode not in (0, 1):
        raise ArgumentValueError(
            f"rotary_position_embedding: got shape {x.shape} and mode={mode}; wanted a last axis "
            "of even size, and 0 or 1"
        )
    axis = x.ndim - 1
    if mode == 0:
        low, high = slice_axis(x, axis, 0, n // 2), slice_axis(x, axis, n // 2, n)
        turned = concat_by((-high, low), axis)
    else:
        pairs = reshape_to(x, (*x.shape[:-1], n // 2, 2))
        first, second = slice_axis(pairs, axis + 1, 0, 1), slice_axis(pairs, axis + 1, 1, 2)
        turned = reshape_to(concat_by((-second, first), axis + 1), x.shape)
    return x * cos + turned * sin


class RmsNorm(Primitive):
    """Division by the root mean square: `RmsNorm(epsilon=1e-6)(x, gamma)`.

    The result is (normalised tensor, reciprocal of the root mean square).
    """

    def __init__(self, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.epsilon = epsilon

    def __call__(self, x: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
        """Divide by the root mean square over the axes of `gamma` (the last), and scale by `gamma`.

        Returns (result, 1 / root mean square).
        """
        found = normalization.rms_norm(x, gamma, self.epsilon)
        return found[0], found[1]


@primitive("AffineGrid(align_corners=False)(theta, output_size)")
def _affine_grid(theta: Tensor, size: Sequence[int] | Tensor, align_corners: bool) -> Tensor:
    sizes = tuple(size.tolist()) if isinstance(size, Tensor) else size
    return grid_sampling.affine_grid(theta, sizes, align_corners)


@primitive(
    "GridSampler2D(interpolation_mode='bilinear', padding_mode='zeros', align_corners=False)"
    "(input_x, grid)",
    "GridSampler3D(interpolation_mode='bilinear', padding_mode='zeros', align_corners=False)"
    "(input_x, grid)",
)
def _grid_sampler(
    input_x: Tensor, grid: Tensor, interpolation_mode: str, padding_mode: str, align_corners: bool
) -> Tensor:
    found: Tensor = grid_sampling.grid_sample.public(
        input_x, grid, interpolation_mode, padding_mode, align_corners
    )
    return found


@primitive("MultiMarginLoss(p=1, margin=1.0, reduction='mean')(inputs, target, weight)")
def _multi_margin(
    input: Tensor, target: Tensor, weight: Tensor | None, p: int, margin: float, reduction: str
) -> Tensor:
    found: Tensor = margin_loss.multi_margin_loss.public(
        input, target, p, margin, weight, reduction
    )
    return found


@primitive("SoftMarginLoss(reduction='mean')(logits, labels)")
def _soft_margin(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    found: Tensor = margin_loss.soft_margin_loss(input, target, reduction)
    return found
