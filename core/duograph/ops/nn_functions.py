"""Resizing of images (interpolate, upsample, ...) and embedding lookup.

Users and layers call them. Sizes and coordinates that do not depend on the values of tensors are
computed with NumPy when a call is prepared. No function writes to an operand, except `embedding`
with `max_norm`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..call_cache import cached_call
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..host_arrays import Array
from ..op import op
from ..tensor import Tensor
from .adaptive_pooling import adaptive_avg
from .axes import tuple_of
from .comparison import equal
from .creation import cast_to, fill
from .elementwise import minimum
from .gather_scatter import gather, scatter_add_by, scatter_set_by
from .linalg import widened
from .logic import select_by
from .movement import stop_gradient
from .norms import vector_norm
from .primitive import Primitive, primitive
from .shape_primitives import reshape_to
from .state import assign

__all__ = [
    "interpolate",
    "upsample",
    "embedding",
    "ResizeBilinear",
    "ResizeBilinearV2",
    "ResizeNearestNeighbor",
    "ResizeBicubic",
]


_Size: TypeAlias = int | Sequence[int] | Tensor


# ---- resizing -----------------------------------------------------------------------------------


def _sources(n: int, out: int, rule: str, scale: float | None) -> Array:
    """Return the float64 position in the input of each of `out` cells of a resized axis.

    `n` is the input's size. The `rule` "corners" aligns the centres of the outermost cells, "half"
    the outer edges of the axis, "plain" the centres of the first cells. `scale` (output size /
    input size) is used instead of out / n if it is not None; "corners" ignores it.
    """
    i = np.arange(out, dtype=np.float64)
    if rule == "corners":
        return i * ((n - 1) / (out - 1)) if out > 1 else np.zeros(out)
    step = n / out if scale is None else 1.0 / scale
    return (i + 0.5) * step - 0.5 if rule == "half" else i * step


def _taps(
    mode: str, n: int, out: int, rule: str, scale: float | None
) -> list[tuple[Array, Array | None]]:
    """Return the input cells, and their weights, of which each output cell is the weighted sum.

    The result is a list of (indices, weights), both with one item per output cell. The weights are
    None if the output copies a single cell. `mode` is "nearest", "linear" or "cubic"; the other
    parameters are those of `_sources`.
    """
    if mode == "nearest":
        if rule == "corners":  # halves away from zero
            index = np.floor(_sources(n, out, rule, scale) + 0.5).astype(np.int64)
        elif scale is not None:
            offset = 0.5 if rule == "half" else 0.0
            index = np.floor((np.arange(out) + offset) / scale).astype(np.int64)
        elif rule == "half":
            index = (2 * np.arange(out) + 1) * n // (2 * out)
        else:
            index = np.arange(out) * n // out
        return [(np.clip(index, 0, n - 1), None)]
    source = _sources(n, out, rule, scale)
    if mode == "linear":
        source = np.maximum(source, 0.0)
        low = np.minimum(np.floor(source).astype(np.int64), n - 1)
        part = source - low
        return [(low, 1.0 - part), (np.minimum(low + 1, n - 1), part)]
    low = np.floor(source).astype(np.int64)
    t = source - low
    # Keys, 1981. As in MindSpore, the rule "half" uses the constant -0.5 and ignores cells outside
    # the input; the other rules use -0.75 and repeat the edge.
    a = -0.5 if rule == "half" else -0.75

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = [far(t + 1), near(t), near(1 - t), far(2 - t)]
    if rule == "half":
        inside = [(low + k - 1 >= 0) & (low + k - 1 < n) for k in range(4)]
        weights = [np.where(ok, w, 0.0) for ok, w in zip(inside, weights, strict=True)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [w / total for w in weights]
    return [(np.clip(low + k - 1, 0, n - 1), w) for k, w in enumerate(weights)]


@op(name="resize")
def resize_by(
    input: Tensor, size: Sequence[int], mode: str, rule: str, scales: Sequence[float | None]
):
    """Composite op: resample the spatial axes of (N, C, spatial...), one after the other.

    Args:
        size: size of each spatial axis of the result.
        mode: "nearest", "linear" or "cubic".
        rule: alignment of input and output: "corners" (centres of the corner cells coincide),
            "half" (both cover the same area), or "plain" (centres of the first cells coincide).
        scales: magnification of each axis, that is output size / input size; None computes it from
            the two sizes. The rule "corners" ignores it.
    """
    x = widened(input)
    for i, (out, scale) in enumerate(zip(size, scales, strict=True)):
        axis = 2 + i
        n = x.shape[axis]
        if n == out and scale is None and mode != "cubic":
            continue
        total: Tensor | None = None
        for index, weight in _taps(mode, n, out, rule, scale):
            part = gather(x, index, axis)
            if weight is not None:
                tail = (out, *[1] * (x.ndim - 1 - axis))
                part = part * weight.astype(x.dtype.np).reshape(tail)
            total = part if total is None else total + part
        assert total is not None
        x = total
    return x if x.dtype is input.dtype else cast_to(x, input.dtype)


_MODES = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
    "area": (3, 4, 5),
}


@primitive("UpsampleNearest3D()(x, output_size=None, scales=None)", op="resize")
@cached_call
def interpolate(
    input: Tensor,
    size: _Size | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Resample the spatial axes of (N, C, spatial...) (`mindspore.ops.interpolate`).

    Args:
        input: Tensor (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: int or ints: the sizes of the result; or None.
        scale_factor: number or numbers by which the sizes are multiplied; or None.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``,
            ``"bicubic"``, ``"trilinear"``, ``"area"``.
        align_corners: whether the centres of the corner cells coincide; for linear, bilinear,
            bicubic and trilinear.
        recompute_scale_factor: whether coordinates use the exact ratio of the sizes instead of
            `scale_factor`.

    Returns:
        Tensor (N, C, size...).

    Raises:
        ValueError: neither or both of size and scale_factor; a mode that does not exist for the
            number of axes.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.interpolate(ms.Tensor([[[1.0, 2.0]]]), size=4))
        [[[1. 1. 2. 2.]]]
    """
    if not isinstance(input, Tensor):
        raise ArgumentError(
            f"interpolate: got {type(input).__name__} for the input; wanted a Tensor"
        )
    if mode not in _MODES or input.ndim not in _MODES[mode]:
        allowed = [m for m, ndims in _MODES.items() if input.ndim in ndims]
        raise ArgumentValueError(
            f"interpolate: got mode={mode!r} for input of shape {input.shape}; wanted "
            + (f"one of {', '.join(map(repr, allowed))}" if allowed else "three to five axes")
        )
    n = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ArgumentValueError(
            f"interpolate: got size={size!r} and scale_factor={scale_factor!r}; wanted one of them"
        )
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ArgumentValueError(
            f"interpolate: got align_corners={align_corners!r} with mode={mode!r}; wanted None"
        )
    scales: tuple[float | None, ...] = (None,) * n
    if size is not None:
        if recompute_scale_factor:
            raise ArgumentValueError(
                "interpolate: got recompute_scale_factor with size; wanted scale_factor"
            )
        sizes = tuple_of("interpolate", "size", size, n)
    else:
        factors: list[Any] = (
            list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * n
        )
        if len(factors) != n or not all(isinstance(f, (int, float)) and f > 0 for f in factors):
            raise ArgumentValueError(
                f"interpolate: got scale_factor={scale_factor!r}; wanted a positive number, or "
                f"{n} of them"
            )
        sizes = tuple(math.floor(d * f) for d, f in zip(input.shape[2:], factors, strict=True))
        if not recompute_scale_factor:
            scales = tuple(float(f) for f in factors)
    if any(s < 1 for s in sizes) or 0 in input.shape[2:]:
        raise ArgumentValueError(
            f"interpolate: got input of shape {input.shape} and the size {sizes}; wanted "
            f"positive sizes"
        )
    if mode == "area":
        return adaptive_avg(input, sizes)
    if mode == "nearest-exact":
        return resize_by(input, sizes, "nearest", "half", scales)
    kind = {"nearest": "nearest", "bicubic": "cubic"}.get(mode, "linear")
    rule = "plain" if kind == "nearest" else "corners" if align_corners else "half"
    return resize_by(input, sizes, kind, rule, scales)


@cached_call
def upsample(
    input: Tensor,
    size: _Size | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Older name of `interpolate` (`mindspore.ops.upsample`).

    Examples:
        >>> import duograph as ms
        >>> ms.ops.upsample(ms.ops.ones((1, 1, 2, 2)), scale_factor=2.0).shape
        (1, 1, 4, 4)
    """
    return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def _rule(name: str, align_corners: bool, half_pixel_centers: bool) -> str:
    if align_corners and half_pixel_centers:
        raise ArgumentValueError(
            f"{name}: got align_corners=True and half_pixel_centers=True; wanted at most one "
            f"of them"
        )
    return "corners" if align_corners else "half" if half_pixel_centers else "plain"


def _image_size(name: str, x: Tensor, size: _Size) -> tuple[int, ...]:
    if isinstance(size, Tensor):
        size = size.tolist()
    if x.ndim != 4:
        raise ShapeError(f"{name}: got input of shape {x.shape}; wanted (N, C, H, W)")
    sizes = tuple_of(name, "size", size, 2)
    if min(sizes) < 1:
        raise ArgumentValueError(f"{name}: got size={size!r}; wanted sizes of at least 1")
    return sizes


class _Resize(Primitive):
    """Base class of primitives that resize images to the size given in the call.

    `Op(align_corners=False, half_pixel_centers=False)(image, size)`.
    """

    op = resize_by
    _kind = "linear"

    def __init__(self, align_corners: bool = False, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.align_corners = align_corners
        self.half_pixel_centers = half_pixel_centers
        self._coordinates = _rule(self.name, align_corners, half_pixel_centers)

    def __call__(self, image: Tensor, size: _Size) -> Tensor:
        """Return the images (N, C, H, W) resized to `size`, a pair (height, width)."""
        sizes = _image_size(self.name, image, size)
        return resize_by(image, sizes, self._kind, self._coordinates, (None, None))


class ResizeBilinearV2(_Resize):
    """Resizing of images by linear interpolation.

    `ResizeBilinearV2(align_corners=False, half_pixel_centers=False)(image, size)`.

    Examples:
        >>> import duograph as ms
        >>> ms.ops.ResizeBilinearV2()(ms.ops.ones((1, 1, 2, 2)), (3, 3)).shape
        (1, 1, 3, 3)
    """


class ResizeBicubic(_Resize):
    """Resizing of images by cubic interpolation.

    `ResizeBicubic(align_corners=False, half_pixel_centers=False)(images, size)`.
    """

    _kind = "cubic"


class ResizeBilinear(Primitive):
    """Resizing of images by linear interpolation, in the form of MindSpore 1.x.

    `ResizeBilinear(size, align_corners=False, half_pixel_centers=False)(image)`.
    """

    op = resize_by
    _kind = "linear"

    def __init__(
        self, size: _Size, align_corners: bool = False, half_pixel_centers: bool = False
    ) -> None:
        super().__init__()
        self.size = size
        self.align_corners = align_corners
        self.half_pixel_centers = half_pixel_centers
        self._coordinates = _rule(self.name, align_corners, half_pixel_centers)

    def __call__(self, image: Tensor) -> Tensor:
        """Return the image resized to the size given to the constructor."""
        sizes = _image_size(self.name, image, self.size)
        return resize_by(image, sizes, self._kind, self._coordinates, (None, None))


class ResizeNearestNeighbor(ResizeBilinear):
    """Resizing of images by nearest neighbours.

    `ResizeNearestNeighbor(size, align_corners=False, half_pixel_centers=False)(image)`.
    """

    _kind = "nearest"


# ---- embedding ----------------------------------------------------------------------------------


@op()
def embedding(input: Tensor, weight: Tensor, padding_idx: int, by_frequency: bool):
    """Look up rows of a table (`mindspore.ops.embedding`).

    Args:
        input: Tensor of integers, any shape.
        weight: Tensor (rows, size).
        padding_idx: number of a row that gets no gradient; a negative one counts from the end.
        max_norm: the rows that are looked up are scaled, in place, to at most this norm.
        norm_type: degree of that norm.
        scale_grad_by_freq: whether the gradient of a row is divided by its number of lookups.

    Returns:
        Tensor (input.shape..., size).

    Raises:
        TypeError: `input` is not integer.
        ValueError: `weight` does not have two axes; `padding_idx` is out of range.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.embedding(ms.Tensor([1, 0]), ms.Tensor([[1.0, 2.0], [3.0, 4.0]])))
        [[3. 4.]
         [1. 2.]]
    """
    out = gather(weight, input, 0)
    kept = (*input.shape, *[1] * (weight.ndim - 1))
    if padding_idx >= 0:
        hidden = reshape_to(equal(input, fill((), padding_idx, input.dtype)), kept)
        out = select_by(hidden, stop_gradient(out), out)
    if by_frequency:
        flat = reshape_to(input, (input.size,))
        ones = fill((input.size,), 1.0, weight.dtype)
        count = scatter_add_by(fill((weight.shape[0],), 0.0, weight.dtype), flat, ones, 0)
        share = reshape_to(1.0 / gather(count, input, 0), kept)
        out = out * share + stop_gradient(out * (1.0 - share))
    return out


@embedding.normaliser
def _(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
):
    if not input.dtype.is_integer:
        raise DTypeError(f"embedding: input has dtype {input.dtype.name}; wanted an integer one")
    if weight.ndim != 2:
        raise ShapeError(f"embedding: got weight of shape {weight.shape}; wanted (rows, size)")
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ArgumentValueError(
            f"embedding: got padding_idx={padding_idx}; wanted one in [{-rows}, {rows})"
        )
    if max_norm is not None:
        plain = stop_gradient(weight)
        used = gather(plain, reshape_to(input, (input.size,)), 0)
        size = vector_norm(used, float(norm_type), (1,), True)
        scale = minimum(max_norm / (size + 1e-7), fill((), 1.0, size.dtype))
        assign(weight, scatter_set_by(plain, reshape_to(input, (input.size,)), used * scale, 0))
    own = -1 if padding_idx is None else padding_idx % rows
    return (input, weight, own, bool(scale_grad_by_freq))
