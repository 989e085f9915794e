"""Conformance test cases of losses over distances, classes and likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dtype import FLOATING, bfloat16, float16, float32, float64, int32
from ...ops import loss as loss_ops
from ...ops.ctc import ctc_alpha
from ...ops.loss import (
    binary_cross_entropy_with_logits,
    cross_entropy_with_probabilities,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_rows,
    smooth_l1_loss,
)
from ...ops.margin_loss import gaussian_nll_loss, soft_margin_loss
from ..case import FOUR, ROWS, Array, Bad, Make, OpCase, Oracle, Sample

TOL = {float16: 2e-2, bfloat16: 2e-1, float32: 2e-5}
GRAD_TOL = {float16: 1e-1, bfloat16: 1.0, float32: 2e-4}
WHY = "means of logarithms"
NO_ROWS = {"zero_d": "there must be rows of classes"}
REDUCTIONS = ("none", "mean", "sum")


def wide(x: Array) -> Array:
    return np.asarray(x).astype(np.float64)


def reduced(loss: Array, reduction: str) -> Array:
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def pairs(
    low: float = -2.0,
    high: float = 2.0,
    second: tuple[float, float] | None = None,
    broadcast: bool = True,
    **kwargs: Any,
) -> Callable[[Make], Iterator[Sample]]:
    """Return a function that yields test samples of a loss of two tensors, for each reduction.

    The first tensor is between `low` and `high`, the second between the two numbers in `second`, if
    given, else in the same range. `broadcast` says whether the tensors may have different shapes.
    `kwargs` are passed to every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def two(*shape: int) -> tuple[Array, Array]:
            bounds = second or (low, high)
            return make(*shape, low=low, high=high), make(*shape, low=bounds[0], high=bounds[1])

        for reduction in REDUCTIONS:
            yield Sample(two(3, 4), {**kwargs, "reduction": reduction})
        rest = {**kwargs, "reduction": "mean"}
        yield Sample(two(), rest, "zero_d")
        yield Sample(two(0, 3), {**kwargs, "reduction": "sum"}, "empty")
        yield Sample(two(7, 11, 3), rest, "odd")
        x, y = two(4, 5)
        yield Sample((np.repeat(x, 2, 1)[:, ::2], y), rest, "noncontiguous")
        if broadcast:
            yield Sample((two(3, 4)[0], two(4)[1]), rest, "broadcast")
        x, y = two(3, 4)
        x[1, 2] = np.nan
        yield Sample((x, y), {**kwargs, "reduction": "none"}, "nan")

    return samples


def loss_of(each: Oracle) -> Oracle:
    """Return a test oracle of a loss: `each` of the elements, then the requested reduction."""

    def oracle(x: Array, y: Array, reduction: str, **kwargs: Any) -> Array:
        return np.asarray(reduced(each(wide(x), wide(y), **kwargs), reduction)).astype(x.dtype)

    return oracle


def huber(x: Array, y: Array, delta: float) -> Array:
    d = np.abs(x - y)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def kl(x: Array, y: Array) -> Array:
    return np.where(y > 0, y * (np.log(np.where(y > 0, y, 1)) - x), 0)


def classes(make: Make) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        for smoothing in (0.0, 0.2):
            for weight in (None, make(5, low=0.5)):
                yield Sample(
                    (
                        make(4, 5),
                        make.index(4, below=5),
                        weight,
                        -100,
                        reduction,
                        smoothing,
                        "nll_loss",
                    )
                )
    target = make.index(6, below=3, dtype=int32)
    target[1] = target[4] = -100
    yield Sample((make(6, 3), target, None, -100, "mean", 0.0, "nll_loss"))
    yield Sample(
        (make(0, 3), make.index(0, below=3), None, -100, "sum", 0.0, "nll_loss"), kind="empty"
    )
    yield Sample(
        (make(13, 7), make.index(13, below=7), None, 3, "mean", 0.0, "nll_loss"), kind="odd"
    )
    yield Sample(
        (make.strided(4, 5), make.index(4, below=5), None, -100, "sum", 0.0, "nll_loss"),
        kind="noncontiguous",
    )
    x = make(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, make.index(3, below=2), None, -100, "none", 0.0, "nll_loss"), kind="nan")


def classes_of(
    x: Array,
    target: Array,
    weight: Array,
    ignore: int,
    reduction: str,
    smoothing: float,
    owner: str,
) -> Array:
    logp = wide(x)
    valid = target != ignore
    safe = np.where(valid, target, 0)
    w = np.ones(x.shape[1]) if weight is None else wide(weight)
    share = np.where(valid, w[safe], 0.0)
    loss = np.where(valid, -logp[np.arange(len(x)), safe] * w[safe], 0.0)
    if smoothing:
        loss = (
            loss * (1 - smoothing)
            + np.where(valid, -(logp * w).sum(1), 0.0) * smoothing / x.shape[1]
        )
    found = (
        loss
        if reduction == "none"
        else loss.sum()
        if reduction == "sum"
        else loss.sum() / share.sum()
    )
    return np.asarray(found).astype(x.dtype)


def distributions(make: Make) -> Iterator[Sample]:
    def target(*shape: int) -> Array:
        return make(*shape, low=0.1, high=0.9)

    for reduction in REDUCTIONS:
        yield Sample((make(3, 4), target(3, 4), None, 1, reduction, 0.0))
        yield Sample((make(2, 3, 4), target(2, 3, 4), make(3, low=0.5), 1, reduction, 0.1))
    yield Sample((make(0, 3), target(0, 3), None, 1, "sum", 0.0), kind="empty")
    yield Sample((make(13, 7), target(13, 7), None, 1, "mean", 0.0), kind="odd")
    yield Sample((make.strided(4, 5), target(4, 5), None, 1, "sum", 0.0), kind="noncontiguous")
    x = make(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, target(3, 4), None, 1, "none", 0.0), kind="nan")


def distribution_of(
    x: Array, target: Array, weight: Array, axis: int, reduction: str, smoothing: float
) -> Array:
    y = wide(x)
    if not y.size:
        return np.zeros((), x.dtype)
    logp = y - y.max(axis, keepdims=True)
    logp = logp - np.log(np.exp(logp).sum(axis, keepdims=True))
    t = wide(target) * (1 - smoothing) + smoothing / x.shape[axis]
    terms = logp * t
    if weight is not None:
        terms = terms * wide(weight).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.asarray(reduced(-terms.sum(axis), reduction)).astype(x.dtype)


def weighted(low: float, high: float, positive: bool) -> Callable[[Make], Iterator[Sample]]:
    """Return a function that yields test samples of a weighted loss.

    A sample has predictions between `low` and `high`, targets, weights and, if `positive`, weights
    of the positive class.
    """

    def samples(make: Make) -> Iterator[Sample]:
        def three(*shape: int) -> tuple[Array, ...]:
            rest = (None, None) if positive else (None,)
            return make(*shape, low=low, high=high), make(*shape, low=0.1, high=0.9), *rest

        for reduction in REDUCTIONS:
            yield Sample((*three(3, 4), reduction))
        x, y = three(3, 4)[:2]
        more = (make(3, 4, low=0.5), make(4, low=0.5)) if positive else (make(3, 4, low=0.5),)
        yield Sample((x, y, *more, "mean"), grad=positive)
        yield Sample((*three(), "mean"), kind="zero_d")
        yield Sample((*three(0, 3), "sum"), kind="empty")
        yield Sample((*three(7, 11, 3), "mean"), kind="odd")
        x, *rest = three(4, 5)
        yield Sample((np.repeat(x, 2, 1)[:, ::2], *rest, "mean"), kind="noncontiguous")
        x, *rest = three(3, 4)
        x[1, 2] = np.nan
        yield Sample((x, *rest, "none"), kind="nan")

    return samples


def bce_of(x: Array, y: Array, weight: Array, reduction: str) -> Array:
    p, t = wide(x), wide(y)
    loss = -(t * np.log(np.maximum(p, 1e-12)) + (1 - t) * np.log(np.maximum(1 - p, 1e-12)))
    loss = loss if weight is None else loss * wide(weight)
    return np.asarray(reduced(loss, reduction)).astype(x.dtype)


def bce_logits_of(x: Array, y: Array, weight: Array, positive: Array, reduction: str) -> Array:
    p, t = wide(x), wide(y)
    soft = np.log1p(np.exp(-np.abs(p))) + np.maximum(-p, 0)
    loss = (1 - t) * p + (1 if positive is None else (wide(positive) - 1) * t + 1) * soft
    loss = loss if weight is None else loss * wide(weight)
    return np.asarray(reduced(loss, reduction)).astype(x.dtype)


def likelihoods(make: Make) -> Iterator[Sample]:
    def three(*shape: int) -> tuple[Array, ...]:
        return make(*shape), make(*shape), make(*shape, low=0.5)

    for reduction in REDUCTIONS:
        yield Sample((*three(3, 4), reduction == "sum", 1e-6, reduction))
    yield Sample((*three(), False, 1e-6, "mean"), kind="zero_d")
    yield Sample((*three(0, 3), False, 1e-6, "sum"), kind="empty")
    yield Sample((*three(7, 11), False, 1e-6, "mean"), kind="odd")
    yield Sample(
        (make.strided(4, 5), make(4, 5), make(4, 5, low=0.5), False, 1e-6, "mean"),
        kind="noncontiguous",
    )
    x, y, v = three(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, y, v, False, 1e-6, "none"), kind="nan")


def likelihood_of(
    x: Array, target: Array, var: Array, full: bool, eps: float, reduction: str
) -> Array:
    v = np.maximum(wide(var), eps)
    loss = (np.log(v) + (wide(x) - wide(target)) ** 2 / v) / 2 + (
        np.log(2 * np.pi) / 2 if full else 0
    )
    return np.asarray(reduced(loss, reduction)).astype(x.dtype)


def alignments(make: Make) -> Iterator[Sample]:
    def three(t: int, n: int, c: int, length: int) -> tuple[Array, ...]:
        labels = np.where(np.arange(length) % 2, make.index(n, length, below=c, low=1), 0)
        skip = (np.arange(length) % 2 == 1) & (np.arange(length) > 1)
        return -np.abs(make(t, n, c)), labels, np.broadcast_to(skip, (n, length)).copy()

    yield Sample(three(4, 2, 3, 5))
    yield Sample(three(1, 2, 3, 3))
    yield Sample(three(3, 0, 3, 3), kind="empty")
    yield Sample(three(7, 3, 5, 7), kind="odd")
    x, labels, skip = three(4, 2, 3, 3)
    yield Sample((np.repeat(x, 2, 2)[..., ::2], labels, skip), kind="noncontiguous")
    x[1, 1, 0] = np.nan
    yield Sample((x, labels, skip), kind="nan")


def alignment_of(x: Array, labels: Array, skip: Array) -> Array:
    y = wide(x)
    steps, n, _ = y.shape
    out = np.full((steps, n, labels.shape[1]), -np.inf)
    rows = np.arange(n)[:, None]
    for t in range(steps):
        emit = y[t][rows, labels]
        if t == 0:
            out[0, :, :2] = emit[:, :2]
            continue
        paths = out[t - 1].copy()
        paths[:, 1:] = np.logaddexp(paths[:, 1:], out[t - 1][:, :-1])
        two = np.full_like(paths, -np.inf)
        two[:, 2:] = out[t - 1][:, :-2]
        out[t] = np.logaddexp(paths, np.where(skip, two, -np.inf)) + emit
    out[np.isneginf(out)] = -1e30  # as the op writes what no path reaches
    return out.astype(x.dtype)


TEXT = Bad(("text", FOUR), TypeError, "str")
BROADCAST = Bad((ROWS, FOUR), ValueError, r"\(2, 3\).*\(4,\)")
SAME = {"broadcast": "both have one shape"}


CASES = [
    OpCase(
        mse_loss,
        pairs(),
        dtypes=FLOATING,
        oracle=loss_of(lambda x, y: (x - y) ** 2),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=f"{WHY}; others are cast",
        errors=[BROADCAST],
    ),
    OpCase(
        l1_loss,
        pairs(0.5, 2.0, (-2.0, -0.5)),
        dtypes=FLOATING,
        oracle=loss_of(lambda x, y: np.abs(x - y)),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=f"{WHY}; others are cast",
        errors=[BROADCAST],
    ),
    OpCase(
        smooth_l1_loss,
        pairs(beta=3.3, broadcast=False),
        dtypes=FLOATING,
        without=SAME,
        oracle=loss_of(lambda x, y, beta: huber(x, y, beta) / beta),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=f"{WHY}; others are cast",
        errors=[TEXT],
        second=False,
    ),
    OpCase(
        huber_loss,
        pairs(delta=3.3),
        dtypes=FLOATING,
        oracle=loss_of(huber),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=f"{WHY}; others are cast",
        errors=[BROADCAST],
        second=False,
    ),
    OpCase(
        kl_div,
        pairs(second=(0.1, 0.9)),
        dtypes=FLOATING,
        oracle=loss_of(kl),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=f"{WHY}; others are cast",
        errors=[Bad((ROWS, FOUR, "mean"), ValueError, r"\(2, 3\)")],
    ),
    OpCase(
        soft_margin_loss,
        pairs(),
        dtypes=FLOATING,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=f"{WHY}; others are cast",
        oracle=loss_of(lambda x, y: np.logaddexp(0, -x * y)),
        errors=[Bad((ROWS, FOUR), ValueError, r"\(2, 3\)")],
    ),
    OpCase(
        nll_rows,
        classes,
        dtypes=FLOATING,
        oracle=classes_of,
        grad=(0,),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_ROWS,
        errors=[Bad(("text", FOUR, None, 0, "mean", 0.0, "nll_loss"), TypeError, "str")],
    ),
    OpCase(
        cross_entropy_with_probabilities,
        distributions,
        oracle=distribution_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_ROWS,
        errors=[Bad((np.ones((2, 3), np.int64), ROWS, None, 1, "mean", 0.0), TypeError, "int64")],
    ),
    OpCase(
        loss_ops.binary_cross_entropy,
        weighted(0.1, 0.9, False),
        oracle=bce_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        errors=[Bad((np.ones(3, np.int64), np.ones(3), None, "mean"), TypeError, "int64")],
    ),
    OpCase(
        binary_cross_entropy_with_logits,
        weighted(-2.0, 2.0, True),
        oracle=bce_logits_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        errors=[Bad((np.ones(3, np.int64), np.ones(3), None, None, "mean"), TypeError, "int64")],
    ),
    OpCase(
        gaussian_nll_loss,
        likelihoods,
        oracle=likelihood_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        errors=[
            Bad(
                (np.ones(3, np.int64), np.ones(3), np.ones(3), False, 1e-6, "mean"),
                TypeError,
                "int64",
            )
        ],
    ),
    OpCase(
        ctc_alpha,
        alignments,
        dtypes=(float32, float64),
        oracle=alignment_of,
        grad=False,
        tol={float32: 1e-4},
        why="the impossible is -1e30, which halves have not; gradients are tested through ctc_loss",
        without=NO_ROWS,
        errors=[Bad(("text", FOUR, FOUR), TypeError, "str")],
    ),
]
