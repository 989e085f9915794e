"""Describes convolutions and attention as calls of cuDNN's graph (`cudnn.Operation`).

`Cuda.prepare` looks functions up in `OPERATIONS` by op name. A function returns None if cuDNN
cannot compute a call, or not exactly as the op is defined; our own kernels then compute it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from duograph.backend.grid.strides import dense
from duograph.dtype import DType, bfloat16, float16, float32
from duograph.types import TensorType

from .attention import JOINT, JOINT_GRAD, SEPARATE, SEPARATE_GRAD, Part, packed, separate
from .cudnn import TYPES, Buffer, Operation
from .products import uses_tf32

__all__ = ["CHANNELS_LAST", "CONVOLUTIONS", "OPERATIONS"]

# Results must not depend on the order of threads, be rounded in between, or mix elements that are
# far apart, which may be infinite: an FFT mixes whole images, Winograd's algorithm small tiles.
FORBIDDEN = ("NONDETERMINISTIC", "REDUCED_PRECISION_REDUCTION", "FFT", "WINOGRAD_TILE_13x13")
# Forbidden too if float32 must keep its 24 bits.
ROUNDING = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")

Types = Sequence[TensorType]


def _image(place: int, type_: TensorType, last: bool) -> Buffer:
    """Describe images or weights in buffer number `place` to cuDNN, with two or three spatial axes.

    A tensor with one spatial axis gets a second one of length 1, since cuDNN has no 1-d
    convolutions. `type_` has the channels as axis 1; `last` says whether they are the last axis in
    memory.
    """
    first, second, *spatial = type_.shape
    spatial = [*[1] * (2 - len(spatial)), *spatial]
    steps = dense((first, second, *spatial))
    if last:
        outer, *inner, step = dense((first, *spatial, second))
        steps = [outer, step, *inner]
    return Buffer(place, type_.dtype, (first, second, *spatial), tuple(steps))


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
    last: bool = False,
    **_: object,
) -> Operation | None:
    """Describe a convolution, or a gradient of one, to cuDNN.

    `method` and `names` are those of cuDNN's method and its operands. The types have the channels
    as axis 1; `last` says whether they are the last axis in memory, also that of weights. Returns
    None for dtypes and shapes that cuDNN does not support.
    """
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
    first, second, result = [_image(k, t, last) for k, t in enumerate(tensors)]
    operands = ((names[0], first), (names[1], second))
    return Operation(method, operands, (result,), settings, forbidden)


_conv = functools.partial(_convolution, "conv_fprop", ("image", "weight"))
_conv_input_grad = functools.partial(_convolution, "conv_dgrad", ("loss", "filter"))
_conv_weight_grad = functools.partial(_convolution, "conv_wgrad", ("image", "loss"))


def _buffer(place: int, dtype: DType, part: Part) -> Buffer:
    """Describe to cuDNN a query, key, value or result in buffer number `place`."""
    return Buffer(place, dtype, part.shape, part.steps, part.first)


def _band(queries: int, keys: int, low: int, high: int) -> tuple[tuple[str, object], ...] | None:
    """Return cuDNN's settings for attention in which a query sees only a band of keys.

    Query i sees the keys i + low to i + high, both included; `queries` and `keys` are their
    numbers. Returns None if cuDNN has no such settings, or if some query would see no key: the op
    then defines the result 0, which cuDNN would not compute.
    """
    left, right = low > 1 - queries, high < keys - 1
    if (left and low > 0) or (right and high < 0) or (left and queries - 1 + low > keys - 1):
        return None
    settings: list[tuple[str, object]] = []
    if left or right:
        settings.append(("diagonal_alignment", "diagonal_alignment.TOP_LEFT"))
    if left:
        settings.append(("diagonal_band_left_bound", 1 - low))
    if right:
        settings.append(("diagonal_band_right_bound", high))
    return tuple(settings)


def _attention(types: Types, results: Types, *, layout: str, **attributes: Any) -> Operation | None:
    """Describe a call of `attention` or `attention_grad` to cuDNN.

    `layout` is the order of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None
    unless the dtype is float16 or bfloat16, there is no mask tensor, no operand is empty, and cuDNN
    has settings for the band of keys that a query sees (`_band`).
    """
    parts = tuple([separate(t, layout) for t in types[:3]])
    mask, given = types[3], types[4:]
    out = separate((given or results)[0], layout)
    places = SEPARATE_GRAD if given else SEPARATE
    return _attend(types[0].dtype, mask, (*parts, out), places, **attributes)


def _self_attention(
    types: Types,
    results: Types,
    *,
    layout: str,
    heads: int,
    own: int,
    **attributes: Any,
) -> Operation | None:
    """Describe a call of `self_attention` or its gradient to cuDNN.

    `heads` is the number of query heads, `own` that of key heads and of value heads. `layout` is
    the order of axes, a key of `attention_layouts.AXES` such as "BNSD". Returns None unless the
    dtype is float16 or bfloat16, there is no mask tensor, the operand is not empty, and cuDNN has
    settings for the band of keys that a query sees (`_band`).
    """
    x, mask, *given = types
    out = separate((given or results)[0], layout)
    places = JOINT_GRAD if given else JOINT
    parts = (*packed(x, layout, heads, own), out)
    return _attend(x.dtype, mask, parts, places, **attributes)


def _attend(
    dtype: DType,
    mask: TensorType | None,
    parts: tuple[Part, ...],
    places: dict[str, int],
    *,
    scale: float,
    low: int,
    high: int,
) -> Operation | None:
    query, key, value, _ = parts
    if dtype not in (float16, bfloat16) or mask is not None:
        return None
    if 0 in (*query.shape, *key.shape, *value.shape):
        return None
    band = _band(query.shape[2], key.shape[2], low, high)
    if band is None:
        return None
    q, k, v, out = [
        _buffer(places[name], dtype, part) for name, part in zip(("q", "k", "v", "out"), parts)
    ]
    settings = (("attn_scale", scale), *band)
    rows = (*query.shape[:3], 1)
    log_sum = Buffer(places["log_sum"], float32, rows, tuple(dense(rows)))
    operands: tuple[tuple[str, Buffer], ...] = (("q", q), ("k", k), ("v", v))
    if "dout" not in places:
        return Operation("sdpa", operands, (out, log_sum), (("generate_stats", True), *settings))
    dout = dataclasses.replace(out, place=places["dout"])
    made = [dataclasses.replace(x, place=places[d]) for d, x in zip(("dq", "dk", "dv"), (q, k, v))]
    settings += (("use_deterministic_algorithm", True),)
    operands += (("o", out), ("dO", dout), ("stats", log_sum))
    return Operation("sdpa_backward", operands, tuple(made), settings)


CONVOLUTIONS: dict[str, Callable[..., Operation | None]] = {
    "conv": _conv,
    "conv_input_grad": _conv_input_grad,
    "conv_weight_grad": _conv_weight_grad,
}
# Op on images with channels last -> the same op with channels as axis 1.
CHANNELS_LAST = {f"{name}_channels_last": name for name in CONVOLUTIONS}
OPERATIONS = {
    **CONVOLUTIONS,
    "attention": _attention,
    "attention_grad": _attention,
    "self_attention": _self_attention,
    "self_attention_grad": _self_attention,
}
