"""Losses with margins, and the negative log likelihood of Gaussians.

Users and loss layers call them. All are made of other ops, from which they get their gradients.
"""

from __future__ import annotations

from ..call_cache import cached_call
from ..dtype import FLOATING, int32
from ..errors import ArgumentValueError, ShapeError
from ..op import op
from ..tensor import Tensor
from . import elementwise, powers
from .activation import logsigmoid
from .comparison import equal, less
from .creation import cast_to, fill, iota
from .elementwise import maximum, minimum, neg
from .exponential import log
from .gather_scatter import checked_labels, gather, gather_elements_by
from .logic import logical_and, logical_not, select_by
from .loss import binary_cross_entropy_with_logits, check_reduction, reduced, same_shape
from .movement import stop_gradient
from .powers import sqrt
from .reduction import reduce_any, reduce_mean
from .scan import scan_sum
from .shape_primitives import reduce_sum, reshape_to

__all__ = [
    "cosine_embedding_loss", "triplet_margin_loss", "margin_ranking_loss", "hinge_embedding_loss",
    "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "gaussian_nll_loss",
]  # fmt: skip


def _relu(x: Tensor) -> Tensor:
    return maximum(x, 0.0)


@op(dtypes=FLOATING)
def cosine_margin_rows(input1: Tensor, input2: Tensor):
    """Composite op: cosine of the angle between vectors along the last axis of the operands."""
    axes = (input1.ndim - 1,)
    dot = reduce_sum(input1 * input2, axes, False)
    eps = 1e-12
    one = reduce_sum(input1 * input1, axes, False) + eps
    two = reduce_sum(input2 * input2, axes, False) + eps
    return dot / sqrt(one * two)


@op(name="cosine_margin")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str
):
    """Return 1 - cos for target 1 and max(0, cos - margin) for target -1, for the cosine of two
    vectors (`mindspore.ops.cosine_embedding_loss`).

    Args:
        input1, input2: (N, D) or (D,), float.
        target: 1 or -1, shape (N,) or (). The loss is 0 where it is any other number.
        margin: number in [-1, 1].

    Raises:
        ValueError: shapes that do not fit, `margin` outside [-1, 1].

    Examples:
        >>> import duograph as ms
        >>> a = ms.Tensor([[1.0, 0.0]])
        >>> print(ms.ops.cosine_embedding_loss(a, a, ms.Tensor([-1])))
        1.0
    """
    cos = cosine_margin_rows(input1, input2)
    far = _relu(cos - margin)
    zero = fill((), 0.0, cos.dtype)
    loss = select_by(equal(target, 1), 1.0 - cos, select_by(equal(target, -1), far, zero))
    return reduced(loss, reduction)


@cosine_embedding_loss.normaliser
def _(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"):
    name = "cosine_embedding_loss"
    check_reduction(name, reduction)
    same_shape(name, input1, input2, "input1", "input2")
    if not -1.0 <= margin <= 1.0:
        raise ArgumentValueError(f"{name}: got margin={margin}; wanted a number in [-1, 1]")
    return (input1, input2, target, float(margin), reduction)


def _distance(x: Tensor, y: Tensor, p: float, eps: float) -> Tensor:
    d = x - y + eps
    axes = (d.ndim - 1,)
    if p == 2:
        return sqrt(reduce_sum(d * d, axes, False))
    if p == 1:
        return reduce_sum(elementwise.abs(d), axes, False)
    return powers.pow(reduce_sum(powers.pow(elementwise.abs(d), float(p)), axes, False), 1.0 / p)


@op(dtypes=FLOATING)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: str = "mean",
):
    """Return max(d(anchor, positive) - d(anchor, negative) + margin, 0) for distances d of rows
    (`mindspore.ops.triplet_margin_loss`).

    Args:
        anchor, positive, negative: (N, D) or (D,), float.
        margin: number above 0.
        p: order of the norm.
        eps: added to each difference.
        swap: whether to use the smaller of d(anchor, negative) and d(positive, negative).

    Raises:
        ValueError: an unknown reduction, shapes that do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> a, b = ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0]])
        >>> print(ms.ops.triplet_margin_loss(a, b, a).round(decimals=3))
        6.0
    """
    check_reduction("triplet_margin_loss", reduction)
    near = _distance(anchor, positive, p, eps)
    far = _distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, _distance(positive, negative, p, eps))
    return reduced(_relu(near - far + margin), reduction)


@op(dtypes=FLOATING)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
):
    """Return max(0, -target * (input1 - input2) + margin) (`mindspore.ops.margin_ranking_loss`).

    Examples:
        >>> import duograph as ms
        >>> x, y = ms.Tensor([1.0]), ms.Tensor([3.0])
        >>> print(ms.ops.margin_ranking_loss(x, y, ms.Tensor([1.0])))
        2.0
    """
    check_reduction("margin_ranking_loss", reduction)
    return reduced(_relu(neg(target) * (input1 - input2) + margin), reduction)


@op(dtypes=FLOATING)
def hinge_embedding_loss(
    inputs: Tensor, targets: Tensor, margin: float = 1.0, reduction: str = "mean"
):
    """Return x for target 1 and max(0, margin - x) for target -1, for inputs x.

    See `mindspore.ops.hinge_embedding_loss`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.hinge_embedding_loss(ms.Tensor([0.25]), ms.Tensor([-1.0])))
        0.75
    """
    check_reduction("hinge_embedding_loss", reduction)
    return reduced(select_by(equal(targets, 1), inputs, _relu(margin - inputs)), reduction)


@op(promote="float")
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean"):
    """Return log(1 + exp(-target * input)) (`mindspore.ops.soft_margin_loss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.soft_margin_loss(ms.Tensor([0.0]), ms.Tensor([1.0])))
        0.6931472
    """
    check_reduction("soft_margin_loss", reduction)
    return reduced(neg(logsigmoid(target * input)), reduction)


@op(name="multi_margin_rows", composite=True)
def multi_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, p: int, margin: float, reduction: str
):
    """Return the multi-class hinge loss (`mindspore.ops.multi_margin_loss`).

    Args:
        input: scores (N, C), float.
        target: classes (N,), integer.
        p: 1 or 2, the power of each margin.
        margin: least difference of scores that causes no loss.
        weight: one factor per class (C,).

    Raises:
        ValueError: `p` neither 1 nor 2, shapes that do not fit.
        IndexError: a class outside 0 .. C - 1.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.multi_margin_loss(ms.Tensor([[0.0, 1.0]]), ms.Tensor([0])))
        1.0
    """
    classes = input.shape[1]
    target = checked_labels("multi_margin_loss", target, classes)
    column = reshape_to(target, (*target.shape, 1))
    own = gather_elements_by(input, column, 1)
    gap = _relu(margin - own + input)
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * reshape_to(gather(weight, target, 0), column.shape)
    is_own = equal(iota(input.shape, 1, target.dtype), column)
    gap = select_by(is_own, fill((), 0.0, input.dtype), gap)
    return reduced(reduce_sum(gap, (1,), False) / classes, reduction)


@multi_margin_loss.normaliser
def _(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1,
    weight: Tensor | None = None,
    reduction: str = "mean",
):
    name = "multi_margin_loss"
    check_reduction(name, reduction)
    if p not in (1, 2):
        raise ArgumentValueError(f"{name}: got p={p!r}; wanted 1 or 2")
    if input.ndim != 2 or target.shape != input.shape[:1]:
        raise ShapeError(
            f"{name}: predictions have shape {input.shape} and labels {target.shape}; wanted "
            "(N, C) and (N,)"
        )
    return (input, target, weight, p, float(margin), reduction)


@op(composite=True)
def multilabel_margin_rows(input: Tensor, target: Tensor, reduction: str):
    """Composite op: multi-label hinge loss of scores (N, C).

    The labels of a row of `target` (N, C) are its numbers before the first negative one.
    `reduction` is "mean", "sum" or "none".
    """
    n, c = input.shape
    ended = less(target, 0)
    before = scan_sum(cast_to(ended, int32), 1, False, False)
    valid = equal(before, 0)
    safe = cast_to(select_by(valid, target, cast_to(fill((), 0, int32), target.dtype)), int32)
    safe = checked_labels("multilabel_margin_loss", safe, c)
    own = gather_elements_by(input, safe, 1)
    hits = equal(reshape_to(safe, (n, c, 1)), iota((n, c, c), 2, int32))
    hits = logical_and(hits, reshape_to(valid, (n, c, 1)))
    is_label = reduce_any(hits, (1,), False)
    gap = _relu(1.0 - (reshape_to(own, (n, c, 1)) - reshape_to(input, (n, 1, c))))
    use = logical_and(reshape_to(valid, (n, c, 1)), reshape_to(logical_not(is_label), (n, 1, c)))
    gap = select_by(use, gap, fill((), 0.0, input.dtype))
    return reduced(reduce_sum(gap, (1, 2), False) / c, reduction)


@cached_call
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the multi-label hinge loss (`mindspore.ops.multilabel_margin_loss`).

    Args:
        input: scores (N, C) or (C,), float.
        target: labels of each row, up to the first negative number; the shape is that of `input`.

    Raises:
        ValueError: an unknown reduction, shapes that differ.
        IndexError: a label of C or more before the first negative number.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> print(ms.ops.multilabel_margin_loss(x, ms.Tensor([[3, 0, -1, 1]])).round(decimals=4))
        0.85
    """
    name = "multilabel_margin_loss"
    check_reduction(name, reduction)
    same_shape(name, input, target, "input", "target")
    if input.ndim == 1:
        found = multilabel_margin_rows(
            reshape_to(input, (1, input.size)), reshape_to(target, (1, input.size)), reduction
        )
        return reshape_to(found, ()) if reduction == "none" else found
    return multilabel_margin_rows(input, target, reduction)


@cached_call
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return the mean over classes of the binary cross entropy of logits
    (`mindspore.ops.multilabel_soft_margin_loss`).

    Examples:
        >>> import duograph as ms
        >>> x, y = ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1.0, 0.0]])
        >>> print(ms.ops.multilabel_soft_margin_loss(x, y))
        0.6931472
    """
    name = "multilabel_soft_margin_loss"
    check_reduction(name, reduction)
    same_shape(name, input, target, "input", "target")
    terms = binary_cross_entropy_with_logits(input, target, weight, None, "none")
    rows = reduce_mean(terms, (terms.ndim - 1,), False)
    if reduction == "none":
        return rows
    axes = tuple(range(rows.ndim))
    return reduce_mean(rows, axes, False) if reduction == "mean" else reduce_sum(rows, axes, False)


@op(name="gaussian_nll_of", dtypes=FLOATING)
def gaussian_nll_loss(
    x: Tensor, target: Tensor, var: Tensor, full: bool, eps: float, reduction: str
):
    """Return the negative log likelihood of targets under Gaussian distributions
    (`mindspore.ops.gaussian_nll_loss`).

    Args:
        x: means.
        target: Tensor of the same shape.
        var: variances, the same shape or one that broadcasts; bounded below by `eps`.
        full: whether to add the constant log(2 pi) / 2.

    Examples:
        >>> import duograph as ms
        >>> one = ms.Tensor([1.0])
        >>> print(ms.ops.gaussian_nll_loss(one, ms.Tensor([3.0]), one))
        2.0
    """
    bounded = stop_gradient(maximum(var, eps) - var) + var
    d = x - target
    loss = (log(bounded) + d * d / bounded) * 0.5
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return reduced(loss, reduction)


@gaussian_nll_loss.normaliser
def _(
    x: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
):
    check_reduction("gaussian_nll_loss", reduction)
    return (x, target, var, bool(full), float(eps), reduction)
