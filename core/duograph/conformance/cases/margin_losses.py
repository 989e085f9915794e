"""Conformance test cases of losses with a margin: ranking, hinge, cosine, triplet, multi-class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...dtype import FLOATING, bfloat16, float16, float32
from ...ops.margin_loss import (
    cosine_embedding_loss,
    cosine_margin_rows,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_rows,
    triplet_margin_loss,
)
from ..case import FOUR, ROWS, Array, Bad, Make, OpCase, Sample

TOL = {float16: 2e-2, bfloat16: 2e-1, float32: 2e-5}
GRAD_TOL = {float16: 1e-1, bfloat16: 1.0, float32: 2e-4}
WHY = "means of logarithms"
NO_ROWS = {"zero_d": "there must be rows of classes"}
REDUCTIONS = ("none", "mean", "sum")


def wide(x: Array) -> Array:
    return np.asarray(x).astype(np.float64)


def reduced(loss: Array, reduction: str) -> Array:
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def signs(make: Make, *shape: int) -> Array:
    return (make.rng.integers(0, 2, shape) * 2 - 1).astype(make.dtype.np)


def ranked(make: Make) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        yield Sample((make(3, 4), make(3, 4), signs(make, 3, 4), 0.3, reduction))
    yield Sample((make(), make(), signs(make), 0.0, "mean"), kind="zero_d")
    yield Sample((make(0, 3), make(0, 3), signs(make, 0, 3), 0.0, "sum"), kind="empty")
    yield Sample((make(7, 11), make(7, 11), signs(make, 7, 11), 0.0, "mean"), kind="odd")
    yield Sample(
        (make.strided(4, 5), make(4, 5), signs(make, 4, 5), 0.0, "mean"), kind="noncontiguous"
    )
    x = make(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, make(3, 4), signs(make, 3, 4), 0.0, "none"), kind="nan")


def ranked_of(a: Array, b: Array, y: Array, margin: float, reduction: str) -> Array:
    loss = -wide(y) * (wide(a) - wide(b)) + margin
    return np.asarray(reduced(np.where(loss <= 0, 0.0, loss), reduction)).astype(a.dtype)


def hinged(make: Make) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        yield Sample((make(3, 4), signs(make, 3, 4), 1.0, reduction))
    yield Sample((make(), signs(make), 1.0, "mean"), kind="zero_d")
    yield Sample((make(0, 3), signs(make, 0, 3), 1.0, "sum"), kind="empty")
    yield Sample((make(7, 11), signs(make, 7, 11), 0.5, "mean"), kind="odd")
    yield Sample((make.strided(4, 5), signs(make, 4, 5), 1.0, "mean"), kind="noncontiguous")
    x = make(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, signs(make, 3, 4), 1.0, "none"), kind="nan")


def hinged_of(x: Array, y: Array, margin: float, reduction: str) -> Array:
    far = margin - wide(x)
    far = np.where(far <= 0, 0.0, far)
    return np.asarray(reduced(np.where(y == 1, wide(x), far), reduction)).astype(x.dtype)


def cosines(make: Make) -> Iterator[Sample]:
    for shape, kind in (((3, 4), "normal"), ((0, 3), "empty"), ((13, 7), "odd")):
        yield Sample((make(*shape), make(*shape)), kind=kind)
    yield Sample((make.strided(4, 5), make(4, 5)), kind="noncontiguous")
    x = make(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, make(3, 4)), kind="nan")


def cosine_of(a: Array, b: Array) -> Array:
    x, y = wide(a), wide(b)
    return (
        (x * y).sum(-1) / np.sqrt(((x * x).sum(-1) + 1e-12) * ((y * y).sum(-1) + 1e-12))
    ).astype(a.dtype)


def cosine_margins(make: Make) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        yield Sample((make(5, 4), make(5, 4), np.array([1, -1, 1, -1, -1]), -0.9, reduction))
    for sample in cosines(make):
        n = len(sample.args[0])
        reduction = "none" if sample.kind == "nan" else "sum"
        yield Sample(
            (*sample.args, np.resize(np.array([1, -1]), n), -0.9, reduction), kind=sample.kind
        )


def cosine_margin_of(a: Array, b: Array, target: Array, margin: float, reduction: str) -> Array:
    cos = wide(cosine_of(wide(a), wide(b)))
    far = np.where(cos - margin <= 0, 0.0, cos - margin)
    return np.asarray(reduced(np.where(target == 1, 1 - cos, far), reduction)).astype(a.dtype)


def triplets(make: Make) -> Iterator[Sample]:
    def three(*shape: int) -> tuple[Array, ...]:
        return make(*shape), make(*shape), make(*shape)

    for reduction in REDUCTIONS:
        yield Sample((*three(3, 4), 5.0, 2.0, 1e-6, False, reduction))
    yield Sample((*three(3, 4), 5.0, 2.0, 1e-6, True, "mean"), grad=False)
    yield Sample((*three(0, 3), 5.0, 2.0, 1e-6, False, "sum"), kind="empty")
    yield Sample((*three(13, 7), 5.0, 2.0, 1e-6, False, "mean"), kind="odd")
    yield Sample(
        (make.strided(4, 5), make(4, 5), make(4, 5), 5.0, 2.0, 1e-6, False, "mean"),
        kind="noncontiguous",
    )
    x, y, z = three(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, y, z, 5.0, 2.0, 1e-6, False, "none"), kind="nan")


def triplet_of(
    a: Array, b: Array, c: Array, margin: float, p: float, eps: float, swap: bool, reduction: str
) -> Array:
    def apart(x: Array, y: Array) -> Array:
        return (np.abs(wide(x) - wide(y) + eps) ** p).sum(-1) ** (1 / p)

    far = apart(a, c)
    if swap:
        far = np.minimum(far, apart(b, c))
    loss = apart(a, b) - far + margin
    return np.asarray(reduced(np.where(loss <= 0, 0.0, loss), reduction)).astype(a.dtype)


def multi_margins(make: Make) -> Iterator[Sample]:
    for reduction in REDUCTIONS:
        yield Sample((make(4, 5), make.index(4, below=5), None, 1, 3.0, reduction))
    yield Sample((make(4, 5), make.index(4, below=5), make(5, low=0.5), 2, 9.0, "mean"))
    yield Sample((make(0, 3), make.index(0, below=3), None, 1, 1.0, "sum"), kind="empty")
    yield Sample((make(13, 7), make.index(13, below=7), None, 1, 9.0, "mean"), kind="odd")
    yield Sample(
        (make.strided(4, 5), make.index(4, below=5), None, 1, 9.0, "sum"), kind="noncontiguous"
    )
    x = make(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, make.index(3, below=2), None, 1, 1.0, "none"), kind="nan")


def multi_margin_of(
    x: Array, target: Array, weight: Array, p: int, margin: float, reduction: str
) -> Array:
    n, c = x.shape
    y = wide(x)
    own = y[np.arange(n), target][:, None]
    gap = margin - own + y
    gap = np.where(gap <= 0, 0.0, gap) ** p
    if weight is not None:
        gap = gap * wide(weight)[target][:, None]
    gap[np.arange(n), target] = 0
    return np.asarray(reduced(gap.sum(1) / c, reduction)).astype(x.dtype)


def labelled(make: Make) -> Iterator[Sample]:
    target = np.array([[0, 2, -1, 1], [3, -1, 0, 1], [-1, 0, 1, 2]])
    for reduction in REDUCTIONS:
        yield Sample((make.distinct(3, 4, step=0.09), target, reduction))
    yield Sample((make(0, 3), np.zeros((0, 3), np.int64), "sum"), kind="empty")
    yield Sample(
        (make.distinct(5, 7, step=0.07), make.index(5, 7, below=7, low=-1), "mean"),
        kind="odd",
        grad=False,
    )
    yield Sample((make.strided(3, 4), target, "sum"), kind="noncontiguous", grad=False)
    x = make(3, 4)
    x[1, 2] = np.nan
    yield Sample((x, target, "none"), kind="nan")


CASES = [
    OpCase(
        margin_ranking_loss,
        ranked,
        oracle=ranked_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        errors=[Bad((np.ones(3, np.int64), np.ones(3), np.ones(3)), TypeError, "int64")],
    ),
    OpCase(
        hinge_embedding_loss,
        hinged,
        oracle=hinged_of,
        grad=(0,),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        errors=[Bad((np.ones(3, np.int64), np.ones(3)), TypeError, "int64")],
    ),
    OpCase(
        cosine_margin_rows,
        cosines,
        oracle=cosine_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_ROWS,
        errors=[Bad((np.ones((1, 3), np.int64), np.ones((1, 3))), TypeError, "int64")],
    ),
    OpCase(
        cosine_embedding_loss,
        cosine_margins,
        dtypes=FLOATING,
        oracle=cosine_margin_of,
        grad=(0, 1),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_ROWS,
        errors=[Bad(("text", ROWS, FOUR, 0.0, "mean"), TypeError, "str")],
    ),
    OpCase(
        triplet_margin_loss,
        triplets,
        oracle=triplet_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_ROWS,
        errors=[Bad((np.ones((1, 3), np.int64), ROWS, ROWS), TypeError, "int64")],
    ),
    OpCase(
        multi_margin_loss,
        multi_margins,
        dtypes=FLOATING,
        oracle=multi_margin_of,
        grad=(0,),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_ROWS,
        errors=[Bad(("text", FOUR, None, 1, 1.0, "mean"), TypeError, "str")],
    ),
    OpCase(
        multilabel_margin_rows,
        labelled,
        dtypes=FLOATING,
        grad=(0,),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_ROWS,
        errors=[Bad(("text", FOUR, "mean"), TypeError, "str")],
    ),
]
