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
    """Apply dropout to `x` if `training`; return `x` itself otherwise.

    Each element becomes 0 with probability `p`; the others are divided by 1 - p.
    """
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
    """Return (q @ w_q.T + b_q, k @ w_k.T + b_k, v @ w_v.T + b_v): projected query, key and value.

    A bias may be None. Weights have shape (E, size of the last axis of the projected tensor), and
    biases (E,), where E is the size of the last axis of `q`.

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
    """Project query, key and value by the three thirds of one weight; return the three results.

    Args:
        q, k, v: query, key and value; their last axis has the same size E.
        w: weight of shape (3 * E, E): the rows for the query, then the key, then the value.
        b: bias of shape (3 * E,), or None.
        k_is_v, q_is_k: whether key and value, and query and key, are the same tensor. If both are
            True, one matmul of `q` with the whole weight computes all three results.
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
    """Return whether query, key and value have a batch axis, that is 3 axes each instead of 2.

    Raises:
        ValueError: the three ranks are neither all 2 nor all 3.
    """
    ranks = (query_ndim, key_ndim, value_ndim)
    if ranks not in ((2, 2, 2), (3, 3, 3)):
        raise ShapeError(f"attention: query, key and value have ranks {ranks}; wanted all 2 or 3")
    return query_ndim == 3


def _check_kpm_shape(query_ndim: int, kmp_ndim: int) -> None:
    """Raise an error unless a key padding mask has one axis less than the query.

    `query_ndim` and `kmp_ndim` are the numbers of axes of the query and the mask.

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
    """Raise an error if the rank, or in one case the shape, of an attention mask is wrong.

    The shape is checked only if the mask has 3 axes and the query 2, so that it has no batch axis.

    Raises:
        ValueError: the mask has a rank other than 2 and 3; or the checked shape is not (number of
            heads, length of the query, length of the key).
    """
    if attn_mask_ndim not in (2, 3):
        raise ShapeError(f"attention: attn_mask has rank {attn_mask_ndim}; wanted 2 or 3")
    wanted = (num_heads, query_shape[0], key_shape[0])
    if query_ndim == 2 and attn_mask_ndim == 3 and tuple(attn_mask_shape) != wanted:
        raise ShapeError(f"attention: attn_mask has shape {attn_mask_shape}; wanted {wanted}")


def _interploate_ext_make_tuple(input: Tensor, value: float | Sequence[float]) -> Sequence[float]:
    """Return one value for each spatial axis of `input`, whose shape is (N, C, spatial axes...).

    A number is repeated for each of these axes; a sequence is returned unchanged.
    """
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
    """Return the projection weights of query, key and value.

    They are `q`, `k` and `v` if none of these is None, else the three equal parts of `packed` along
    axis 0.

    Raises:
        TypeError: `packed` is needed but None.
    """
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
    """Add the masks to attention scores of shape (N, heads, queries, columns); return the scores.

    The first `keys` columns belong to the caller's keys, which the masks cover. Columns after them
    belong to keys that the attention itself has appended, and stay unmasked.

    Args:
        scores: the scores.
        attn_mask: shape (queries, keys) or (N * heads, queries, keys), or None.
        key_padding_mask: shape (N, keys), or (keys,) if N is 1, or None.
        keys: number of the caller's keys.
        dtype: the dtype of the query, to which the masks are converted.
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

    Args:
        query, key, value: shape (length, N, E), or without the axis N; the sizes E of key and value
            may differ from that of the query if they have weights of their own.
        embed_dim_to_check: must be the size E of the query.
        num_heads: number of heads, which must divide E.
        in_proj_weight: (3 * E, E), the weights that project query, key and value; used unless
            `use_separate_proj_weight` is True or it is None.
        in_proj_bias: (3 * E,), the biases of these projections, or None.
        bias_k, bias_v: one more projected key and value, which are appended unless one is None.
        add_zero_attn: whether to append a key and a value of zeros.
        dropout_p: probability with which an attention weight is dropped, if `training`.
        out_proj_weight, out_proj_bias: (E, E) and (E,), the projection of the output; the bias may
            be None.
        key_padding_mask, attn_mask: masks of keys, and of pairs of a query and a key, or None; see
            `nn.MultiheadAttention`.
        q_proj_weight, k_proj_weight, v_proj_weight: (E, size of the tensor's last axis), used
            instead of `in_proj_weight`; all of them or none.
        static_k, static_v: must be None.
        average_attn_weights: whether to return the mean of the attention weights over the heads.
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
