"""Conformance test cases of attention, checked against the full matrix of weights in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...backend.attention_layouts import AXES
from ...dtype import FLOATING, bfloat16, bool_, float16, float32
from ...ops import attention as attention_ops
from ...ops.attention import (
    attention_grad,
    attention_of,
    self_attention_grad,
)
from ...ops.attention_functions import flash_attention_score
from ..case import Array, Bad, Make, OpCase, Sample
from .convolution import wide

ALL = (-99, 99)
CAUSAL = (-99, 0)

# kind, (batch, heads, heads of keys, queries, keys, features, features of values), mask, band,
# layout
ROWS: list[tuple[str, tuple[int, ...], str, tuple[int, int], str]] = [
    ("normal", (2, 2, 2, 3, 4, 5, 5), "", ALL, "BNSD"),
    ("normal", (1, 2, 2, 4, 4, 3, 3), "", CAUSAL, "BSND"),
    ("normal", (1, 4, 2, 3, 5, 2, 3), "", (-1, 2), "SBND"),
    ("normal", (1, 2, 1, 2, 4, 2, 2), "hidden", ALL, "BNSD"),
    ("broadcast", (2, 2, 2, 3, 4, 2, 2), "added", ALL, "BSND"),
    ("broadcast", (2, 2, 1, 3, 4, 2, 2), "padding", CAUSAL, "BNSD"),
    ("edge", (1, 1, 1, 4, 3, 2, 2), "none", (2, 99), "BNSD"),
    ("empty", (0, 2, 2, 3, 4, 2, 2), "", ALL, "BNSD"),
    ("empty", (2, 2, 2, 0, 4, 2, 2), "", CAUSAL, "BSND"),
    ("empty", (1, 2, 2, 3, 0, 2, 2), "", ALL, "BNSD"),
    ("odd", (3, 3, 3, 7, 11, 13, 5), "", CAUSAL, "BNSD"),
    ("odd", (1, 2, 1, 37, 131, 67, 129), "", (-40, 90), "BSND"),
    ("odd", (1, 2, 2, 131, 149, 16, 16), "padding", CAUSAL, "BNSD"),
    ("noncontiguous", (2, 2, 2, 3, 4, 2, 2), "", ALL, "BNSD"),
    ("nan", (1, 2, 2, 3, 4, 2, 2), "", ALL, "BNSD"),
]


def _mask(make: Make, kind: str, shape: tuple[int, ...]) -> Array | None:
    batch, heads, queries, keys = shape
    if kind == "added":
        return make(1, heads, queries, keys)
    if kind == "hidden":  # the first query sees nothing
        mask = make(batch, 1, queries, keys, dtype=bool_)
        mask[:, :, 0] = True
        mask[:, :, 1:, 0] = False
        return mask
    if kind == "padding":
        mask = np.zeros((batch, 1, 1, keys), bool)
        mask[-1, ..., keys // 2 :] = True
        return mask
    return None


def _operands(make: Make, row: tuple[Any, ...]) -> tuple[Any, ...]:
    kind, (batch, heads, own, queries, keys, width, value_width), mask, (low, high), layout = row

    def x(*shape: int) -> Array:  # the axes in the order of the layout
        given = [0] * 4
        for at, n in zip(AXES[layout], shape):
            given[at] = n
        return make(*given) if kind != "noncontiguous" else make.strided(*given)

    query, key, value = (
        x(batch, heads, queries, width),
        x(batch, own, keys, width),
        x(batch, own, keys, value_width),
    )
    if kind == "nan":
        query[0, 1, 1, 1] = np.nan
    return (
        query,
        key,
        value,
        _mask(make, mask, (batch, heads, queries, keys)),
        0.5,
        low,
        high,
        layout,
    )


def attentions(make: Make) -> Iterator[Sample]:
    for row in ROWS:
        yield Sample(_operands(make, row), kind=row[0], grad=max(row[1]) < 30)


def gradients(make: Make) -> Iterator[Sample]:
    for row in ROWS:
        query, key, value, mask, *settings = _operands(make, row)
        out, log_sum = attention(query, key, value, mask, *settings)
        yield Sample(
            (query, key, value, mask, out, log_sum, make(*out.shape), *settings),
            kind=row[0],
            grad=max(row[1]) < 30,
        )


def _turned(x: Array, layout: str, back: bool = False) -> Array:
    perm = np.argsort(AXES[layout]) if back else AXES[layout]
    return np.transpose(x, perm)


def _weights(
    q: Array,
    k: Array,
    mask: Array | None,
    scale: float,
    low: int,
    high: int,
    log_sum: Array | None = None,
) -> Array | tuple[Array, Array]:
    scores = np.einsum("bnqd,bnkd->bnqk", q, k) * scale
    if mask is not None:
        scores = np.where(mask, -np.inf, scores) if mask.dtype == bool else scores + wide(mask)
    ahead = np.arange(k.shape[2]) - np.arange(q.shape[2])[:, None]
    scores = np.where((ahead < low) | (ahead > high), -np.inf, scores)
    if log_sum is None:
        top = scores.max(3, keepdims=True, initial=-np.inf)
        top = np.where(np.isneginf(top), 0.0, top)
        total = np.exp(scores - top).sum(3, keepdims=True)
        log_sum = np.log(np.where(total == 0, 1.0, total)) + top
    return np.exp(scores - log_sum), log_sum


def _sides(query: Array, key: Array, value: Array, layout: str) -> tuple[Array, Array, Array]:
    q, k, v = (_turned(wide(x), layout) for x in (query, key, value))
    times = q.shape[1] // k.shape[1]
    return q, np.repeat(k, times, 1), np.repeat(v, times, 1)


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array,
    scale: float,
    low: int,
    high: int,
    layout: str,
) -> tuple[Array, Array]:
    """Compute attention (Vaswani et al., 2017) in NumPy, as the expected result of a test.

    Args:
        mask: True where a key is hidden from a query, or numbers to add to the scores; None for no
            mask.
        scale: factor of the scores.
        low, high: bounds of the window: a query at position i sees the keys at i + `low` to
            i + `high`, both included.
        layout: order of the axes of query, key and value, such as "BNSD" (`attention_layouts`).

    Returns the result and the log-sum-exp of each query's scores.
    """
    q, k, v = _sides(query, key, value, layout)
    weights, log_sum = _weights(q, k, mask, scale, low, high)
    kept = np.float32 if query.dtype.itemsize == 2 else query.dtype
    return _turned(weights @ v, layout, True).astype(query.dtype), log_sum[..., 0].astype(kept)


def attention_gradient(
    query: Array,
    key: Array,
    value: Array,
    mask: Array,
    out: Array,
    log_sum: Array,
    dout: Array,
    scale: float,
    low: int,
    high: int,
    layout: str,
) -> tuple[Array, Array, Array]:
    """Compute the gradients of attention in NumPy, as expected results of a test.

    `out` and `log_sum` are the results of `attention`, `dout` is the cotangent of `out`; the other
    parameters are those of `attention`. Returns the gradients with respect to query, key and value.
    """
    q, k, v = _sides(query, key, value, layout)
    do = _turned(wide(dout), layout)
    weights, _ = _weights(q, k, mask, scale, low, high, wide(log_sum)[..., None])
    rows = (do * _turned(wide(out), layout)).sum(3, keepdims=True)
    dscores = weights * (do @ v.swapaxes(2, 3) - rows) * scale
    own = key.shape[AXES[layout][1]]

    def shared(x: Array) -> Array:
        return x.reshape(x.shape[0], own, x.shape[1] // own, *x.shape[2:]).sum(2)

    found = dscores @ k, shared(dscores.swapaxes(2, 3) @ q), shared(weights.swapaxes(2, 3) @ do)
    dq, dk, dv = (_turned(x, layout, True).astype(query.dtype) for x in found)
    return dq, dk, dv


# ---- query, key and value in one tensor
# ------------------------------------------------------------

# kind, (batch, heads, heads of keys, positions, features of a head), mask, band, layout
PARTS: list[tuple[str, tuple[int, ...], str, tuple[int, int], str]] = [
    ("normal", (2, 2, 2, 4, 3), "", CAUSAL, "BSND"),
    ("normal", (1, 4, 2, 3, 2), "", (-1, 2), "SBND"),
    ("broadcast", (2, 2, 1, 3, 2), "padding", CAUSAL, "BSND"),
    ("normal", (1, 2, 1, 3, 2), "hidden", ALL, "SBND"),
    ("empty", (0, 2, 2, 3, 2), "", ALL, "BSND"),
    ("empty", (2, 2, 2, 0, 2), "", CAUSAL, "SBND"),
    ("odd", (2, 3, 3, 133, 17), "", CAUSAL, "BSND"),
    ("odd", (1, 2, 1, 67, 16), "added", (-40, 9), "SBND"),
    ("noncontiguous", (2, 2, 2, 3, 2), "", ALL, "BSND"),
    ("nan", (1, 2, 2, 4, 3), "", ALL, "BSND"),
]


def _projected(make: Make, row: tuple[Any, ...]) -> tuple[Any, ...]:
    kind, (batch, heads, own, length, width), mask, (low, high), layout = row
    first = (batch, length) if layout == "BSND" else (length, batch)
    shape = (*first, (heads + 2 * own) * width)
    x = make(*shape) if kind != "noncontiguous" else make.strided(*shape)
    if kind == "nan":
        x[0, 1, 1] = np.nan
    return x, _mask(make, mask, (batch, heads, length, length)), heads, own, 0.5, low, high, layout


def projected(make: Make) -> Iterator[Sample]:
    for row in PARTS:
        yield Sample(_projected(make, row), kind=row[0], grad=max(row[1]) < 30)


def projected_gradients(make: Make) -> Iterator[Sample]:
    for row in PARTS:
        x, mask, *settings = _projected(make, row)
        out, log_sum = self_attention(x, mask, *settings)
        yield Sample(
            (x, mask, out, log_sum, make(*out.shape), *settings), kind=row[0], grad=max(row[1]) < 30
        )


def _apart(x: Array, heads: int, own: int) -> tuple[Array, Array, Array]:
    width = x.shape[2] // (heads + 2 * own)
    query, key, value = (
        part.reshape(*x.shape[:2], -1, width)
        for part in np.split(x, [heads * width, (heads + own) * width], 2)
    )
    return query, key, value


def self_attention(
    x: Array, mask: Array, heads: int, own: int, scale: float, low: int, high: int, layout: str
) -> tuple[Array, Array]:
    """Compute attention in NumPy, for query, key and value that are slices of one array.

    `heads` is the number of query heads, `own` the number of key and value heads; the other
    parameters and the results are those of `attention`.
    """
    if not x.size:
        shape = (*x.shape[:2], heads, x.shape[2] // (heads + 2 * own))
        kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
        return np.zeros(shape, x.dtype), np.zeros([shape[i] for i in AXES[layout][:3]], kept)
    return attention(*_apart(x, heads, own), mask, scale, low, high, layout)


def self_attention_gradient(
    x: Array,
    mask: Array,
    out: Array,
    log_sum: Array,
    dout: Array,
    heads: int,
    own: int,
    scale: float,
    low: int,
    high: int,
    layout: str,
) -> Array:
    """Compute in NumPy the gradient of `self_attention` with respect to its array `x`.

    `out` and `log_sum` are the results of `self_attention`, `dout` is the cotangent of `out`.
    """
    if not x.size:
        return np.zeros_like(x)
    made = attention_gradient(
        *_apart(x, heads, own), mask, out, log_sum, dout, scale, low, high, layout
    )
    return np.concatenate([d.reshape(*x.shape[:2], -1) for d in made], 2)


# ---- the public function ------------------------------------------------------------------------


def scores(make: Make) -> Iterator[Sample]:
    def x(*shape: int) -> Array:
        return make(*shape)

    yield Sample((x(2, 3, 4), x(2, 5, 4), x(2, 5, 4), 2), {"scalar_value": 0.7})
    yield Sample((x(3, 2, 4), x(5, 2, 2), x(5, 2, 2), 2), {"input_layout": "SBH"})
    for mode in (2, 3):
        yield Sample((x(2, 3, 2, 2),) * 3 + (2,), {"input_layout": "BSND", "sparse_mode": mode})
    band = {"input_layout": "BNSD", "sparse_mode": 4, "pre_tokens": 2, "next_tokens": 0}
    yield Sample((x(1, 2, 4, 3), x(1, 2, 5, 3), x(1, 2, 5, 3), 2), band)
    hidden = np.triu(np.ones((4, 5), np.uint8), 2)
    masked = {
        "input_layout": "BNSD",
        "attn_mask": hidden,
        "real_shift": x(1, 2, 4, 5),
        "pre_tokens": 2,
    }
    yield Sample((x(1, 2, 4, 3), x(1, 2, 5, 3), x(1, 2, 5, 3), 2), masked, "broadcast")
    bits = make.index(1, 2, 3, 1, below=256).astype(np.uint8)
    yield Sample((x(1, 3, 4), x(1, 8, 4), x(1, 8, 4), 2), {"keep_prob": 0.5, "drop_mask": bits})
    yield Sample((x(0, 3, 4), x(0, 5, 4), x(0, 5, 4), 2), kind="empty")
    yield Sample((x(3, 7, 33), x(3, 5, 33), x(3, 5, 33), 3), {"sparse_mode": 1}, "odd")
    yield Sample((make.strided(2, 3, 4), x(2, 5, 4), x(2, 5, 4), 2), kind="noncontiguous")
    if make.inexact:
        query = x(2, 3, 4)
        query[1, 1, 1] = np.nan
        yield Sample((query, x(2, 5, 4), x(2, 5, 4), 2), kind="nan")


def score_of(
    query: Array,
    key: Array,
    value: Array,
    head_num: int,
    real_shift: Array | None = None,
    drop_mask: Array | None = None,
    attn_mask: Array | None = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = 99,
    next_tokens: int = 99,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Array:
    """Compute `ops.flash_attention_score` in NumPy, as the expected result of a test.

    The parameters are those of this op.
    """
    layout = {"BSH": "BSND", "SBH": "SBND"}.get(input_layout, input_layout)
    shape = query.shape
    if query.ndim == 3:
        width = shape[2] // head_num
        query, key, value = (
            a.reshape(*a.shape[:2], a.shape[2] // width, width) for a in (query, key, value)
        )
    q, k, v = _sides(query, key, value, layout)
    last = k.shape[2] - q.shape[2]
    low, high = {2: CAUSAL, 3: (-99, last), 4: (last - pre_tokens, last + next_tokens)}.get(
        sparse_mode, ALL
    )
    mask = None if real_shift is None else wide(real_shift)
    if attn_mask is not None:
        low, high = -pre_tokens, next_tokens
        mask = np.where(attn_mask, -np.inf, 0.0 if mask is None else mask)
    weights, _ = _weights(q, k, mask, scalar_value, low, high)
    if drop_mask is not None:
        weights = weights * np.unpackbits(drop_mask, axis=3, bitorder="little") / keep_prob
    return _turned(weights @ v, layout, True).reshape(shape).astype(query.dtype)


X = np.ones((1, 2, 3, 4), np.float32)
FLAT = np.ones((2, 3, 4), np.float32)
BAND = (1.0, -9, 9)
SETTINGS = (*BAND, "BNSD")
SUMS = np.ones((1, 2, 3), np.float32)
WHY = (
    "softmax of sums of products, in whatever order; masks are bools, and the operands of one "
    "call agree"
)
WITHOUT = {"zero_d": "operands have four axes"}
TOL = {float16: 2e-2, bfloat16: 2e-1, float32: 2e-5}
GRAD_TOL = {float16: 2e-1, bfloat16: 2.0, float32: 1e-3}

CASES = [
    OpCase(
        attention_of,
        attentions,
        FLOATING,
        attention,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=WITHOUT,
        errors=[
            Bad(
                (X[0], X, X, None, *SETTINGS),
                ValueError,
                r"query of shape \(2, 3, 4\); wanted the four axes",
            ),
            Bad(
                (X, X, X, None, 1.0, 0, 0, "NBSD"), ValueError, "layout='NBSD'; wanted one of BNSD"
            ),
            Bad((X, X[..., :2], X, None, *SETTINGS), ValueError, "keys as wide as queries"),
            Bad((X, X, X[:, :, :2], None, *SETTINGS), ValueError, "as many values as keys"),
            Bad(
                (X, X[:, [0, 1, 0]], X[:, [0, 1, 0]], None, *SETTINGS),
                ValueError,
                "2 heads of query and 3 of key",
            ),
            Bad(
                (X, X, X, np.ones((1, 2, 3, 2), bool), *SETTINGS),
                ValueError,
                r"mask of shape \(1, 2, 3, 2\)",
            ),
            Bad(
                (X, X, X, np.ones((1, 1, 3, 3), int), *SETTINGS),
                TypeError,
                "mask of int64; wanted bool or float32",
            ),
            Bad(
                (X, X.astype(np.float16), X, None, *SETTINGS),
                TypeError,
                "float32, float16 and float32",
            ),
            Bad((X.astype(int),) * 3 + (None, *SETTINGS), TypeError, "int64"),
        ],
    ),
    OpCase(
        attention_grad,
        gradients,
        FLOATING,
        attention_gradient,
        tol=GRAD_TOL,
        grad_tol={float16: 1.0, bfloat16: 9.0, float32: 5e-3},
        why=WHY,
        without=WITHOUT,
        errors=[
            Bad((X, X, X, None, X, SUMS, X[:, :, :2], *SETTINGS), ValueError, "wanted float32"),
            Bad((X[0], X, X, None, X, SUMS, X, *SETTINGS), ValueError, "wanted the four axes"),
        ],
    ),
    OpCase(
        attention_ops.self_attention,
        projected,
        FLOATING,
        self_attention,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without={"zero_d": "the operand has three axes"},
        errors=[
            Bad(
                (FLAT[..., :3], None, 2, 1, *BAND, "BSND"),
                ValueError,
                r"shape \(2, 3, 3\) .* a multiple of 4",
            ),
            Bad((X, None, 1, 1, *BAND, "BSND"), ValueError, "wanted three axes"),
        ],
    ),
    OpCase(
        self_attention_grad,
        projected_gradients,
        FLOATING,
        self_attention_gradient,
        tol=GRAD_TOL,
        grad_tol={float16: 1.0, bfloat16: 9.0, float32: 5e-3},
        why=WHY,
        without={"zero_d": "the operand has three axes"},
        errors=[
            Bad(
                (FLAT[..., :3], None, X, SUMS, X, 2, 1, *BAND, "BSND"),
                ValueError,
                "a multiple of 4",
            )
        ],
    ),
    OpCase(
        flash_attention_score,
        scores,
        FLOATING,
        score_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without={"zero_d": "operands have three or four axes"},
        errors=[
            Bad(
                (FLAT, FLAT, FLAT, 3),
                ValueError,
                r"head_num=3 for query of shape \(2, 3, 4\); wanted a divisor of 4",
            ),
            Bad((FLAT, FLAT, FLAT, 0), ValueError, "head_num=0; wanted a positive int"),
            Bad((FLAT, FLAT, X, 2), ValueError, "value of shape .* wanted the axes of BSH"),
            Bad((FLAT, [1.0], FLAT, 2), TypeError, "list for key; wanted a Tensor"),
            Bad((FLAT, FLAT[..., :3], FLAT, 2), ValueError, "key of shape .* heads of 2 features"),
            Bad((X, X, X, 3), ValueError, "head_num=3 .* wanted 2", {"input_layout": "BNSD"}),
            Bad(
                (FLAT, FLAT, FLAT, 2),
                ValueError,
                "input_layout='TND'; wanted one of BSH",
                {"input_layout": "TND"},
            ),
            Bad(
                (FLAT, FLAT, FLAT, 2), ValueError, r"sparse_mode=5; wanted 0, 1", {"sparse_mode": 5}
            ),
            Bad(
                (FLAT, FLAT, FLAT, 2),
                ValueError,
                "got prefix, which is not offered",
                {"prefix": (1, 2)},
            ),
            Bad((FLAT, FLAT, FLAT, 2), ValueError, "keep_prob=0; wanted", {"keep_prob": 0}),
            Bad(
                (FLAT, FLAT, FLAT, 2), ValueError, "drop_mask with keep_prob=1", {"drop_mask": FLAT}
            ),
            Bad(
                (FLAT, FLAT, FLAT, 2),
                ValueError,
                "drop_mask of shape",
                {"drop_mask": FLAT, "keep_prob": 0.5},
            ),
            Bad((FLAT, FLAT, FLAT, 2), TypeError, "attn_mask of float32", {"attn_mask": FLAT}),
            Bad((FLAT, FLAT, FLAT, 2), ValueError, "attn_mask of shape", {"attn_mask": FLAT > 0}),
            Bad(
                (FLAT, FLAT, FLAT, 2),
                TypeError,
                "real_shift of float64",
                {"real_shift": np.ones((1, 1, 3, 3))},
            ),
            Bad(
                (FLAT, FLAT, FLAT, 2),
                ValueError,
                "an empty band",
                {"sparse_mode": 4, "pre_tokens": -2, "next_tokens": 1},
            ),
        ],
    ),
]
