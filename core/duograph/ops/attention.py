"""Attention as one op: softmax(scale * query @ key.T + mask) @ value.

Backends may compute it without materialising the matrix of weights.
"""

from __future__ import annotations

from ..backend.attention_layouts import AXES
from ..dtype import FLOATING, DType, bool_, float32, int32
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..op import NO_GRAD, op
from ..tensor import Tensor
from ..types import TensorType
from .comparison import equal, less
from .creation import cast_to, fill, iota
from .dropouts import dropout
from .exponential import exp, log
from .linalg import matmul_of, widened
from .logic import bitwise_and, select_by, shift_right
from .movement import concat_by, slice_by, stop_gradient
from .normalization import is_zero
from .random import take_state
from .reduction import reduce_max
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by, unbroadcast

__all__ = ["flash_attention_score"]

# The inverses of `AXES`.
_BACK = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "SBND": (2, 0, 1, 3)}

# ---- parts of the ops, all in the layout BNSD ---------------------------------------------------


def _turned(x: Tensor, perm: tuple[int, ...]) -> Tensor:
    return x if perm == (0, 1, 2, 3) else transpose_by(x, perm)


def _of_all_heads(x: Tensor, heads: int) -> Tensor:
    """Repeat keys or values so that every query head has its own (grouped-query attention)."""
    batch, own, length, width = x.shape
    if own == heads:
        return x
    x = broadcast_to(
        reshape_to(x, (batch, own, 1, length, width)), (batch, own, heads // own, length, width)
    )
    return reshape_to(x, (batch, heads, length, width))


def _of_own_heads(x: Tensor, own: int) -> Tensor:
    """Sum the gradient of `_of_all_heads` over the query heads that share a key head."""
    batch, heads, length, width = x.shape
    if own == heads:
        return x
    return reduce_sum(reshape_to(x, (batch, own, heads // own, length, width)), (2,), False)


def _scores(
    query: Tensor, key: Tensor, mask: Tensor | None, scale: float, low: int, high: int
) -> Tensor:
    """Return scale * query @ key.T + mask, with -inf for hidden keys; in float32 for 16-bit floats."""
    queries, keys = query.shape[2], key.shape[2]
    scores = matmul_of(
        widened(query) * scale, _of_all_heads(widened(key), query.shape[1]), False, True
    )
    hidden = fill((), float("-inf"), scores.dtype)
    if mask is not None:
        if mask.dtype is bool_:
            scores = select_by(mask, hidden, scores)
        else:
            scores = scores + cast_to(mask, scores.dtype)
    if low > 1 - queries or high < keys - 1:
        ahead = iota((queries, keys), 1, int32) - iota((queries, keys), 0, int32)
        if high < keys - 1:
            scores = select_by(less(fill((), high, int32), ahead), hidden, scores)
        if low > 1 - queries:
            scores = select_by(less(ahead, fill((), low, int32)), hidden, scores)
    return scores


def _weights(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the softmax over the keys and the logarithm of its denominator.

    Both are 0 for a query without visible keys.
    """
    none = fill((), 0.0, scores.dtype)
    top = reduce_max(scores, (3,), True)
    top = stop_gradient(select_by(equal(top, fill((), float("-inf"), top.dtype)), none, top))
    e = exp(scores - top)
    total = reduce_sum(e, (3,), True)
    total = select_by(equal(total, none), fill((), 1.0, scores.dtype), total)
    return e / total, reshape_to(log(total) + top, scores.shape[:3])


def _backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    kept: tuple[float, int, int, Tensor],
    dout: Tensor,
    rows: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return (weights, gradient of the scores), given the log sums of the softmax.

    `rows` is subtracted from the gradient of the weights.
    """
    scale, low, high, log_sum = kept
    shape = (*log_sum.shape, 1)
    weights = exp(_scores(query, key, mask, scale, low, high) - reshape_to(log_sum, shape))
    values = _of_all_heads(widened(value), query.shape[1])
    return weights, weights * (
        matmul_of(widened(dout), values, False, True) - reshape_to(rows, shape)
    )


def _gradients(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    out: Tensor,
    log_sum: Tensor,
    dout: Tensor,
    dlog_sum: Tensor | None,
    scale: float,
    low: int,
    high: int,
    layout: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of query, key, value and scores.

    All but the last have the layout and dtype of their operand.
    """
    q, k, v, o, do = (_turned(x, AXES[layout]) for x in (query, key, value, out, dout))
    rows = reduce_sum(widened(do) * widened(o), (3,), False)
    if dlog_sum is not None:
        rows = rows - dlog_sum
    weights, dscores = _backward(q, k, v, mask, (scale, low, high, log_sum), do, rows)
    dq = matmul_of(dscores, _of_all_heads(widened(k), q.shape[1])) * scale
    dk = _of_own_heads(matmul_of(dscores, widened(q), True, False) * scale, k.shape[1])
    dv = _of_own_heads(matmul_of(weights, widened(do), True, False), v.shape[1])
    made = [
        _turned(cast_to(d, x.dtype), _BACK[layout])
        for d, x in ((dq, query), (dk, key), (dv, value))
    ]
    return made[0], made[1], made[2], dscores


# ---- the ops ------------------------------------------------------------------------------------


@op(name="attention")
def attention_of(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    low: int,
    high: int,
    layout: str,
):
    """softmax(scale * query @ key.T + mask) @ value, and the logarithms of the sums of the softmax.

    Four axes in the order that `layout` names: B batch, N heads, S positions, D features. key and
    value may have fewer heads, each shared by a group of adjacent query heads. mask broadcasts to
    (B, N, queries, keys): True hides a key, and a floating mask is added. Query i attends to keys
    i + low to i + high. The result of a query without visible keys is 0. The second result,
    (B, N, queries), is float32 for 16-bit floats (Dao et al., 2022).
    """
    q, k, v = (_turned(x, AXES[layout]) for x in (query, key, value))
    shape = (*q.shape[:3], v.shape[3])
    if 0 in (*shape, k.shape[2]):
        zeros = fill(shape, 0.0, query.dtype)
        sums = fill(shape[:3], 0.0, float32 if query.dtype.itemsize == 2 else query.dtype)
        return _turned(zeros, _BACK[layout]), sums
    weights, log_sum = _weights(_scores(q, k, mask, scale, low, high))
    out = matmul_of(weights, _of_all_heads(widened(v), q.shape[1]))
    return _turned(cast_to(out, query.dtype), _BACK[layout]), log_sum


def _shape(name: str, t: TensorType, layout: str) -> tuple[int, ...]:
    if t.ndim != 4:
        raise ShapeError(
            f"attention: got {name} of shape {t.shape}; wanted the four axes of {layout}"
        )
    return tuple([t.shape[i] for i in AXES[layout]])


@attention_of.infer
def _(query, key, value, mask, scale, low, high, layout):
    if layout not in AXES:
        raise ArgumentValueError(
            f"attention: got layout={layout!r}; wanted one of {', '.join(AXES)}"
        )
    batch, heads, queries, width = _shape("query", query, layout)
    key_shape, value_shape = _shape("key", key, layout), _shape("value", value, layout)
    if (
        query.dtype not in FLOATING
        or key.dtype is not query.dtype
        or value.dtype is not query.dtype
    ):
        raise DTypeError(
            f"attention: got {query.dtype.name}, {key.dtype.name} and {value.dtype.name}; wanted one floating dtype"
        )
    own, keys = key_shape[1], key_shape[2]
    if key_shape != (batch, own, keys, width) or value_shape[:3] != key_shape[:3]:
        raise ShapeError(
            f"attention: got query, key and value of shapes {query.shape}, {key.shape} and {value.shape} in the layout "
            f"{layout}; wanted one batch, keys as wide as queries, and as many values as keys"
        )
    if own == 0 or heads % own:
        raise ShapeError(
            f"attention: got {heads} heads of query and {own} of key and value; wanted a multiple"
        )
    if mask is not None:
        wanted = (batch, heads, queries, keys)
        if mask.ndim != 4 or any(n not in (1, w) for n, w in zip(mask.shape, wanted)):
            raise ShapeError(
                f"attention: got a mask of shape {mask.shape}; wanted {wanted}, or 1 in place of any"
            )
        if mask.dtype is not bool_ and mask.dtype is not query.dtype:
            raise DTypeError(
                f"attention: got a mask of {mask.dtype.name}; wanted bool or {query.dtype.name}"
            )
    made = (batch, heads, queries, value_shape[3])
    sums = float32 if query.dtype.itemsize == 2 else query.dtype
    out = TensorType.of(tuple([made[i] for i in _BACK[layout]]), query.dtype)
    return out, TensorType.of(made[:3], sums)


@attention_of.bprop
def _(query, key, value, mask, out, dout, scale, low, high, layout):
    made, log_sum = out
    dmade, dlog_sum = dout
    settings = (scale, low, high, layout)
    trained = mask is not None and mask.dtype is not bool_
    if is_zero(dlog_sum):
        dq, dk, dv = attention_grad(query, key, value, mask, made, log_sum, dmade, *settings)
        if not trained or made.size == 0:
            return dq, dk, dv, _no_gradient(mask)
        _, _, _, dscores = _gradients(
            query, key, value, mask, made, log_sum, dmade, None, *settings
        )
    else:
        dq, dk, dv, dscores = _gradients(
            query, key, value, mask, made, log_sum, dmade, dlog_sum, *settings
        )
    return (
        dq,
        dk,
        dv,
        unbroadcast(cast_to(dscores, mask.dtype), mask) if trained else _no_gradient(mask),
    )


def _no_gradient(mask: Tensor | None) -> object:
    """Return the zero gradient of a mask that is absent, bool, or not used."""
    return NO_GRAD if mask is None or mask.dtype is bool_ else fill(mask.shape, 0.0, mask.dtype)


@op()
def attention_grad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    out: Tensor,
    log_sum: Tensor,
    dout: Tensor,
    scale: float,
    low: int,
    high: int,
    layout: str,
):
    """Gradients of `attention` with respect to query, key and value, from its results and the
    gradient of the first.
    """
    if 0 in (*out.shape, *key.shape):
        return tuple([fill(x.shape, 0.0, x.dtype) for x in (query, key, value)])
    settings = (scale, low, high, layout)
    return _gradients(query, key, value, mask, out, log_sum, dout, None, *settings)[:3]


@attention_grad.infer
def _(query, key, value, mask, out, log_sum, dout, scale, low, high, layout):
    settings = {"scale": scale, "low": low, "high": high, "layout": layout}
    wanted = attention_of.infer_types((query, key, value, mask), settings)
    if (out, log_sum, dout) != (*wanted, wanted[0]):
        raise ShapeError(
            f"attention_grad: got results {out!r}, {log_sum!r} and a gradient {dout!r}; wanted {wanted[0]!r}, "
            f"{wanted[1]!r} and {wanted[0]!r}"
        )
    return query, key, value


# Query, key and value concatenated in one tensor, the result of one projection. The pass
# passes/self_attention creates these ops.


@op()
def self_attention(
    x: Tensor,
    mask: Tensor | None,
    heads: int,
    own: int,
    scale: float,
    low: int,
    high: int,
    layout: str,
):
    """`attention` of a query, key and value that are concatenated along the last axis of one
    tensor.

    `x` has the axes B and S in the order of `layout` (BSND or SBND) and (heads + 2 * own) * D
    features: those of the query, of `own` heads of the key, and of as many of the value.
    """
    query, key, value = _parts(x, heads, own)
    return attention_of(query, key, value, mask, scale, low, high, layout)


@op()
def self_attention_grad(
    x: Tensor,
    mask: Tensor | None,
    out: Tensor,
    log_sum: Tensor,
    dout: Tensor,
    heads: int,
    own: int,
    scale: float,
    low: int,
    high: int,
    layout: str,
):
    """The gradient of `self_attention` with respect to `x`, from its results and the gradient of
    the first.
    """
    query, key, value = _parts(x, heads, own)
    made = attention_grad(query, key, value, mask, out, log_sum, dout, scale, low, high, layout)
    return concat_by([reshape_to(d, (*x.shape[:2], d.shape[2] * d.shape[3])) for d in made], 2)


def _parts(x: Tensor, heads: int, own: int) -> list[Tensor]:
    """Return query, key and value with separate axes for heads and features."""
    if x.ndim != 3 or heads < 1 or own < 1 or x.shape[2] % (heads + 2 * own):
        raise ShapeError(
            f"self_attention: got a tensor of shape {x.shape} for {heads} heads of query and {own} of key; "
            f"wanted three axes, the last a multiple of {heads + 2 * own}"
        )
    one, two = x.shape[:2]
    width = x.shape[2] // (heads + 2 * own)
    found, at = [], 0
    for n in (heads, own, own):
        part = slice_by(x, (0, 0, at), (one, two, at + n * width), (1, 1, 1))
        found.append(reshape_to(part, (one, two, n, width)))
        at += n * width
    return found


# ---- the public function ------------------------------------------------------------------------

_NAME = "flash_attention_score"
_LAYOUTS = {"BSH": "BSND", "SBH": "SBND", "BSND": "BSND", "BNSD": "BNSD"}
_UNLIMITED = 2147483647


def flash_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    real_shift: Tensor | None = None,
    drop_mask: Tensor | None = None,
    padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    prefix: object = None,
    actual_seq_qlen: object = None,
    actual_seq_kvlen: object = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = _UNLIMITED,
    next_tokens: int = _UNLIMITED,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:
    """Multi-head attention that does not materialise the matrix of weights
    (`mindspore.ops.flash_attention_score`).

    dropout(softmax(scalar_value * query @ key.T + real_shift, where seen)) @ value, by Dao et al.
    (2022). B batch, S positions, N heads, D features of a head, H = N * D. A query that sees no key
    has the result 0.

    Args:
        query: Tensor (B, S, H), (S, B, H), (B, S, N, D) or (B, N, S, D), as `input_layout` says;
            floating.
        key, value: Tensors of that layout and dtype, of any number of positions; they may have
            fewer heads, of which each serves as many heads of `query`.
        head_num: heads of `query`.
        real_shift: None, or a Tensor (B, N, queries, keys), any of these 1, of the dtype of
            `query`: added to the scores.
        drop_mask: None, or a uint8 Tensor (B, N, queries, keys / 8) when keep_prob < 1: bit i % 8
            of byte i // 8 is 1 where the weight of key i is kept. Without it weights are drawn.
        attn_mask: None, or a bool or uint8 Tensor (B, N, queries, keys), any of these 1, or
            (queries, keys): not 0 where a key is not seen. In the modes 2 to 4 it is what the mode
            says, and its content is not read.
        keep_prob: probability with which a weight is kept, in (0, 1]; those kept are divided by it.
            Below 1 the matrix of weights is made.
        scalar_value: factor of the scores, most often D ** -0.5.
        pre_tokens, next_tokens: how many positions before and behind its own a query sees, in the
            modes 0 (with attn_mask only; counted from the first query and key) and 4 (from the
            last).
        inner_precise: has no effect.
        input_layout: ``"BSH"``, ``"SBH"``, ``"BSND"`` or ``"BNSD"``.
        sparse_mode: 0, 1: `attn_mask`. 2: query i sees keys 0 to i. 3: the same, the last query
            seeing all keys. 4: a band.
        padding_mask, prefix, actual_seq_qlen, actual_seq_kvlen: None; others are not offered.

    Returns:
        Tensor of the shape and dtype of `query`.

    Raises:
        TypeError: dtypes that differ or are not floating, a mask of another dtype.
        ValueError: the shapes do not match, head_num not dividing H, a mode, layout or argument that
            is not offered.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[[0.0, 0.0]], [[2.0, 4.0]]])
        >>> print(ms.ops.flash_attention_score(x * 0, x * 0, x, head_num=1, input_layout="SBH", sparse_mode=2))
        [[[0. 0.]]
        <BLANKLINE>
         [[1. 2.]]]
    """
    for what, given in (
        ("padding_mask", padding_mask), ("prefix", prefix), ("actual_seq_qlen", actual_seq_qlen),
        ("actual_seq_kvlen", actual_seq_kvlen),
    ):  # fmt: skip
        if given is not None:
            raise ArgumentValueError(
                f"{_NAME}: got {what}, which is not offered; wanted None, and an attn_mask that says what is seen"
            )
    layout = _LAYOUTS.get(input_layout) if isinstance(input_layout, str) else None
    if layout is None:
        raise ArgumentValueError(
            f"{_NAME}: got input_layout={input_layout!r}; wanted one of {', '.join(_LAYOUTS)}"
        )
    for what, t in (("query", query), ("key", key), ("value", value)):
        if not isinstance(t, Tensor):
            raise ArgumentError(f"{_NAME}: got {type(t).__name__} for {what}; wanted a Tensor")
        if t.ndim != len(input_layout):
            raise ShapeError(
                f"{_NAME}: got {what} of shape {t.shape}; wanted the axes of {input_layout}"
            )
    if not isinstance(head_num, int) or head_num < 1:
        raise ArgumentValueError(f"{_NAME}: got head_num={head_num!r}; wanted a positive int")
    if not isinstance(keep_prob, (int, float)) or not 0 < keep_prob <= 1:
        raise ArgumentValueError(
            f"{_NAME}: got keep_prob={keep_prob!r}; wanted a number above 0 and at most 1"
        )
    shape = query.shape
    if len(input_layout) == 3:
        query, key, value = _with_heads(query, key, value, head_num)
    axes = AXES[layout]
    if query.shape[axes[1]] != head_num:
        raise ShapeError(
            f"{_NAME}: got head_num={head_num} for query of shape {shape} in the layout {input_layout}; "
            f"wanted {query.shape[axes[1]]}"
        )
    queries, keys = query.shape[axes[2]], key.shape[axes[2]]
    low, high, seen = _band(sparse_mode, queries, keys, pre_tokens, next_tokens, attn_mask)
    mask = _mask(seen, real_shift, query.dtype)
    if keep_prob == 1:
        if drop_mask is not None:
            raise ArgumentValueError(f"{_NAME}: got a drop_mask with keep_prob=1; wanted None")
        out = attention_of(query, key, value, mask, float(scalar_value), low, high, layout)[0]
    else:
        given = [
            None if t is None else TensorType.of(t.shape, t.dtype)
            for t in (query, key, value, mask)
        ]
        attention_of.result_types(
            tuple(given), {"scale": 1.0, "low": low, "high": high, "layout": layout}
        )
        q, k, v = (_turned(x, axes) for x in (query, key, value))
        weights, _ = _weights(_scores(q, k, mask, float(scalar_value), low, high))
        weights = _dropped(weights, drop_mask, keep_prob)
        out = cast_to(matmul_of(weights, _of_all_heads(widened(v), head_num)), query.dtype)
        out = _turned(out, _BACK[layout])
    return reshape_to(out, shape) if len(input_layout) == 3 else out


def _with_heads(
    query: Tensor, key: Tensor, value: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The layouts with the axis H split into N and D."""
    hidden = query.shape[2]
    if hidden % heads:
        raise ShapeError(
            f"{_NAME}: got head_num={heads} for query of shape {query.shape}; wanted a divisor of {hidden}"
        )
    width = hidden // heads
    for what, t in (("key", key), ("value", value)):
        if width == 0 or t.shape[2] % width:
            raise ShapeError(
                f"{_NAME}: got {what} of shape {t.shape} and heads of {width} features; wanted a multiple of these"
            )
    query, key, value = (
        reshape_to(t, (*t.shape[:2], t.shape[2] // width, width)) for t in (query, key, value)
    )
    return query, key, value


def _band(
    mode: object, queries: int, keys: int, before: int, behind: int, mask: Tensor | None
) -> tuple[int, int, Tensor | None]:
    """Return the band of a sparse mode, as the first and last key visible to query 0, and the mask."""
    least, most, last = -queries, keys, keys - queries
    if mode == 2:
        return least, 0, None
    if mode == 3:
        return least, min(last, most), None
    if mode == 4:
        low, high = last - before, last + behind
        if low > high:
            raise ArgumentValueError(
                f"{_NAME}: got pre_tokens={before} and next_tokens={behind}, an empty band"
            )
        return max(low, least), min(high, most), None
    if mode not in (0, 1):
        raise ArgumentValueError(
            f"{_NAME}: got sparse_mode={mode!r}; wanted 0, 1 (attn_mask), 2, 3 (causal) or 4 (a band)"
        )
    if mode == 0 and mask is not None:
        if -before > behind:
            raise ArgumentValueError(
                f"{_NAME}: got pre_tokens={before} and next_tokens={behind}, an empty band"
            )
        return max(-before, least), min(behind, most), mask
    return least, most, mask


def _mask(seen: Tensor | None, shift: Tensor | None, dtype: DType) -> Tensor | None:
    """Combine attn_mask and real_shift into one mask of four axes."""
    if seen is not None:
        if seen.dtype.name not in ("bool", "uint8"):
            raise DTypeError(f"{_NAME}: got attn_mask of {seen.dtype.name}; wanted bool or uint8")
        if seen.ndim not in (2, 4):
            raise ShapeError(
                f"{_NAME}: got attn_mask of shape {seen.shape}; wanted two or four axes"
            )
        seen = seen if seen.dtype is bool_ else cast_to(seen, bool_)
        seen = seen if seen.ndim == 4 else reshape_to(seen, (1, 1, *seen.shape))
    if shift is None:
        return seen
    if shift.dtype is not dtype:
        raise DTypeError(
            f"{_NAME}: got real_shift of {shift.dtype.name}; wanted {dtype.name} as query"
        )
    return shift if seen is None else select_by(seen, fill((), float("-inf"), dtype), shift)


def _dropped(weights: Tensor, mask: Tensor | None, keep: float) -> Tensor:
    """Apply dropout to the weights."""
    if mask is None:
        return dropout(weights, take_state(like=weights), 1.0 - keep, weights.shape)
    *lead, keys = weights.shape
    if mask.dtype.name != "uint8" or keys % 8 or mask.shape != (*lead, keys // 8):
        raise ShapeError(
            f"{_NAME}: got drop_mask of shape {mask.shape} and {mask.dtype.name}; wanted uint8 of "
            f"{(*lead, keys // 8)}, the number of keys being a multiple of 8"
        )
    bytes_ = reshape_to(cast_to(mask, int32), (*lead, keys // 8, 1))
    bits = bitwise_and(shift_right(bytes_, iota((8,), 0, int32)), fill((), 1, int32))
    kept = reshape_to(less(fill((), 0, int32), bits), weights.shape)
    return select_by(kept, weights * (1.0 / keep), fill((), 0.0, weights.dtype))
