"""MindSpore's public attention function, `flash_attention_score`.

It checks the user's arguments, combines the masks and calls the op of `attention`. Only dropout
materialises the matrix of weights.
"""

from __future__ import annotations

from ..backend.attention_layouts import AXES
from ..dtype import DType, bool_, int32
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..tensor import Tensor
from ..types import TensorType
from .attention import FROM_BNSD, attention_of, expand_heads, permuted, scores_of, weights_of
from .comparison import less
from .creation import cast_to, fill, iota
from .dropouts import dropout
from .linalg import matmul_of, widened
from .logic import bitwise_and, select_by, shift_right
from .random import take_state
from .shape_primitives import reshape_to

__all__ = ["flash_attention_score"]

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
    """Compute multi-head attention without materialising the matrix of weights
    (`mindspore.ops.flash_attention_score`).

    The result is dropout(softmax(scores)) @ value, where the scores are scalar_value * query @
    key.T + real_shift, and -inf for hidden keys (Dao et al., 2022). In shapes, B is the batch size,
    S the number of positions, N of heads and D of features of a head; H = N * D. The result of a
    query whose keys are all hidden is 0.

    Args:
        query: Tensor (B, S, H), (S, B, H), (B, S, N, D) or (B, N, S, D), as `input_layout` says;
            floating.
        key, value: Tensors of the layout and dtype of `query`, with any number of positions. They
            may have fewer heads if that number divides `head_num`; each head then serves a group of
            adjacent heads of `query`.
        head_num: number of heads of `query`.
        real_shift: None, or a Tensor that is added to the scores: (B, N, queries, keys), of which
            any size may be 1, of the dtype of `query`.
        drop_mask: None, or a uint8 Tensor (B, N, queries, keys / 8) when keep_prob < 1: bit i % 8
            of byte i // 8 is 1 where the weight of key i is kept. Without it, the weights to keep
            are chosen at random.
        attn_mask: None, or a bool or uint8 Tensor that is not 0 where a key is hidden: (B, N,
            queries, keys), of which any size may be 1, or (queries, keys). In the modes 2 to 4 of
            `sparse_mode` the mode defines the mask, and the content of `attn_mask` is not read.
        keep_prob: probability with which a weight is kept, in (0, 1]; kept weights are divided by
            it. Below 1, the matrix of weights is materialised.
        scalar_value: factor of the scores, most often D ** -0.5.
        pre_tokens, next_tokens: how many positions before and behind its own a query sees, in the
            modes 0 and 4 of `sparse_mode`. Mode 0, which uses them only with `attn_mask`, counts
            positions from the first query and key; mode 4 counts from the last ones.
        inner_precise: has no effect.
        input_layout: ``"BSH"``, ``"SBH"``, ``"BSND"`` or ``"BNSD"``.
        sparse_mode: which keys a query sees. 0, 1: those that `attn_mask` does not hide. 2: query i
            sees keys 0 to i. 3: like 2, but shifted so that the last query sees all keys. 4: the
            band given by `pre_tokens` and `next_tokens`.
        padding_mask, prefix, actual_seq_qlen, actual_seq_kvlen: must be None; other values are not
            supported.

    Returns:
        Tensor of the shape and dtype of `query`.

    Raises:
        TypeError: dtypes that differ or are not floating, a mask of another dtype.
        ValueError: the shapes do not match, head_num does not divide H, or a mode, layout or
            argument is not supported.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[[0.0, 0.0]], [[2.0, 4.0]]])
        >>> causal = {"input_layout": "SBH", "sparse_mode": 2}
        >>> print(ms.ops.flash_attention_score(x * 0, x * 0, x, head_num=1, **causal))
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
                f"{_NAME}: got {what}, which is not offered; wanted None, and an attn_mask that "
                "says what is seen"
            )
    layout = _checked_layout(query, key, value, head_num, keep_prob, input_layout)
    shape = query.shape
    if len(input_layout) == 3:
        query, key, value = _with_heads(query, key, value, head_num)
    axes = AXES[layout]
    if query.shape[axes[1]] != head_num:
        raise ShapeError(
            f"{_NAME}: got head_num={head_num} for query of shape {shape} in the layout "
            f"{input_layout}; "
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
        settings = (float(scalar_value), low, high, layout)
        out = _with_dropout(query, key, value, mask, drop_mask, keep_prob, settings)
    return reshape_to(out, shape) if len(input_layout) == 3 else out


def _checked_layout(
    query: Tensor, key: Tensor, value: Tensor, heads: int, keep_prob: float, input_layout: str
) -> str:
    """Raise an error for invalid arguments of attention; return the internal name of the layout.

    `input_layout` is MindSpore's name, such as ``"BSH"``, `heads` the number of query heads. The
    result is the name of the four-axis layout, such as ``"BSND"``.
    """
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
    if not isinstance(heads, int) or heads < 1:
        raise ArgumentValueError(f"{_NAME}: got head_num={heads!r}; wanted a positive int")
    if not isinstance(keep_prob, (int, float)) or not 0 < keep_prob <= 1:
        raise ArgumentValueError(
            f"{_NAME}: got keep_prob={keep_prob!r}; wanted a number above 0 and at most 1"
        )
    return layout


def _with_dropout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    drop_mask: Tensor | None,
    keep_prob: float,
    settings: tuple[float, int, int, str],
) -> Tensor:
    """Compute attention with dropout of the attention weights, which are stored in full.

    Args:
        drop_mask: packed bits of the weights to keep, or None for random ones.
        settings: the attributes (scale, low, high, layout) of the op `attention`.

    Returns the attention's result, with the layout and dtype of `query`.
    """
    scale, low, high, layout = settings
    axes = AXES[layout]
    given = [
        None if t is None else TensorType.of(t.shape, t.dtype) for t in (query, key, value, mask)
    ]
    attention_of.result_types(
        tuple(given), {"scale": 1.0, "low": low, "high": high, "layout": layout}
    )
    q, k, v = (permuted(x, axes) for x in (query, key, value))
    weights, _ = weights_of(scores_of(q, k, mask, scale, low, high))
    weights = _dropped(weights, drop_mask, keep_prob)
    values = expand_heads(widened(v), query.shape[axes[1]])
    return permuted(cast_to(matmul_of(weights, values), query.dtype), FROM_BNSD[layout])


def _with_heads(
    query: Tensor, key: Tensor, value: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Reshape query, key and value with features in one axis (the last) to (..., heads, features).

    All three are 3-d. `heads` is the number of query heads. The size of a head, which follows from
    it, determines the number of key and value heads.

    Raises:
        ShapeError: features that are not divisible by `heads`, or by the size of a head.
    """
    hidden = query.shape[2]
    if hidden % heads:
        raise ShapeError(
            f"{_NAME}: got head_num={heads} for query of shape {query.shape}; wanted a divisor of "
            f"{hidden}"
        )
    width = hidden // heads
    for what, t in (("key", key), ("value", value)):
        if width == 0 or t.shape[2] % width:
            raise ShapeError(
                f"{_NAME}: got {what} of shape {t.shape} and heads of {width} features; wanted a "
                "multiple of these"
            )
    query, key, value = (
        reshape_to(t, (*t.shape[:2], t.shape[2] // width, width)) for t in (query, key, value)
    )
    return query, key, value


def _band(
    mode: object, queries: int, keys: int, before: int, behind: int, mask: Tensor | None
) -> tuple[int, int, Tensor | None]:
    """Convert a `sparse_mode` number to a band of visible keys and a mask to apply as well.

    Returns (low, high, mask): query i may attend to the keys i + low .. i + high, both included. In
    mode 0 the band of `before` and `behind` applies together with `mask`; without a mask, every key
    is visible. Mode 1 is `mask` alone. Modes 2 and 3 are causal: in mode 2 the first query sees the
    first key only, in mode 3 the last query sees all keys. Mode 4 is a band relative to the last
    query and key. In modes 2 to 4 the returned mask is None.

    Args:
        queries, keys: numbers of queries and keys.
        before, behind: MindSpore's pre_tokens and next_tokens, which bound the band.
    """
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
            f"{_NAME}: got sparse_mode={mode!r}; wanted 0, 1 (attn_mask), 2, 3 (causal) or 4 (a "
            "band)"
        )
    if mode == 0 and mask is not None:
        if -before > behind:
            raise ArgumentValueError(
                f"{_NAME}: got pre_tokens={before} and next_tokens={behind}, an empty band"
            )
        return max(-before, least), min(behind, most), mask
    return least, most, mask


def _mask(seen: Tensor | None, shift: Tensor | None, dtype: DType) -> Tensor | None:
    """Combine the masks `attn_mask` (`seen`) and `real_shift` (`shift`); None if both are None.

    `seen` is True (or not 0) for hidden keys; `shift` is added to the scores. The result has four
    axes. Without `shift` it is a bool mask, else a tensor of `dtype`: -inf at hidden keys, `shift`
    elsewhere.
    """
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
    """Apply dropout to attention weights, with the bits of `mask` or else with random numbers.

    `mask` is uint8, with one bit per weight, the lowest bit first. `keep` is the probability that a
    weight is kept; kept weights are divided by it.
    """
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
