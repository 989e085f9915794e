"""Attention as one op: softmax(scale * query @ key.T + mask) @ value, and its gradients.

The public function in `attention_functions` and the attention passes call the ops. Backends may
compute them without materialising the matrix of weights. The helpers take and return tensors in the
layout BNSD: the axes are (batch, heads, positions, features).
"""

from __future__ import annotations

from ..backend.attention_layouts import AXES
from ..dtype import FLOATING, bool_, float32, int32
from ..errors import ArgumentValueError, DTypeError, ShapeError
from ..op import NO_GRAD, op
from ..tensor import Tensor
from ..types import TensorType
from .comparison import equal, less
from .creation import cast_to, fill, iota
from .exponential import exp, log
from .linalg import matmul_of, widened
from .logic import select_by
from .movement import concat_by, slice_by, stop_gradient
from .normalization import is_zero
from .reduction import reduce_max
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by, unbroadcast

__all__: list[str] = []  # the ops are for other modules

# The inverse permutations of `AXES`: from BNSD to each layout.
FROM_BNSD = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "SBND": (2, 0, 1, 3)}

# ---- parts of the ops, all in the layout BNSD ---------------------------------------------------


def permuted(x: Tensor, perm: tuple[int, ...]) -> Tensor:
    return x if perm == (0, 1, 2, 3) else transpose_by(x, perm)


def expand_heads(x: Tensor, heads: int) -> Tensor:
    """Repeat key or value heads so that every query head has its own (grouped-query attention).

    `x` has the axes (batch, heads, positions, features). The result has `heads` heads: each head of
    `x` is repeated, next to itself.
    """
    batch, own, length, width = x.shape
    if own == heads:
        return x
    x = broadcast_to(
        reshape_to(x, (batch, own, 1, length, width)), (batch, own, heads // own, length, width)
    )
    return reshape_to(x, (batch, heads, length, width))


def _sum_heads(x: Tensor, own: int) -> Tensor:
    """Sum gradients over the query heads that use the same key or value head.

    `x` has shape (batch, query heads, length, features); the result has `own` heads, the number of
    key or value heads.
    """
    batch, heads, length, width = x.shape
    if own == heads:
        return x
    return reduce_sum(reshape_to(x, (batch, own, heads // own, length, width)), (2,), False)


def scores_of(
    query: Tensor, key: Tensor, mask: Tensor | None, scale: float, low: int, high: int
) -> Tensor:
    """Return scale * query @ key.T + mask, with -inf for hidden keys.

    The operands have the axes (batch, heads, positions, features). A bool `mask` is True for hidden
    keys. Query i sees only the keys i + low to i + high, both included. The scores of 16-bit
    operands are float32.
    """
    queries, keys = query.shape[2], key.shape[2]
    scores = matmul_of(
        widened(query) * scale, expand_heads(widened(key), query.shape[1]), False, True
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


def weights_of(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the softmax over the keys, and the logarithm of each query's sum of exp(scores).

    `scores` has shape (batch, heads, queries, keys), the logarithms have (batch, heads, queries).
    Both results are 0 for a query without visible keys.
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
    """Recompute the attention weights from the saved logarithms, and differentiate the softmax.

    Args:
        kept: (scale, low, high, log_sum): attributes of `attention`, and its second result, the
            logsumexp of each query's scores.
        dout: cotangent of the attention's first result.
        rows: for each query, the sum over features of dout * result (less the cotangent of
            `log_sum`), which the gradient of the softmax subtracts.

    Returns (weights, gradient with respect to the scores).
    """
    scale, low, high, log_sum = kept
    shape = (*log_sum.shape, 1)
    weights = exp(scores_of(query, key, mask, scale, low, high) - reshape_to(log_sum, shape))
    values = expand_heads(widened(value), query.shape[1])
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
    """Return the gradients of query, key and value, and of the scores (the softmax's input).

    The first three have the layout and dtype of their operand. `dout` and `dlog_sum` are the
    cotangents of the two results `out` and `log_sum`.
    """
    q, k, v, o, do = (permuted(x, AXES[layout]) for x in (query, key, value, out, dout))
    rows = reduce_sum(widened(do) * widened(o), (3,), False)
    if dlog_sum is not None:
        rows = rows - dlog_sum
    weights, dscores = _backward(q, k, v, mask, (scale, low, high, log_sum), do, rows)
    dq = matmul_of(dscores, expand_heads(widened(k), q.shape[1])) * scale
    dk = _sum_heads(matmul_of(dscores, widened(q), True, False) * scale, k.shape[1])
    dv = _sum_heads(matmul_of(weights, widened(do), True, False), v.shape[1])
    made = [
        permuted(cast_to(d, x.dtype), FROM_BNSD[layout])
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
    """Composite op: attention, and the logarithm of each query's sum of exp(scores).

    The first result is softmax(scale * query @ key.T + mask) @ value. The operands have four axes
    in the order given by `layout`: B batch, N heads, S positions, D features. key and value may
    have fewer heads; then a group of adjacent query heads uses each of them. mask broadcasts to (B,
    N, queries, keys): True hides a key, and a floating mask is added. Query i attends to keys i +
    low to i + high, both included. The result of a query without visible keys is 0. The second
    result, (B, N, queries), is float32 for 16-bit floats (Dao et al., 2022).
    """
    q, k, v = (permuted(x, AXES[layout]) for x in (query, key, value))
    shape = (*q.shape[:3], v.shape[3])
    if 0 in (*shape, k.shape[2]):
        zeros = fill(shape, 0.0, query.dtype)
        sums = fill(shape[:3], 0.0, float32 if query.dtype.itemsize == 2 else query.dtype)
        return permuted(zeros, FROM_BNSD[layout]), sums
    weights, log_sum = weights_of(scores_of(q, k, mask, scale, low, high))
    out = matmul_of(weights, expand_heads(widened(v), q.shape[1]))
    return permuted(cast_to(out, query.dtype), FROM_BNSD[layout]), log_sum


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
            f"attention: got {query.dtype.name}, {key.dtype.name} and {value.dtype.name}; wanted "
            "one floating dtype"
        )
    own, keys = key_shape[1], key_shape[2]
    if key_shape != (batch, own, keys, width) or value_shape[:3] != key_shape[:3]:
        raise ShapeError(
            f"attention: got query, key and value of shapes {query.shape}, {key.shape} and "
            f"{value.shape} in the layout "
            f"{layout}; wanted one batch, keys as wide as queries, and as many values as keys"
        )
    if own == 0 or heads % own:
        raise ShapeError(
            f"attention: got {heads} heads of query and {own} of key and value; wanted the heads "
            "of query to be a multiple of the others"
        )
    if mask is not None:
        wanted = (batch, heads, queries, keys)
        if mask.ndim != 4 or any(n not in (1, w) for n, w in zip(mask.shape, wanted)):
            raise ShapeError(
                f"attention: got a mask of shape {mask.shape}; wanted {wanted}, or 1 in place of "
                "any"
            )
        if mask.dtype is not bool_ and mask.dtype is not query.dtype:
            raise DTypeError(
                f"attention: got a mask of {mask.dtype.name}; wanted bool or {query.dtype.name}"
            )
    made = (batch, heads, queries, value_shape[3])
    sums = float32 if query.dtype.itemsize == 2 else query.dtype
    out = TensorType.of(tuple([made[i] for i in FROM_BNSD[layout]]), query.dtype)
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
    """Return the cotangent of an attention mask through which no gradient flows.

    It is the marker NO_GRAD if there is no mask or a bool mask, else zeros of the mask's shape and
    dtype.
    """
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
    """Composite op: gradients of `attention` with respect to query, key and value.

    `out` and `log_sum` are the results of `attention`, and `dout` is the cotangent of `out`. The
    cotangent of `log_sum` is taken as zero.
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
            f"attention_grad: got results {out!r}, {log_sum!r} and a gradient {dout!r}; wanted "
            f"{wanted[0]!r}, "
            f"{wanted[1]!r} and {wanted[0]!r}"
        )
    return query, key, value


# The pass passes/self_attention creates these ops where one projection computes query, key and
# value.


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
    """Composite op: `attention` of query, key and value concatenated along the last axis of `x`.

    `x` has the axes B and S in the order of `layout` (BSND or SBND) and (heads + 2 * own) * D
    features: `heads` heads of the query, `own` heads of the key, and `own` heads of the value.
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
    """Composite op: gradient of `self_attention` with respect to `x`.

    `out` and `log_sum` are the results of `self_attention`, `dout` is the cotangent of `out`.
    """
    query, key, value = _parts(x, heads, own)
    made = attention_grad(query, key, value, mask, out, log_sum, dout, scale, low, high, layout)
    return concat_by([reshape_to(d, (*x.shape[:2], d.shape[2] * d.shape[3])) for d in made], 2)


def _parts(x: Tensor, heads: int, own: int) -> list[Tensor]:
    """Split a concatenation of query, key and value into the three, and their features into heads.

    `x` has shape (batch, length, (heads + 2 * own) * width). The result is a list of three tensors
    of shape (batch, length, heads or own, width); `own` is the number of key and value heads.
    """
    if x.ndim != 3 or heads < 1 or own < 1 or x.shape[2] % (heads + 2 * own):
        raise ShapeError(
            f"self_attention: got a tensor of shape {x.shape} for {heads} heads of query and {own} "
            "of key; "
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
