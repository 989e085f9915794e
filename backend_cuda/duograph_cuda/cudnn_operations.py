"""Convolutions and attention as calls of cuDNN's graph (`cudnn.Operation`).

An entry of `OPERATIONS` returns None for what cuDNN cannot compute, or not as the op is defined;
then our own kernels do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from duograph.backend.attention_layouts import AXES
from duograph.backend.grid.strides import dense
from duograph.dtype import bfloat16, float16, float32
from duograph.types import TensorType

from .cudnn import TYPES, Buffer, Operation
from .products import uses_tf32

__all__ = ["OPERATIONS"]

# The sum of a result must not depend on the order of threads, on the bits that an intermediate
# result was rounded to, or on elements outside of its window, which may be infinite.
FORBIDDEN = (
    "NONDETERMINISTIC",
    "REDUCED_PRECISION_REDUCTION",
    "FFT",
    "WINOGRAD_TILE_6x6",
    "WINOGRAD_TILE_13x13",
)
# Forbidden too if float32 must keep its 24 bits.
ROUNDING = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")

Types = Sequence[Any]


def _image(place: int, type_: TensorType) -> Buffer:
    """Describe images or weights to cuDNN, which knows two or three spatial axes."""
    first, second, *spatial = type_.shape
    shape = (first, second, *[1] * (2 - len(spatial)), *spatial)
    return Buffer(place, type_.dtype, shape, tuple(dense(shape)))


def _convolution(
    method: str,
    names: tuple[str, str],
    types: Types,
    results: Types,
    *,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
    **_: Any,
) -> Operation | None:
    tensors = (*types, *results)
    dtype = tensors[0].dtype
    if dtype not in TYPES or not 1 <= len(stride) <= 3 or any(0 in t.shape for t in tensors):
        return None
    more = [0] * (2 - len(stride))  # axes of length 1 before the spatial ones
    ones = [1] * len(more)
    settings = (
        ("pre_padding", (*more, *[low for low, _ in padding])),
        ("post_padding", (*more, *[high for _, high in padding])),
        ("stride", (*ones, *stride)),
        ("dilation", (*ones, *dilation)),
    )
    forbidden = FORBIDDEN if dtype is not float32 or uses_tf32() else FORBIDDEN + ROUNDING
    first, second, result = [_image(k, t) for k, t in enumerate(tensors)]
    operands = ((names[0], first), (names[1], second))
    return Operation(method, operands, (result,), settings, forbidden)


def _conv(types: Types, results: Types, **attributes: Any) -> Operation | None:
    return _convolution("conv_fprop", ("image", "weight"), types, results, **attributes)


def _conv_input_grad(types: Types, results: Types, **attributes: Any) -> Operation | None:
    return _convolution("conv_dgrad", ("loss", "filter"), types, results, **attributes)


def _conv_weight_grad(types: Types, results: Types, **attributes: Any) -> Operation | None:
    return _convolution("conv_wgrad", ("image", "loss"), types, results, **attributes)


def _heads(place: int, type_: TensorType, layout: str) -> Buffer:
    """Describe a query, key, value or result to cuDNN: batch, heads, positions, features."""
    steps, axes = dense(type_.shape), AXES[layout]
    shape = tuple([type_.shape[a] for a in axes])
    return Buffer(place, type_.dtype, shape, tuple([steps[a] for a in axes]))


def _band(queries: int, keys: int, low: int, high: int) -> tuple[tuple[str, Any], ...] | None:
    """Return the settings of cuDNN for keys i + low to i + high of query i, or None.

    None also if a query would see no key: the op defines its result as 0.
    """
    left, right = low > 1 - queries, high < keys - 1
    if (left and low > 0) or (right and high < 0) or (left and queries - 1 + low > keys - 1):
        return None
    settings: list[tuple[str, Any]] = []
    if left or right:
        settings.append(("diagonal_alignment", "diagonal_alignment.TOP_LEFT"))
    if left:
        settings.append(("diagonal_band_left_bound", 1 - low))
    if right:
        settings.append(("diagonal_band_right_bound", high))
    return tuple(settings)


def _attention(
    types: Types, results: Types, *, scale: float, low: int, high: int, layout: str
) -> Operation | None:
    query, key, value, mask, *given = types
    tensors = (query, key, value)
    if query.dtype not in (float16, bfloat16) or mask is not None:
        return None
    if any(0 in t.shape for t in tensors):
        return None
    q, k, v = [_heads(place, t, layout) for place, t in enumerate(tensors)]
    band = _band(q.shape[2], k.shape[2], low, high)
    if band is None:
        return None
    settings = (("attn_scale", scale), *band)
    out_type = given[0] if given else results[0]
    out = _heads(4, out_type, layout)
    rows = (*q.shape[:3], 1)
    log_sum = Buffer(5, float32, rows, tuple(dense(rows)))
    operands: tuple[tuple[str, Buffer], ...] = (("q", q), ("k", k), ("v", v))
    if not given:
        return Operation("sdpa", operands, (out, log_sum), (("generate_stats", True), *settings))
    dout = _heads(6, given[2], layout)
    made = tuple([_heads(7 + k, t, layout) for k, t in enumerate(results)])
    settings += (("use_deterministic_algorithm", True),)
    operands += (("o", out), ("dO", dout), ("stats", log_sum))
    return Operation("sdpa_backward", operands, made, settings)


OPERATIONS: dict[str, Callable[..., Operation | None]] = {
    "conv": _conv,
    "conv_input_grad": _conv_input_grad,
    "conv_weight_grad": _conv_weight_grad,
    "attention": _attention,
    "attention_grad": _attention,
}
