"""Losses as functions: over classes, probabilities, distances and sequences.

Every loss is a composite, so it has one gradient in both modes; `reduction` is ``"mean"``, ``"sum"`` or ``"none"``.
"""

from __future__ import annotations

from typing import Any

from ..dtype import FLOATING, int32
from ..errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError
from ..ir.builder import GraphTensor
from ..op import op
from ..tensor import Tensor
from .primitive import Primitive
from .table import P

__all__ = [
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "cosine_embedding_loss",
    "triplet_margin_loss", "margin_ranking_loss", "hinge_embedding_loss", "soft_margin_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "gaussian_nll_loss", "ctc_loss", "softmax_cross_entropy_with_logits",
    "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
    "SigmoidCrossEntropyWithLogits", "BinaryCrossEntropy", "BCEWithLogitsLoss", "NLLLoss",
    "KLDivLoss", "SmoothL1Loss", "L2Loss", "CTCLoss",
]  # fmt: skip

REDUCTIONS = ("mean", "sum", "none")


def _check_reduction(name: str, reduction: Any) -> str:
    if reduction not in REDUCTIONS:
        raise ArgumentValueError(
            f"{name}: got reduction={reduction!r}; wanted 'mean', 'sum' or 'none'"
        )
    return str(reduction)


def _same_shape(name: str, x: Any, y: Any, first: str, second: str) -> None:
    if x.shape != y.shape:
        raise ShapeError(
            f"{name}: {first} has shape {x.shape} and {second} {y.shape}; wanted the same"
        )


def _total(x: Any) -> Any:
    return P.reduce_sum(x, tuple(range(x.ndim)), False)


def _reduced(x: Any, reduction: str) -> Any:
    if reduction == "none":
        return x
    total = _total(x)
    return total if reduction == "sum" else total / max(x.size, 1)


# ---- classes ------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    """(N, C, ...) as (N * ..., C): one row of classes per item."""
    if x.ndim <= 2:
        return x
    perm = (0, *range(2, x.ndim), 1)
    moved = P.transpose(x, perm)
    return P.reshape(moved, (x.size // x.shape[1] if x.shape[1] else 0, x.shape[1]))


@op()
def nll_rows(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
):
    """Negative log likelihood of rows (M, C) of log probabilities for classes (M,)."""
    classes = input.shape[1]
    valid = P.not_equal(target, ignore_index)
    # an ignored target may be no class at all: it reads class 0 and counts nothing
    safe = P.select(valid, target, P.cast(P.fill((), 0, int32), target.dtype))
    column = P.reshape(safe, (*safe.shape, 1))
    picked = P.reshape(P.gather_elements(input, column, 1), safe.shape)
    scale = P.cast(valid, input.dtype)
    if weight is not None:
        scale = scale * P.gather(P.cast(weight, input.dtype), safe, 0)
    loss = P.neg(picked) * scale
    if smoothing:
        spread = input if weight is None else input * P.cast(weight, input.dtype)
        uniform = P.neg(P.reduce_sum(spread, (1,), False)) * P.cast(valid, input.dtype)
        loss = loss * (1.0 - smoothing) + uniform * (smoothing / classes)
    if reduction == "none":
        return loss
    total = _total(loss)
    return total if reduction == "sum" else total / _total(scale)


def _check_classes(name: str, input: Any, target: Any, weight: Any) -> None:
    if not input.dtype.is_floating:
        raise DTypeError(f"{name}: input has dtype {input.dtype.name}; wanted a floating dtype")
    if not target.dtype.is_integer:
        raise DTypeError(f"{name}: target has dtype {target.dtype.name}; wanted integer classes")
    want = input.shape[:1] + input.shape[2:] if input.ndim > 1 else ()
    if input.ndim < 1 or target.shape != want:
        raise ShapeError(
            f"{name}: input has shape {input.shape} and target {target.shape}; "
            f"wanted an input of (N, C, ...) and a target of (N, ...)"
        )
    classes = input.shape[1] if input.ndim > 1 else input.shape[0]
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(f"{name}: weight has shape {weight.shape}; wanted ({classes},)")


def nll_loss(
    inputs: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Negative log likelihood of log probabilities (`mindspore.ops.nll_loss`).

    Args:
        inputs: log probabilities of shape (N, C, ...) or (C,), float.
        target: classes of shape (N, ...) or (), integer.
        weight: one factor per class, shape (C,).
        ignore_index: targets of this value count nothing.
        reduction: ``"mean"`` divides by the sum of the factors.
        label_smoothing: share of the target spread over all classes, in [0, 1].

    Returns:
        Tensor: () or, for ``"none"``, the shape of `target`.

    Raises:
        TypeError: a target that is not integer.
        ValueError: shapes that do not fit, an unknown reduction.
        IndexError: a target outside 0 .. C - 1.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.nll_loss(ms.Tensor([[-1.0, -3.0]]), ms.Tensor([1], ms.int32)))
        3.0
    """
    name = "nll_loss"
    _check_reduction(name, reduction)
    _check_classes(name, inputs, target, weight)
    _check_smoothing(name, label_smoothing)
    rows = P.reshape(inputs, (1, inputs.shape[0])) if inputs.ndim == 1 else _rows(inputs)
    flat = P.reshape(target, (target.size,))
    found = P.nll_rows(rows, flat, weight, ignore_index, reduction, float(label_smoothing))
    return P.reshape(found, target.shape) if reduction == "none" else found


def _check_smoothing(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ArgumentValueError(f"{name}: got label_smoothing={value}; wanted a number in [0, 1]")


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits with classes or with probabilities (`mindspore.ops.cross_entropy`).

    Args:
        input: logits of shape (N, C, ...) or (C,), float.
        target: integer classes of shape (N, ...), or probabilities of the shape of `input`.
        weight, ignore_index, reduction, label_smoothing: as `nll_loss`; with probabilities the
            mean is over the items and `ignore_index` has no meaning.

    Returns:
        Tensor: () or, for ``"none"``, (N, ...).

    Raises:
        TypeError, ValueError, IndexError: as `nll_loss`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cross_entropy(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1], ms.int32)))
        0.6931472
    """
    name = "cross_entropy"
    _check_reduction(name, reduction)
    _check_smoothing(name, label_smoothing)
    axis = 0 if input.ndim == 1 else 1
    if target.shape == input.shape and target.dtype.is_floating:
        return P.cross_entropy_with_probabilities(
            input, target, weight, axis, reduction, float(label_smoothing)
        )
    _check_classes(name, input, target, weight)
    return nll_loss(
        P.log_softmax(input, axis), target, weight, ignore_index, reduction, label_smoothing
    )


@op(dtypes=FLOATING)
def cross_entropy_with_probabilities(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    axis: int,
    reduction: str,
    smoothing: float,
):
    """Cross entropy along `axis` with a target distribution."""
    logp = P.log_softmax(input, axis)
    target = P.cast(target, input.dtype)
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / input.shape[axis]
    terms = logp * target
    if weight is not None:
        lead = [1] * input.ndim
        lead[axis] = input.shape[axis]
        terms = terms * P.reshape(P.cast(weight, input.dtype), tuple(lead))
    return _reduced(P.neg(P.reduce_sum(terms, (axis,), False)), reduction)


def softmax_cross_entropy_with_logits(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Loss of each row and its gradient, as the primitive of that name returns them.

    Args:
        logits: (N, C), float.
        labels: (N, C), a distribution a row.

    Returns:
        loss (N,) and softmax(logits) - labels (N, C).
    """
    _same_shape("softmax_cross_entropy_with_logits", logits, labels, "logits", "labels")
    loss = P.cross_entropy_with_probabilities(logits, labels, None, 1, "none", 0.0)
    return loss, P.softmax(logits, 1) - labels


# ---- distances ----------------------------------------------------------------------------------


@op(promote="float")
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean"):
    """Mean of squared differences (`mindspore.ops.mse_loss`).

    Args:
        input, target: Tensors whose shapes broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: an unknown reduction, shapes that do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.mse_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0])))
        2.5
    """
    _check_reduction("mse_loss", reduction)
    d = input - target
    return _reduced(d * d, reduction)


@op(promote="float")
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean"):
    """Mean of absolute differences (`mindspore.ops.l1_loss`); arguments as `mse_loss`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.l1_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0])))
        1.5
    """
    _check_reduction("l1_loss", reduction)
    return _reduced(P.abs(input - target), reduction)


@op(promote="float")
def smooth_l1_loss(input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = "none"):
    """d * d / (2 beta) below `beta`, |d| - beta / 2 above (`mindspore.ops.smooth_l1_loss`).

    Args:
        input, target: Tensors of one shape.
        beta: where it turns from square to linear, above 0.
        reduction: ``"none"`` by default.

    Raises:
        ValueError: `beta` not above 0, other shapes, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.smooth_l1_loss(ms.Tensor([0.5, 3.0]), ms.Tensor([0.0, 0.0])))
        [0.125 2.5  ]
    """
    name = "smooth_l1_loss"
    _check_reduction(name, reduction)
    _same_shape(name, input, target, "input", "target")
    if beta <= 0:
        raise ArgumentValueError(f"{name}: got beta={beta}; wanted a number above 0")
    d = P.abs(input - target)
    return _reduced(P.select(P.less(d, beta), d * d * (0.5 / beta), d - 0.5 * beta), reduction)


@op(promote="float")
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0):
    """d * d / 2 below `delta`, delta (|d| - delta / 2) above (`mindspore.ops.huber_loss`).

    Raises:
        ValueError: `delta` not above 0, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.huber_loss(ms.Tensor([0.5, 3.0]), ms.Tensor([0.0, 0.0]), "none"))
        [0.125 2.5  ]
    """
    _check_reduction("huber_loss", reduction)
    if delta <= 0:
        raise ArgumentValueError(f"huber_loss: got delta={delta}; wanted a number above 0")
    d = P.abs(input - target)
    return _reduced(
        P.select(P.less_equal(d, delta), d * d * 0.5, (d - 0.5 * delta) * delta), reduction
    )


# ---- probabilities ------------------------------------------------------------------------------


def binary_cross_entropy(
    logits: Tensor, labels: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities with targets, elementwise (`mindspore.ops.binary_cross_entropy`).

    Args:
        logits: probabilities in [0, 1], float, any shape.
        labels: targets of the same shape.
        weight: factor that broadcasts to them.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: a probability outside [0, 1] (sigmoid was forgotten), other shapes.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.binary_cross_entropy(ms.Tensor([0.5]), ms.Tensor([1.0])))
        0.6931472
    """
    name = "binary_cross_entropy"
    _check_reduction(name, reduction)
    _same_shape(name, logits, labels, "logits", "labels")
    _check_probabilities(name, logits)
    return P.bce_of(logits, labels, weight, reduction)


def _check_probabilities(name: str, x: Any) -> None:
    """Values outside [0, 1] have no cross entropy; found on the host when there are values."""
    if isinstance(x, GraphTensor) or x.size == 0:
        return
    axes = tuple(range(x.ndim))
    low, high = P.reduce_min(x, axes, False), P.reduce_max(x, axes, False)
    for bound in (float(low), float(high)):
        if bound < 0.0 or bound > 1.0:
            raise ArgumentValueError(
                f"{name}: got the value {bound:g}; wanted probabilities in [0, 1]: apply sigmoid "
                f"first, or use binary_cross_entropy_with_logits (nn.BCEWithLogitsLoss)"
            )


@op(dtypes=FLOATING)
def bce_of(logits: Tensor, labels: Tensor, weight: Tensor | None, reduction: str):
    """Binary cross entropy; logarithms are bounded by -100, as the API whose behaviour is kept."""
    labels = P.cast(labels, logits.dtype)
    low = -100.0
    positive = P.maximum(P.log(logits), low)
    negative = P.maximum(P.log(1.0 - logits), low)
    loss = P.neg(labels * positive + (1.0 - labels) * negative)
    if weight is not None:
        loss = loss * P.cast(weight, logits.dtype)
    return _reduced(loss, reduction)


@bce_of.bprop
def _(logits, labels, weight, out, dout, reduction):
    """(p - y) / (p (1 - p)), its denominator bounded away from 0: finite at p = 0 and 1."""
    labels = P.cast(labels, logits.dtype)
    scale = dout
    if reduction == "mean":
        scale = scale / max(logits.size, 1)
    factor = P.broadcast_to(scale, logits.shape) if reduction != "none" else scale
    if weight is not None:
        factor = factor * P.cast(weight, logits.dtype)
    spread = P.maximum(logits * (1.0 - logits), 1e-12 if logits.dtype.itemsize > 2 else 1e-4)
    from ..op import NO_GRAD
    from .broadcasting import unbroadcast

    d_logits = unbroadcast(factor * (logits - labels) / spread, logits)
    tiny = 1e-38 if logits.dtype.itemsize > 2 else 1e-7
    odds = P.log(P.maximum(1.0 - logits, tiny)) - P.log(P.maximum(logits, tiny))
    return d_logits, unbroadcast(factor * odds, labels), NO_GRAD


@op(dtypes=FLOATING)
def bce_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: str
):
    """max(x, 0) - x y + log(1 + exp(-|x|)), with a factor on the positive part."""
    target = P.cast(target, input.dtype)
    tail = P.log1p(P.exp(P.neg(P.abs(input))))
    if pos_weight is None:
        loss = P.maximum(input, 0.0) - input * target + tail
    else:
        factor = (P.cast(pos_weight, input.dtype) - 1.0) * target + 1.0
        loss = (1.0 - target) * input + factor * (tail + P.maximum(P.neg(input), 0.0))
    if weight is not None:
        loss = loss * P.cast(weight, input.dtype)
    return _reduced(loss, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sigmoid and binary cross entropy in one, stable for large logits
    (`mindspore.ops.binary_cross_entropy_with_logits`).

    Args:
        input: logits, float, any shape.
        target: targets of the same shape.
        weight: factor that broadcasts to them.
        pos_weight: factor of the positive part, likewise.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: other shapes, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.binary_cross_entropy_with_logits(ms.Tensor([0.0]), ms.Tensor([1.0])))
        0.6931472
    """
    name = "binary_cross_entropy_with_logits"
    _check_reduction(name, reduction)
    _same_shape(name, input, target, "input", "target")
    return P.bce_with_logits(input, target, weight, pos_weight, reduction)


@op(name="kl_div", promote="float")
def kl_div_of(logits: Tensor, labels: Tensor, reduction: str):
    """labels * (log labels - logits), 0 where labels is 0."""
    positive = P.greater(labels, 0.0)
    safe = P.select(positive, labels, P.fill((), 1.0, labels.dtype))
    terms = labels * (P.log(safe) - logits)
    terms = P.select(positive, terms, P.fill((), 0.0, labels.dtype))
    if reduction == "batchmean":
        return _total(terms) / max(terms.shape[0] if terms.ndim else 1, 1)
    return _reduced(terms, reduction)


def kl_div(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Kullback-Leibler divergence of log probabilities from targets (`mindspore.ops.kl_div`).

    Args:
        logits: log probabilities, float.
        labels: probabilities of the same shape.
        reduction: ``"mean"``, ``"batchmean"`` (sum over the first axis' length), ``"sum"`` or ``"none"``.

    Raises:
        ValueError: other shapes, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.kl_div(ms.Tensor([0.0, -1.0]), ms.Tensor([0.0, 1.0]), "sum"))
        1.0
    """
    if reduction != "batchmean":
        _check_reduction("kl_div", reduction)
    _same_shape("kl_div", logits, labels, "logits", "labels")
    return kl_div_of(logits, labels, reduction)


# ---- margins ------------------------------------------------------------------------------------


def _relu(x: Any) -> Any:
    return P.maximum(x, 0.0)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos for target 1, max(0, cos - margin) for target -1
    (`mindspore.ops.cosine_embedding_loss`).

    Args:
        input1, input2: (N, D) or (D,), float.
        target: 1 or -1, shape (N,) or ().
        margin: in [-1, 1].

    Raises:
        ValueError: shapes that do not fit, `margin` outside [-1, 1].

    Examples:
        >>> import duograph as ms
        >>> a = ms.Tensor([[1.0, 0.0]])
        >>> print(ms.ops.cosine_embedding_loss(a, a, ms.Tensor([-1])))
        1.0
    """
    name = "cosine_embedding_loss"
    _check_reduction(name, reduction)
    _same_shape(name, input1, input2, "input1", "input2")
    if not -1.0 <= margin <= 1.0:
        raise ArgumentValueError(f"{name}: got margin={margin}; wanted a number in [-1, 1]")
    return P.cosine_margin(input1, input2, target, float(margin), reduction)


@op(dtypes=FLOATING)
def cosine_margin_rows(input1: Tensor, input2: Tensor):
    """Cosine of the angle between rows."""
    axes = (input1.ndim - 1,)
    dot = P.reduce_sum(input1 * input2, axes, False)
    eps = 1e-12
    one = P.reduce_sum(input1 * input1, axes, False) + eps
    two = P.reduce_sum(input2 * input2, axes, False) + eps
    return dot / P.sqrt(one * two)


@op()
def cosine_margin(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str):
    """Cosine embedding loss."""
    cos = P.cosine_margin_rows(input1, input2)
    far = _relu(cos - margin)
    zero = P.fill((), 0.0, cos.dtype)
    loss = P.select(P.equal(target, 1), 1.0 - cos, P.select(P.equal(target, -1), far, zero))
    return _reduced(loss, reduction)


def _distance(x: Any, y: Any, p: float, eps: float) -> Any:
    d = x - y + eps
    axes = (d.ndim - 1,)
    if p == 2:
        return P.sqrt(P.reduce_sum(d * d, axes, False))
    if p == 1:
        return P.reduce_sum(P.abs(d), axes, False)
    return P.pow(P.reduce_sum(P.pow(P.abs(d), float(p)), axes, False), 1.0 / p)


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
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0) over rows
    (`mindspore.ops.triplet_margin_loss`).

    Args:
        anchor, positive, negative: (N, D) or (D,), float.
        margin: above 0.
        p: order of the norm.
        eps: added to each difference.
        swap: take the smaller of d(anchor, negative) and d(positive, negative).

    Raises:
        ValueError: an unknown reduction, shapes that do not broadcast.

    Examples:
        >>> import duograph as ms
        >>> a, b = ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0]])
        >>> print(ms.ops.triplet_margin_loss(a, b, a))
        6.0
    """
    _check_reduction("triplet_margin_loss", reduction)
    near = _distance(anchor, positive, p, eps)
    far = _distance(anchor, negative, p, eps)
    if swap:
        far = P.minimum(far, _distance(positive, negative, p, eps))
    return _reduced(_relu(near - far + margin), reduction)


@op(dtypes=FLOATING)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
):
    """max(0, -target (input1 - input2) + margin) (`mindspore.ops.margin_ranking_loss`).

    Examples:
        >>> import duograph as ms
        >>> x, y = ms.Tensor([1.0]), ms.Tensor([3.0])
        >>> print(ms.ops.margin_ranking_loss(x, y, ms.Tensor([1.0])))
        2.0
    """
    _check_reduction("margin_ranking_loss", reduction)
    return _reduced(_relu(P.neg(target) * (input1 - input2) + margin), reduction)


@op(dtypes=FLOATING)
def hinge_embedding_loss(
    inputs: Tensor, targets: Tensor, margin: float = 1.0, reduction: str = "mean"
):
    """x for target 1, max(0, margin - x) for target -1 (`mindspore.ops.hinge_embedding_loss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.hinge_embedding_loss(ms.Tensor([0.25]), ms.Tensor([-1.0])))
        0.75
    """
    _check_reduction("hinge_embedding_loss", reduction)
    return _reduced(P.select(P.equal(targets, 1), inputs, _relu(margin - inputs)), reduction)


@op(promote="float")
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean"):
    """log(1 + exp(-target x)) (`mindspore.ops.soft_margin_loss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.soft_margin_loss(ms.Tensor([0.0]), ms.Tensor([1.0])))
        0.6931472
    """
    _check_reduction("soft_margin_loss", reduction)
    x = P.neg(target) * input
    return _reduced(_relu(x) + P.log1p(P.exp(P.neg(P.abs(x)))), reduction)


@op(composite=True)
def multi_margin_rows(
    input: Tensor, target: Tensor, weight: Tensor | None, p: int, margin: float, reduction: str
):
    """Multi-class hinge loss of rows."""
    classes = input.shape[1]
    column = P.reshape(target, (*target.shape, 1))
    own = P.gather_elements(input, column, 1)
    gap = _relu(margin - own + input)
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * P.reshape(P.gather(weight, target, 0), column.shape)
    is_own = P.equal(P.iota(input.shape, 1, target.dtype), column)
    gap = P.select(is_own, P.fill((), 0.0, input.dtype), gap)
    return _reduced(P.reduce_sum(gap, (1,), False) / classes, reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Multi-class hinge loss (`mindspore.ops.multi_margin_loss`).

    Args:
        input: scores (N, C), float.
        target: classes (N,), integer.
        p: 1 or 2, the power of each margin.
        margin: the margin.
        weight: one factor per class (C,).

    Raises:
        ValueError: `p` neither 1 nor 2, shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.multi_margin_loss(ms.Tensor([[0.0, 1.0]]), ms.Tensor([0])))
        1.0
    """
    name = "multi_margin_loss"
    _check_reduction(name, reduction)
    if p not in (1, 2):
        raise ArgumentValueError(f"{name}: got p={p!r}; wanted 1 or 2")
    if input.ndim != 2 or target.shape != input.shape[:1]:
        raise ShapeError(
            f"{name}: input has shape {input.shape} and target {target.shape}; wanted (N, C) and (N,)"
        )
    return P.multi_margin_rows(input, target, weight, p, float(margin), reduction)


@op(composite=True)
def multilabel_margin_rows(input: Tensor, target: Tensor, reduction: str):
    """Multi-label hinge loss of rows (N, C); the labels of a row end at the first -1."""
    n, c = input.shape
    ended = P.less(target, 0)
    before = P.cumsum(P.cast(ended, int32), 1, False, False)
    valid = P.equal(before, 0)
    safe = P.cast(P.select(valid, target, P.cast(P.fill((), 0, int32), target.dtype)), int32)
    own = P.gather_elements(input, safe, 1)
    hits = P.equal(P.reshape(safe, (n, c, 1)), P.iota((n, c, c), 2, int32))
    hits = P.logical_and(hits, P.reshape(valid, (n, c, 1)))
    is_label = P.reduce_any(hits, (1,), False)
    gap = _relu(1.0 - (P.reshape(own, (n, c, 1)) - P.reshape(input, (n, 1, c))))
    use = P.logical_and(P.reshape(valid, (n, c, 1)), P.reshape(P.logical_not(is_label), (n, 1, c)))
    gap = P.select(use, gap, P.fill((), 0.0, input.dtype))
    return _reduced(P.reduce_sum(gap, (1, 2), False) / c, reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Multi-label hinge loss (`mindspore.ops.multilabel_margin_loss`).

    Args:
        input: scores (N, C) or (C,), float.
        target: labels of each row, ended by the first -1; the shape of `input`.

    Examples:
        >>> import duograph as ms
        >>> x = ms.Tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> print(ms.ops.multilabel_margin_loss(x, ms.Tensor([[3, 0, -1, 1]])))
        0.85
    """
    name = "multilabel_margin_loss"
    _check_reduction(name, reduction)
    _same_shape(name, input, target, "input", "target")
    if input.ndim == 1:
        found = P.multilabel_margin_rows(
            P.reshape(input, (1, input.size)), P.reshape(target, (1, input.size)), reduction
        )
        return P.reshape(found, ()) if reduction == "none" else found
    return P.multilabel_margin_rows(input, target, reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Mean over classes of the binary cross entropy of logits
    (`mindspore.ops.multilabel_soft_margin_loss`).

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.multilabel_soft_margin_loss(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1.0, 0.0]])))
        0.6931472
    """
    name = "multilabel_soft_margin_loss"
    _check_reduction(name, reduction)
    _same_shape(name, input, target, "input", "target")
    terms = P.bce_with_logits(input, target, weight, None, "none")
    rows = P.reduce_mean(terms, (terms.ndim - 1,), False)
    if reduction == "none":
        return rows
    axes = tuple(range(rows.ndim))
    return (
        P.reduce_mean(rows, axes, False) if reduction == "mean" else P.reduce_sum(rows, axes, False)
    )


@op(dtypes=FLOATING)
def gaussian_nll_of(x: Tensor, target: Tensor, var: Tensor, full: bool, eps: float, reduction: str):
    """Gaussian negative log likelihood."""
    bounded = P.stop_gradient(P.maximum(var, eps) - var) + var
    d = x - target
    loss = (P.log(bounded) + d * d / bounded) * 0.5
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return _reduced(loss, reduction)


def gaussian_nll_loss(
    x: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of targets under Gaussians (`mindspore.ops.gaussian_nll_loss`).

    Args:
        x: means.
        target: the same shape.
        var: variances, the same shape or one that broadcasts; bounded below by `eps`.
        full: add the constant log(2 pi) / 2.

    Examples:
        >>> import duograph as ms
        >>> one = ms.Tensor([1.0])
        >>> print(ms.ops.gaussian_nll_loss(one, ms.Tensor([3.0]), one))
        2.0
    """
    _check_reduction("gaussian_nll_loss", reduction)
    return P.gaussian_nll_of(x, target, var, bool(full), float(eps), reduction)


# ---- sequences ----------------------------------------------------------------------------------

# Log of "impossible": far below any path, far from overflow when some are added.
_NEVER = -1e30


@op(composite=True)
def ctc_alpha(log_probs: Tensor, labels: Tensor, skip: Tensor):
    """Forward variables of CTC in logarithms: (T, N, L) for extended labels (N, L).

    Source: Graves et al., Connectionist Temporal Classification, ICML 2006, equations 6 and 7.
    """
    steps, batch, _ = log_probs.shape
    length = labels.shape[1]
    dtype = log_probs.dtype
    never = P.fill((batch, 2), _NEVER, dtype)
    at: Any = None
    found = []
    for t in range(steps):
        row = P.reshape(
            P.strided_slice(log_probs, (t, 0, 0), (t + 1, *log_probs.shape[1:]), (1, 1, 1)),
            log_probs.shape[1:],
        )
        emit = P.gather_elements(row, labels, 1)
        if at is None:
            first = P.less(P.iota((batch, length), 1, int32), 2)
            at = P.select(first, emit, P.fill((), _NEVER, dtype))
        else:
            padded = P.concat((never, at), 1)
            one = P.strided_slice(padded, (0, 1), (batch, length + 1), (1, 1))
            two = P.strided_slice(padded, (0, 0), (batch, length), (1, 1))
            two = P.select(skip, two, P.fill((), _NEVER, dtype))
            top = P.stop_gradient(P.maximum(P.maximum(at, one), two))
            total = P.exp(at - top) + P.exp(one - top) + P.exp(two - top)
            at = top + P.log(total) + emit
        found.append(P.reshape(at, (1, batch, length)))
    return P.concat(tuple(found), 0)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """Connectionist temporal classification (`mindspore.ops.ctc_loss`).

    Args:
        log_probs: (T, N, C) log probabilities, or (T, C).
        targets: (N, S) classes, or all targets one after another.
        input_lengths, target_lengths: N ints each: Tensor, tuple or list.
        blank: the class that stands for nothing.
        reduction: ``"mean"`` divides each loss by its target length first.
        zero_infinity: losses of targets that no path reaches are 0 rather than infinite.

    Returns:
        The loss, and the logarithms of the forward variables (N, T, 2 S + 1).

    Raises:
        ValueError: lengths or shapes that do not fit.

    Examples:
        >>> import duograph as ms
        >>> log_probs = ms.ops.log_softmax(ms.ops.zeros((2, 1, 2)), -1)
        >>> loss, _ = ms.ops.ctc_loss(log_probs, ms.Tensor([[1]], ms.int32), (2,), (1,))
        >>> print(loss)
        0.28768212
    """
    import numpy as np

    name = "ctc_loss"
    _check_reduction(name, reduction)
    single = log_probs.ndim == 2
    if single:
        log_probs = P.reshape(log_probs, (log_probs.shape[0], 1, log_probs.shape[1]))
    if log_probs.ndim != 3:
        raise ShapeError(f"{name}: log_probs has shape {log_probs.shape}; wanted (T, N, C)")
    steps, batch, classes = log_probs.shape
    in_len, out_len = (_lengths(name, x, batch) for x in (input_lengths, target_lengths))
    table = np.asarray(targets.asnumpy())
    if table.ndim == 1 and not (single and table.size == int(out_len.sum())):
        pieces = np.split(table, np.cumsum(out_len)[:-1]) if batch else []
    else:
        pieces = [row[:n] for row, n in zip(table.reshape(batch, -1), out_len, strict=True)]
    longest = int(out_len.max(initial=0))
    if (in_len > steps).any() or (in_len < 0).any():
        raise ArgumentValueError(
            f"{name}: got input_lengths {in_len.tolist()}; wanted 0 to {steps}"
        )
    labels = np.full((batch, 2 * longest + 1), blank, np.int32)
    for i, piece in enumerate(pieces):
        if len(piece) != out_len[i]:
            raise ArgumentValueError(
                f"{name}: got {len(piece)} targets for item {i}; wanted target_lengths {out_len[i]}"
            )
        labels[i, 1 : 2 * len(piece) : 2] = piece
    if ((labels < 0) | (labels >= classes)).any():
        raise ArgumentValueError(f"{name}: got a target outside 0 .. {classes - 1}")
    skip = np.zeros(labels.shape, bool)
    skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    alpha = P.ctc_alpha(log_probs, Tensor(labels), Tensor(skip))
    loss = _ctc_read(alpha, in_len, out_len)
    unreachable = P.greater(loss, -_NEVER * 0.5)
    limit = 0.0 if zero_infinity else float("inf")
    loss = P.select(unreachable, P.fill((), limit, loss.dtype), loss)
    if reduction == "mean":
        shown = loss / Tensor(np.maximum(out_len, 1).astype(np.float32))
        shown = P.reduce_mean(shown, (0,), False)
    elif reduction == "sum":
        shown = P.reduce_sum(loss, (0,), False)
    else:
        shown = P.reshape(loss, ()) if single else loss
    return shown, P.transpose(alpha, (1, 0, 2))


def _lengths(name: str, value: Any, batch: int) -> Any:
    import numpy as np

    found = np.asarray(value.asnumpy() if isinstance(value, Tensor) else value).reshape(-1)
    if found.size != batch:
        raise ArgumentValueError(
            f"{name}: got {found.size} lengths; wanted one for each of {batch}"
        )
    return found.astype(np.int64)


def _ctc_read(alpha: Any, in_len: Any, out_len: Any) -> Any:
    """-log of the two ways to end, read at each item's own length."""
    import numpy as np

    steps, batch, length = alpha.shape
    flat = P.reshape(alpha, (alpha.size,))
    row = np.maximum(in_len - 1, 0) * batch * length + np.arange(batch) * length
    last = P.gather(flat, Tensor(row + 2 * out_len), 0)
    before = P.gather(flat, Tensor(row + np.maximum(2 * out_len - 1, 0)), 0)
    empty = Tensor(out_len == 0)
    before = P.select(empty, P.fill((), _NEVER, alpha.dtype), before)
    top = P.stop_gradient(P.maximum(last, before))
    return P.neg(top + P.log(P.exp(last - top) + P.exp(before - top)))


# ---- primitive classes --------------------------------------------------------------------------


class SoftmaxCrossEntropyWithLogits(Primitive):
    """Primitive: (loss (N,), gradient (N, C)) of logits and one-hot labels."""

    def __call__(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return softmax_cross_entropy_with_logits(logits, labels)


class SparseSoftmaxCrossEntropyWithLogits(Primitive):
    """Primitive: mean cross entropy of logits and classes, or its gradient when `is_grad`."""

    def __init__(self, is_grad: bool = False) -> None:
        super().__init__()
        self.is_grad = is_grad

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        if not self.is_grad:
            return cross_entropy(logits, labels)
        from ..autodiff.transforms import grad

        return grad(cross_entropy)(logits, labels)


class SigmoidCrossEntropyWithLogits(Primitive):
    """Primitive: elementwise binary cross entropy of logits."""

    def __call__(self, logits: Tensor, label: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(logits, label, None, None, "none")


class BinaryCrossEntropy(Primitive):
    """Primitive form of `binary_cross_entropy`."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _check_reduction("BinaryCrossEntropy", reduction)

    def __call__(self, logits: Tensor, labels: Tensor, weight: Tensor | None = None) -> Tensor:
        return binary_cross_entropy(logits, labels, weight, self.reduction)


class BCEWithLogitsLoss(Primitive):
    """Primitive form of `binary_cross_entropy_with_logits`."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _check_reduction("BCEWithLogitsLoss", reduction)

    def __call__(
        self,
        input: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        pos_weight: Tensor | None = None,
    ) -> Tensor:
        return binary_cross_entropy_with_logits(input, target, weight, pos_weight, self.reduction)


class NLLLoss(Primitive):
    """Primitive: (loss, sum of the weights) of log probabilities, classes and class weights."""

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__()
        self.reduction = _check_reduction("NLLLoss", reduction)
        self.ignore_index = ignore_index

    def __call__(self, logits: Tensor, labels: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        loss = nll_loss(logits, labels, weight, self.ignore_index, self.reduction)
        valid = P.cast(P.not_equal(labels, self.ignore_index), weight.dtype)
        safe = P.maximum(labels, 0)
        return loss, _total(P.gather(weight, safe, 0) * valid)


class KLDivLoss(Primitive):
    """Primitive form of `kl_div`."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        return kl_div(logits, labels, self.reduction)


class SmoothL1Loss(Primitive):
    """Primitive form of `smooth_l1_loss`."""

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__()
        self.beta = beta
        self.reduction = _check_reduction("SmoothL1Loss", reduction)

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        return smooth_l1_loss(logits, labels, self.beta, self.reduction)


class L2Loss(Primitive):
    """Primitive: sum of squares, halved."""

    def __call__(self, input_x: Tensor) -> Tensor:
        if not input_x.dtype.is_floating:
            raise DTypeError(f"L2Loss: got {input_x.dtype.name}; wanted a floating dtype")
        return _total(input_x * input_x) * 0.5


class CTCLoss(Primitive):
    """Primitive: loss (N,) and gradient of CTC for raw scores and sparse labels.

    Called as (x (T, N, C), labels_indices (M, 2), labels_values (M,), sequence_length (N,)). The blank is the last
    class. `ctc_merge_repeated=True` and `preprocess_collapse_repeated=False` are what is offered.
    """

    def __init__(
        self,
        preprocess_collapse_repeated: bool = False,
        ctc_merge_repeated: bool = True,
        ignore_longer_outputs_than_inputs: bool = False,
    ) -> None:
        super().__init__()
        if preprocess_collapse_repeated or not ctc_merge_repeated:
            raise ArgumentValueError(
                "CTCLoss: wanted preprocess_collapse_repeated=False and ctc_merge_repeated=True, "
                "the published form of the loss"
            )
        self.ignore_longer = ignore_longer_outputs_than_inputs

    def __call__(
        self, x: Tensor, labels_indices: Tensor, labels_values: Tensor, sequence_length: Tensor
    ) -> tuple[Tensor, Tensor]:
        import numpy as np

        from ..autodiff.transforms import value_and_grad

        if x.ndim != 3:
            raise ShapeError(f"CTCLoss: x has shape {x.shape}; wanted (T, N, C)")
        batch, classes = x.shape[1], x.shape[2]
        rows = labels_indices.asnumpy()[:, 0]
        lengths = np.bincount(rows, minlength=batch)
        if lengths.size != batch:
            raise ArgumentError(f"CTCLoss: got labels for item {rows.max()}; there are {batch}")

        def total(scores: Tensor) -> tuple[Tensor, Tensor]:
            log_probs = P.log_softmax(scores, 2)
            loss, _ = ctc_loss(
                log_probs, labels_values, sequence_length, lengths, classes - 1, "none",
                self.ignore_longer,
            )  # fmt: skip
            return _total(loss), loss

        (_, loss), gradient = value_and_grad(total, has_aux=True)(x)
        return loss, gradient
