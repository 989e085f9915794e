"""Private helpers of MindSpore's attention and interpolation that published packages import.

Programs import them from `mindspore.ops.function.nn_func`, a path that `paths.PATHS` maps to this
module; nothing in duograph imports it. Each function does what those packages need of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import ops
from ..dtype import DType, bool_, float32, int32
from ..errors import ArgumentError, ShapeError, UnsupportedOpError
from ..nn.layer.transformer import _additive
from ..tensor import Tensor

__all__: list[str] = []


def linear(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    """Return `x @ w.T + b`; `w` has shape (outputs, inputs), and `b` may be None."""
    product = ops.matmul(x, w.swapaxes(-1, -2))
    return product if b is None else product + b


def _inner_dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Return `x` with elements dropped with probability `p` if `training`, else `x` unchanged."""
    return ops.dropout(x, p=p, training=True) if training and p > 0 else x


def _inner_pad(x: Tensor, padding: Sequence[int], value: float | None = None) -> Tensor:
    """Pad a Tensor of any dtype, bool included; arguments are those of `ops.pad`."""
    numbers = x.astype(int32) if x.dtype is bool_ else x
    return ops.pad(numbers, padding, value=value).astype(x.dtype)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Project query, key and value by the weights and biases named after them.

    Return the three results.

    Raises:
        ValueError: the shape of a weight or bias does not fit.
    """
    size = q.shape[-1]
    rows = (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v))
    for name, x, w, b in rows:
        if w.shape != (size, x.shape[-1]):
            wanted = (size, x.shape[-1])
            raise ShapeError(f"attention: {name} weight has shape {w.shape}; wanted {wanted}")
        if b is not None and b.shape != (size,):
            raise ShapeError(f"attention: {name} bias has shape {b.shape}; wanted {(size,)}")
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None, k_is_v: bool, q_is_k: bool
) -> tuple[Tensor, ...]:
    """Project query, key and value by the three thirds of one weight of shape (3 * size, size).

    Returns the three results. `k_is_v` and `q_is_k` say that key is value and query is key; if both
    hold, one matmul with the whole weight computes all three.
    """
    size = q.shape[-1]
    if k_is_v and q_is_k:
        return tuple(ops.chunk(linear(q, w, b), 3, axis=-1))
    parts = [slice(i * size, (i + 1) * size) for i in range(3)]
    return tuple(
        linear(x, w[part], None if b is None else b[part])
        for x, part in zip((q, k, v), parts, strict=True)
    )


def _check_qkv_shape(query_ndim: int, key_ndim: int, value_ndim: int) -> bool:
    """Return True if query, key and value have a batch axis (3 axes each), else False.

    Raises:
        ValueError: they are not all of rank 2, or all of rank 3.
    """
    ranks = (query_ndim, key_ndim, value_ndim)
    if ranks not in ((2, 2, 2), (3, 3, 3)):
        raise ShapeError(f"attention: query, key and value have ranks {ranks}; wanted all 2 or 3")
    return query_ndim == 3


def _check_kpm_shape(query_ndim: int, kmp_ndim: int) -> None:
    """Raise unless a key padding mask has one axis less than the query.

    Raises:
        ValueError: the mask has another number of axes.
    """
    if kmp_ndim != query_ndim - 1:
        raise ShapeError(
            f"attention: key_padding_mask has rank {kmp_ndim}; wanted {query_ndim - 1}"
        )


def _check_attn_mask_shape(
    query_ndim: int,
    query_shape: tuple[int, ...],
    key_shape: tuple[int, ...],
    attn_mask_ndim: int,
    attn_mask_shape: tuple[int, ...],
    num_heads: int,
) -> None:
    """Raise unless an attention mask has 2 or 3 axes, and sizes that fit the query and key.

    Raises:
        ValueError: the mask has a rank other than 2 and 3; or the query has no batch axis, and a
            mask of rank 3 is not (heads, queries, keys).
    """
    if attn_mask_ndim not in (2, 3):
        raise ShapeError(f"attention: attn_mask has rank {attn_mask_ndim}; wanted 2 or 3")
    wanted = (num_heads, query_shape[0], key_shape[0])
    if query_ndim == 2 and attn_mask_ndim == 3 and tuple(attn_mask_shape) != wanted:
        raise ShapeError(f"attention: attn_mask has shape {attn_mask_shape}; wanted {wanted}")


def _interploate_ext_make_tuple(input: Tensor, value: float | Sequence[float]) -> Sequence[float]:
    """Return one value per spatial axis of `input` (N, C, ...): a single number is repeated."""
    if isinstance(value, (int, float)):
        return (value,) * (input.ndim - 2)
    return value


def _interpolate_ext_scale_factor_convert_size(
    input: Tensor, scale_factor: Sequence[float]
) -> tuple[int, ...]:
    """Return the sizes of the spatial axes after scaling by `scale_factor`, rounded down."""
    return tuple(math.floor(n * f) for n, f in zip(input.shape[2:], scale_factor, strict=False))


def _projection_weights(
    packed: Tensor | None, q: Tensor | None, k: Tensor | None, v: Tensor | None
) -> tuple[Tensor, ...]:
    """Return the weights of query, key and value: `q`, `k`, `v`, or else the thirds of `packed`."""
    if q is not None and k is not None and v is not None:
        return q, k, v
    if packed is not None:
        return tuple(ops.chunk(packed, 3))
    raise ArgumentError("multi_head_attention_forward: got no weights of the projections")


def _masked(
    scores: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    keys: int,
    dtype: DType,
) -> Tensor:
    """Add the masks to attention scores of shape (N, heads, queries, columns).

    The columns are the `keys` keys of the caller, which the masks cover, and then keys that were
    added and stay visible. Masks are converted to `dtype`, the dtype of the query.
    """
    batch, heads, length, columns = scores.shape
    for mask, rank in ((attn_mask, 3), (key_padding_mask, 2)):
        if mask is not None:
            added = _inner_pad(_additive(mask, dtype), (0, columns - keys))
            if rank == 2:
                added = added.reshape(-1, 1, 1, columns)
            elif mask.ndim == 3:
                added = added.reshape(batch, heads, length, columns)
            scores = scores + added
    return scores


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    k_is_v: bool = False,
    q_is_k: bool = False,
    dtype: DType = float32,
) -> tuple[Tensor, Tensor]:
    """Compute multi-head attention with the caller's weights.

    The arguments that are not listed are those of `nn.MultiheadAttention`.

    Args:
        query, key, value: shape (length, N, E), or without the axis N.
        static_k, static_v: must be None.
        is_causal: a hint that `attn_mask` hides later keys; ignored, since the mask decides.
        k_is_v, q_is_k, dtype: hints of callers to save work; ignored, since they change no values.

    Returns:
        (output, attention weights); the weights are averaged over the heads with
        `average_attn_weights`, else given for each head.

    Raises:
        ValueError: the shapes do not fit.
        NotImplementedError: `static_k` or `static_v` is given.
    """
    if static_k is not None or static_v is not None:
        raise UnsupportedOpError("multi_head_attention_forward: static_k and static_v: not built")
    del is_causal, k_is_v, q_is_k, dtype
    if query.shape[-1] != embed_dim_to_check:
        raise ShapeError(f"attention: query has width {query.shape[-1]}; got {embed_dim_to_check}")
    batched = _check_qkv_shape(query.ndim, key.ndim, value.ndim)
    if key_padding_mask is not None:
        _check_kpm_shape(query.ndim, key_padding_mask.ndim)
    if attn_mask is not None:
        rest = (key.shape, attn_mask.ndim, attn_mask.shape, num_heads)
        _check_attn_mask_shape(query.ndim, query.shape, *rest)
    if not batched:
        query, key, value = (x.expand_dims(1) for x in (query, key, value))
    length, batch, size = query.shape
    packed = None if use_separate_proj_weight else in_proj_weight
    weights = _projection_weights(packed, q_proj_weight, k_proj_weight, v_proj_weight)
    biases = (None,) * 3 if in_proj_bias is None else ops.chunk(in_proj_bias, 3)
    q, k, v = _in_projection(query, key, value, *weights, *biases)
    if bias_k is not None and bias_v is not None:
        k, v = (
            ops.concat((x, ops.broadcast_to(b, (1, batch, size))), 0)
            for x, b in ((k, bias_k), (v, bias_v))
        )
    if add_zero_attn:
        k, v = (ops.concat((x, ops.zeros((1, batch, size), x.dtype)), 0) for x in (k, v))

    def split(x: Tensor) -> Tensor:  # (n, N, E) to (N, heads, n, width)
        return x.reshape(x.shape[0], batch, num_heads, size // num_heads).transpose(1, 2, 0, 3)

    q, k, v = split(q), split(k), split(v)
    scores = ops.matmul(q, k.swapaxes(-1, -2)) / math.sqrt(size // num_heads)
    scores = _masked(scores, attn_mask, key_padding_mask, key.shape[0], q.dtype)
    found = ops.softmax(scores, -1)
    joined = ops.matmul(_inner_dropout(found, dropout_p, training), v).transpose(2, 0, 1, 3)
    out = linear(joined.reshape(length, batch, size), out_proj_weight, out_proj_bias)
    found = found.mean(1) if average_attn_weights else found
    return (out, found) if batched else (out.squeeze(1), found.squeeze(0))
