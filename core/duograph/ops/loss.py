"""Losses as functions, over classes, distances and probabilities.

Users, loss layers and `loss_primitives.py` call them. Every loss is made of other ops, so that
eager and compiled code have the same gradient. The argument `reduction` is ``"mean"``, ``"sum"`` or
``"none"``.
"""

from __future__ import annotations

from ..call_cache import cached_call
from ..dtype import FLOATING, int32, int64, promote
from ..errors import ArgumentValueError, DTypeError, ProbabilityError, ShapeError
from ..ir.builder import GraphTensor
from ..op import NO_GRAD, op
from ..op_signature import Axis
from ..runtime_state import staged_builder
from ..tensor import Tensor
from . import elementwise
from .activation import logsigmoid
from .comparison import greater, less, less_equal, not_equal
from .creation import cast, cast_to, fill
from .elementwise import maximum, neg
from .exponential import log
from .gather_scatter import checked_labels, gather, gather_elements_by
from .linalg import widened
from .logic import select_by
from .movement import stop_gradient
from .primitive import primitive
from .reduction import reduce_max, reduce_min
from .shape_primitives import broadcast_to, reduce_sum, reshape_to, transpose_by, unbroadcast
from .softmax_ops import log_softmax_along, softmax_along

__all__ = [
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div",
    "softmax_cross_entropy_with_logits",
]  # fmt: skip

REDUCTIONS = ("mean", "sum", "none")


def check_reduction(name: str, reduction: object) -> str:
    """Return `reduction` if it is "mean", "sum" or "none", else raise ArgumentValueError.

    `name` is the user's function in errors.
    """
    if reduction not in REDUCTIONS:
        raise ArgumentValueError(
            f"{name}: got reduction={reduction!r}; wanted 'mean', 'sum' or 'none'"
        )
    return str(reduction)


def same_shape(name: str, x: Tensor, y: Tensor, first: str, second: str) -> None:
    """Raise ShapeError unless `x` and `y` have the same shape.

    The message names the user's function `name` and the operands, `first` and `second`.
    """
    if x.shape != y.shape:
        raise ShapeError(
            f"{name}: {first} has shape {x.shape} and {second} {y.shape}; wanted the same"
        )


def total_of(x: Tensor) -> Tensor:
    """Return the sum of all elements."""
    return reduce_sum(x, tuple(range(x.ndim)), False)


def reduced(x: Tensor, reduction: str) -> Tensor:
    """Return the mean or sum of all elements, or `x` itself if `reduction` is "none"."""
    if reduction == "none":
        return x
    total = total_of(x)
    return total if reduction == "sum" else total / max(x.size, 1)


# ---- classes ------------------------------------------------------------------------------------


def _rows(x: Tensor) -> Tensor:
    """Reshape class scores from (N, C, ...) to rows (N * ..., C), one per item."""
    if x.ndim <= 2:
        return x
    perm = (0, *range(2, x.ndim), 1)
    moved = transpose_by(x, perm)
    return reshape_to(moved, (x.size // x.shape[1] if x.shape[1] else 0, x.shape[1]))


@op()
def nll_rows(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
    owner: str,
):
    """Composite op: negative log likelihood of classes (M,) under log probabilities (M, C).

    Args:
        weight: factor of each class (C,), or None.
        ignore_index: targets of this value do not count.
        reduction: "mean", "sum" or "none".
        smoothing: fraction of the target that is distributed evenly over all classes.
        owner: the function that the user called, for errors.
    """
    classes = input.shape[1]
    if target.dtype not in (int32, int64):
        target = cast_to(target, int64)  # `ignore_index` need not be a number of a narrow dtype
    valid = not_equal(target, ignore_index)
    # an ignored target may be out of range, so it reads class 0 with weight 0
    safe = select_by(valid, target, cast_to(fill((), 0, int32), target.dtype))
    safe = checked_labels(owner, safe, classes)
    column = reshape_to(safe, (*safe.shape, 1))
    picked = reshape_to(gather_elements_by(input, column, 1), safe.shape)
    scale = cast_to(valid, input.dtype)
    if weight is not None:
        scale = scale * gather(cast_to(weight, input.dtype), safe, 0)
    # a factor of 0 is not enough, since an ignored row may hold -inf
    loss = select_by(valid, neg(picked) * scale, fill((), 0.0, input.dtype))
    if smoothing:
        weighted = input if weight is None else input * cast_to(weight, input.dtype)
        uniform = neg(reduce_sum(weighted, (1,), False)) * cast_to(valid, input.dtype)
        loss = loss * (1.0 - smoothing) + uniform * (smoothing / classes)
    if reduction == "none":
        return loss
    total = total_of(loss)
    return total if reduction == "sum" else total / total_of(scale)


def _check_classes(name: str, input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    if not input.dtype.is_floating:
        raise DTypeError(
            f"{name}: predictions have dtype {input.dtype.name}; wanted a floating dtype"
        )
    if not target.dtype.is_integer:
        raise DTypeError(
            f"{name}: labels have dtype {target.dtype.name}; wanted integers, the numbers of the "
            "classes (.astype(ms.int32) converts them)"
        )
    want = input.shape[:1] + input.shape[2:] if input.ndim > 1 else ()
    if input.ndim < 1 or target.shape != want:
        column = target.shape == (*want, 1)
        wanted = f"labels of shape {want}, one for each row of the predictions (N, C, ...)"
        raise ShapeError(
            f"{name}: predictions have shape {input.shape} and labels {target.shape}; wanted "
            + (wanted if input.ndim else "predictions of (N, C, ...) and labels of (N, ...)")
            + (" (.squeeze(-1) takes the last axis away)" if column else "")
        )
    classes = input.shape[1] if input.ndim > 1 else input.shape[0]
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(
            f"{name}: got class weights (weight=) of shape {weight.shape} and logits of {classes} "
            f"classes; wanted weights of shape ({classes},)"
        )


@cached_call
def nll_loss(
    inputs: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the negative log likelihood of classes under log probabilities
    (`mindspore.ops.nll_loss`).

    Args:
        inputs: log probabilities of shape (N, C, ...) or (C,), float.
        target: classes of shape (N, ...) or (), integer.
        weight: one factor per class, shape (C,).
        ignore_index: targets of this value do not count.
        reduction: ``"mean"`` (the sum divided by the sum of the factors), ``"sum"`` or ``"none"``.
        label_smoothing: fraction of the target distributed evenly over all classes, in [0, 1].

    Returns:
        Tensor: () or, for ``"none"``, the shape of `target`.

    Raises:
        TypeError: the target is not integer.
        ValueError: the shapes do not match, an unknown reduction.
        IndexError: a target outside 0 .. C - 1.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.nll_loss(ms.Tensor([[-1.0, -3.0]]), ms.Tensor([1], ms.int32)))
        3.0
    """
    name = "nll_loss"
    return _loss_of_classes(name, inputs, target, weight, ignore_index, reduction, label_smoothing)


def _loss_of_classes(
    name: str,
    inputs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Check the operands of the negative log likelihood loss and compute it.

    `inputs` has log-probabilities (C,) or (N, C, ...), `target` the class indices. `name` is the
    public function that error messages mention.
    """
    check_reduction(name, reduction)
    _check_classes(name, inputs, target, weight)
    _check_smoothing(name, label_smoothing)
    rows = reshape_to(inputs, (1, inputs.shape[0])) if inputs.ndim == 1 else _rows(inputs)
    flat = reshape_to(target, (target.size,))
    found = nll_rows(rows, flat, weight, ignore_index, reduction, float(label_smoothing), name)
    return reshape_to(found, target.shape) if reduction == "none" else found


def _check_smoothing(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ArgumentValueError(f"{name}: got label_smoothing={value}; wanted a number in [0, 1]")


@cached_call
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of logits with classes or with probabilities
    (`mindspore.ops.cross_entropy`).

    Args:
        input: logits of shape (N, C, ...) or (C,), float.
        target: integer classes of shape (N, ...), or probabilities of the shape of `input`.
        weight, ignore_index, reduction, label_smoothing: arguments of `nll_loss`. With
            probabilities, the mean is over the items, and `ignore_index` is not used.

    Returns:
        Tensor: () or, for ``"none"``, (N, ...).

    Raises:
        TypeError, ValueError, IndexError: for the reasons of `nll_loss`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.cross_entropy(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1], ms.int32)))
        0.6931472
    """
    name = "cross_entropy"
    check_reduction(name, reduction)
    _check_smoothing(name, label_smoothing)
    axis = 0 if input.ndim == 1 else 1
    if target.shape == input.shape and target.dtype.is_floating:
        return cross_entropy_with_probabilities(
            input, target, weight, axis, reduction, float(label_smoothing)
        )
    _check_classes(name, input, target, weight)
    log_p = log_softmax_along(input, axis)
    return _loss_of_classes(name, log_p, target, weight, ignore_index, reduction, label_smoothing)


@op(dtypes=FLOATING)
def cross_entropy_with_probabilities(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    axis: Axis,
    reduction: str,
    smoothing: float,
):
    """Composite op: cross entropy of logits with target distributions along `axis`.

    `weight` has a factor for each class or is None; `smoothing` is the fraction of the target that
    is distributed evenly over all classes.
    """
    logp = log_softmax_along(input, axis)
    target = cast_to(target, input.dtype)
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / input.shape[axis]
    terms = logp * target
    if weight is not None:
        lead = [1] * input.ndim
        lead[axis] = input.shape[axis]
        terms = terms * reshape_to(cast_to(weight, input.dtype), tuple(lead))
    return reduced(neg(reduce_sum(terms, (axis,), False)), reduction)


@primitive("SoftmaxCrossEntropyWithLogits()(logits, labels)")
@cached_call
def softmax_cross_entropy_with_logits(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross entropy of each row and its gradient with respect to the logits.

    Args:
        logits: (N, C), float.
        labels: (N, C), one distribution per row.

    Returns:
        loss (N,) and softmax(logits) - labels (N, C).
    """
    same_shape("softmax_cross_entropy_with_logits", logits, labels, "logits", "labels")
    loss = cross_entropy_with_probabilities(logits, labels, None, 1, "none", 0.0)
    return loss, softmax_along(logits, 1) - labels


# ---- distances ----------------------------------------------------------------------------------


@op(promote="float")
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean"):
    """Return the mean of squared differences (`mindspore.ops.mse_loss`).

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
    check_reduction("mse_loss", reduction)
    d = input - target
    return reduced(d * d, reduction)


@op(promote="float")
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean"):
    """Return the mean of absolute differences (`mindspore.ops.l1_loss`).

    The arguments are those of `mse_loss`.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.l1_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0])))
        1.5
    """
    check_reduction("l1_loss", reduction)
    return reduced(elementwise.abs(input - target), reduction)


@op(promote="float")
def smooth_l1_loss(input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = "none"):
    """Return d * d / (2 beta) if |d| < beta, else |d| - beta / 2, for differences d.

    See `mindspore.ops.smooth_l1_loss`.

    Args:
        input, target: Tensors of the same shape.
        beta: value at which the loss changes from quadratic to linear, above 0.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: `beta` not above 0, other shapes, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.smooth_l1_loss(ms.Tensor([0.5, 3.0]), ms.Tensor([0.0, 0.0])))
        [0.125 2.5  ]
    """
    name = "smooth_l1_loss"
    check_reduction(name, reduction)
    same_shape(name, input, target, "input", "target")
    if beta <= 0:
        raise ArgumentValueError(f"{name}: got beta={beta}; wanted a number above 0")
    d = elementwise.abs(input - target)
    return reduced(select_by(less(d, beta), d * d * (0.5 / beta), d - 0.5 * beta), reduction)


@op(promote="float")
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0):
    """Return d * d / 2 if |d| <= delta, else delta * (|d| - delta / 2), for differences d.

    See `mindspore.ops.huber_loss`.

    Raises:
        ValueError: `delta` not above 0, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.huber_loss(ms.Tensor([0.5, 3.0]), ms.Tensor([0.0, 0.0]), "none"))
        [0.125 2.5  ]
    """
    check_reduction("huber_loss", reduction)
    if delta <= 0:
        raise ArgumentValueError(f"huber_loss: got delta={delta}; wanted a number above 0")
    d = elementwise.abs(input - target)
    return reduced(
        select_by(less_equal(d, delta), d * d * 0.5, (d - 0.5 * delta) * delta), reduction
    )


# ---- probabilities ------------------------------------------------------------------------------


def _check_probabilities(name: str, x: Tensor) -> None:
    """Raise ProbabilityError if an element of `x` is outside [0, 1].

    In a compiled function, the check is made when the function runs, not when it is traced. `name`
    is the user's function in errors.
    """
    builder = staged_builder()
    if x.size == 0 or (builder is None and isinstance(x, GraphTensor)):
        return
    axes = tuple(range(x.ndim))
    x = stop_gradient(x)
    low, high = reduce_min(x, axes, False), reduce_max(x, axes, False)

    def check(*bounds: float | Tensor) -> None:
        for bound in map(float, bounds):
            if bound < 0.0 or bound > 1.0:
                raise ProbabilityError(
                    f"{name}: got the value {bound:g}; wanted probabilities in [0, 1]: apply "
                    f"sigmoid "
                    f"first, or use binary_cross_entropy_with_logits (nn.BCEWithLogitsLoss)"
                )

    if builder is None:
        check(low, high)
    else:  # compiled: check when the function runs
        builder.evaluation.check_later(check, (low, high), "check_probabilities")


@op(name="bce_of", dtypes=FLOATING)
def binary_cross_entropy(logits: Tensor, labels: Tensor, weight: Tensor | None, reduction: str):
    """Return the cross entropy of probabilities with targets, elementwise
    (`mindspore.ops.binary_cross_entropy`).

    Args:
        logits: probabilities in [0, 1], float, any shape.
        labels: targets of the same shape.
        weight: factor of each loss; it broadcasts to the shape of `logits`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: a probability outside [0, 1] (sigmoid was forgotten), other shapes.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.binary_cross_entropy(ms.Tensor([0.5]), ms.Tensor([1.0])))
        0.6931472
    """
    x = widened(logits)
    labels = cast_to(labels, x.dtype)
    positive = log(maximum(x, 1e-12))
    negative = log(maximum(1.0 - x, 1e-12))
    loss = neg(labels * positive + (1.0 - labels) * negative)
    if weight is not None:
        loss = loss * cast_to(weight, x.dtype)
    return cast_to(reduced(loss, reduction), logits.dtype)


@binary_cross_entropy.normaliser
def _(logits: Tensor, labels: Tensor, weight: Tensor | None = None, reduction: str = "mean"):
    name = "binary_cross_entropy"
    check_reduction(name, reduction)
    same_shape(name, logits, labels, "logits", "labels")
    _check_probabilities(name, logits)
    return (logits, labels, weight, reduction)


@binary_cross_entropy.bprop
def _(logits, labels, weight, out, dout, reduction):
    """Return the gradients of binary cross entropy by its probabilities, labels and weight.

    The gradient by a probability p with label y is (p - y) / (p (1 - p)); the denominator is
    clamped, so that the gradient is finite.
    """
    labels = cast_to(labels, logits.dtype)
    scale = dout
    if reduction == "mean":
        scale = scale / max(logits.size, 1)
    factor = broadcast_to(scale, logits.shape) if reduction != "none" else scale
    if weight is not None:
        factor = factor * cast_to(weight, logits.dtype)
    variance = maximum(logits * (1.0 - logits), 1e-12 if logits.dtype.itemsize > 2 else 1e-4)

    d_logits = unbroadcast(factor * (logits - labels) / variance, logits)
    tiny = 1e-12 if logits.dtype.itemsize > 2 else 1e-7
    positive, negative = log(maximum(logits, tiny)), log(maximum(1.0 - logits, tiny))
    d_labels = unbroadcast(factor * (negative - positive), labels)
    if weight is None:
        return d_logits, d_labels, NO_GRAD
    loss = neg(labels * positive + (1.0 - labels) * negative)
    d_weight = unbroadcast(broadcast_to(scale, logits.shape) * loss, weight)
    return d_logits, d_labels, cast_to(d_weight, weight.dtype)


@op(name="bce_with_logits", dtypes=FLOATING)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: str
):
    """Compute sigmoid and binary cross entropy in one, stable for large logits
    (`mindspore.ops.binary_cross_entropy_with_logits`).

    Args:
        input: logits, float, any shape.
        target: targets of the same shape; the result has their dtype.
        weight: factor of each loss; it broadcasts to the shape of `input`.
        pos_weight: factor of the part for positive targets; it broadcasts to the shape of `input`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ValueError: other shapes, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.binary_cross_entropy_with_logits(ms.Tensor([0.0]), ms.Tensor([1.0])))
        0.6931472
    """
    target = cast_to(target, input.dtype)
    tail = neg(logsigmoid(input))  # log(1 + exp(-x)), with a correct gradient at 0 too
    if pos_weight is not None:
        tail = tail * ((cast_to(pos_weight, input.dtype) - 1.0) * target + 1.0)
    loss = (1.0 - target) * input + tail
    if weight is not None:
        loss = loss * cast_to(weight, input.dtype)
    return reduced(loss, reduction)


@binary_cross_entropy_with_logits.normaliser
def _(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
):
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction)
    same_shape(name, input, target, "input", "target")
    if input.dtype is not target.dtype and input.dtype.is_floating and target.dtype.is_floating:
        wide = promote(input.dtype, target.dtype)
        found = binary_cross_entropy_with_logits.public(
            cast(input, wide), cast(target, wide), weight, pos_weight, reduction
        )
        return cast(found, target.dtype)
    return (input, target, weight, pos_weight, reduction)


@op(promote="float", primitive='KLDivLoss(reduction="mean")(logits, labels)')
def kl_div(logits: Tensor, labels: Tensor, reduction: str):
    """Return the Kullback-Leibler divergence of log probabilities from targets
    (`mindspore.ops.kl_div`).

    Args:
        logits: log probabilities, float.
        labels: probabilities of the same shape.
        reduction: ``"mean"``, ``"batchmean"`` (sum divided by the size of axis 0), ``"sum"`` or
            ``"none"``.

    Raises:
        ValueError: other shapes, an unknown reduction.

    Examples:
        >>> import duograph as ms
        >>> print(ms.ops.kl_div(ms.Tensor([0.0, -1.0]), ms.Tensor([0.0, 1.0]), "sum"))
        1.0
    """
    positive = greater(labels, 0.0)
    safe = select_by(positive, labels, fill((), 1.0, labels.dtype))
    terms = labels * (log(safe) - logits)
    terms = select_by(positive, terms, fill((), 0.0, labels.dtype))
    if reduction == "batchmean":
        return total_of(terms) / max(terms.shape[0] if terms.ndim else 1, 1)
    return reduced(terms, reduction)


@kl_div.normaliser
def _(logits: Tensor, labels: Tensor, reduction: str = "mean"):
    if reduction != "batchmean":
        check_reduction("kl_div", reduction)
    same_shape("kl_div", logits, labels, "logits", "labels")
    return (logits, labels, reduction)
