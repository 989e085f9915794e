"""Primitive classes over functions, loops as callables, bands of matrices, other spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

T = ms.Tensor
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 4
Y = X[::-1].copy() + 0.5
ROW = np.array([3.0, 1.0, 2.0], np.float32)
IDS = np.array([0, 0, 2])

Row = tuple[Callable[..., Any], tuple[Any, ...], Any]
ROWS: dict[str, Row] = {
    "AddExt": (lambda x, y: ops.AddExt()(x, y, 2), (X, Y), X + 2 * Y),
    "SubExt": (lambda x, y: ops.SubExt()(x, y, alpha=2), (X, Y), X - 2 * Y),
    "Muls": (lambda x: ops.Muls()(x, 3), (X,), X * 3),
    "FmodScalar": (lambda x: ops.FmodScalar()(x, 3), (X,), np.fmod(X, 3)),
    "ClampScalar": (lambda x: ops.ClampScalar()(x, -1, 2), (X,), X.clip(-1, 2)),
    "SumExt": (lambda x: ops.SumExt()(x, 1, True), (X,), X.sum(1, keepdims=True)),
    "MeanExt": (lambda x: ops.MeanExt()(x, (0, 1)), (X,), X.mean()),
    "CumsumExt": (lambda x: ops.CumsumExt()(x, 1), (X,), X.cumsum(1)),
    "CumulativeLogsumexp": (
        lambda x: ops.CumulativeLogsumexp(reverse=True)(x, 1),
        (X,),
        np.logaddexp.accumulate(X[:, ::-1], 1)[:, ::-1],
    ),
    "CountNonZero": (lambda x: ops.CountNonZero(1)(x), (X,), np.count_nonzero(X, 1)),
    "SquareSumAll": (ops.SquareSumAll(), (X, Y), ((X * X).sum(), (Y * Y).sum())),
    "ReduceStd": (ops.ReduceStd(axis=1), (X,), (X.std(1, ddof=1), X.mean(1))),
    "Median": (ops.Median(axis=0), (ROW,), (np.float32(2), np.int64(2))),
    "Median of all": (ops.Median(True), (X,), (np.float32(1), np.int64(0))),
    "NthElement": (lambda x: ops.NthElement(True)(x, 0), (X,), X.max(1)),
    "ConjugateTranspose": (
        lambda x: ops.ConjugateTranspose()(x, (1, 0)),
        (X + 1j * Y,),
        (X - 1j * Y).T,
    ),
    "SliceExt": (lambda x: ops.SliceExt()(x, 1, 0, 4, 2), (X,), X[:, ::2]),
    "SplitWithSize": (
        lambda x: ops.SplitWithSize()(x, (1, 3), 1),
        (X,),
        (X[:, :1], X[:, 1:]),
    ),
    "Chunk": (lambda x: ops.Chunk()(x, 2, 1), (X,), (X[:, :2], X[:, 2:])),
    "IndexSelect": (lambda x, i: ops.IndexSelect()(x, 0, i), (X, IDS), X[IDS]),
    "RepeatInterleaveInt": (
        lambda x: ops.RepeatInterleaveInt()(x, 2, 0),
        (X,),
        X.repeat(2, 0),
    ),
    "TrilExt": (lambda x: ops.TrilExt()(x, -1), (X,), np.tril(X, -1)),
    "TopkExt": (lambda x: ops.TopkExt()(x, 2), (ROW,), (np.float32([3, 2]), np.array([0, 2]))),
    "SortExt": (lambda x: ops.SortExt()(x), (ROW,), (np.sort(ROW), np.argsort(ROW))),
    "Bucketize": (ops.Bucketize([0.0, 1.0]), (ROW - 2,), np.array([2, 0, 1], np.int32)),
    "StackExt": (lambda x, y: ops.StackExt(1)((x, y)), (X, Y), np.stack((X, Y), 1)),
    "Einsum": (lambda x, y: ops.Einsum("ij,kj->ik")((x, y)), (X, Y), X @ Y.T),
    "Dense": (lambda x, y: ops.Dense()(x, y), (X, Y), X @ Y.T),
    "Outer": (ops.Outer(), (ROW, ROW), np.outer(ROW, ROW)),
    "SiLU": (ops.SiLU(), (X,), X / (1 + np.exp(-X))),
    "swiglu": (ops.swiglu, (X,), X[:, :2] / (1 + np.exp(-X[:, :2])) * X[:, 2:]),
    "rotary": (
        lambda x: ops.rotary_position_embedding(x, x * 0 + 2, x * 0 + 1, 1),
        (X[None, None],),
        2 * X[None, None] + np.stack((-X[:, 1::2], X[:, ::2]), -1).reshape(1, 1, 3, 4),
    ),
    "RmsNorm": (
        lambda x, g: ops.RmsNorm(1e-6)(x, g)[0],
        (X, X[0]),
        X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-6) * X[0],
    ),
    "matrix_diag band": (
        lambda x: ops.matrix_diag(x, (-1, 1), align="LEFT_RIGHT"),
        (np.array([[8.0, 9, 7], [1, 2, 3], [6, 4, 5]]),),
        np.array([[1.0, 8, 0], [4, 2, 9], [0, 5, 3]]),
    ),
    "matrix_diag_part band": (
        lambda x: ops.matrix_diag_part(x, (-1, 2), -1.0),
        (np.array([[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 8, 7, 6]]),),
        np.array([[-1.0, 3, 8], [2, 7, 6], [1, 6, 7], [5, 8, -1]]),
    ),
    "matrix_set_diag band": (
        lambda x, d: ops.matrix_set_diag(x, d, (-1, 2)),
        (np.full((3, 4), 7.0), np.array([[0.0, 9, 1], [6, 5, 8], [1, 2, 3], [4, 5, 0]])),
        np.array([[1.0, 6, 9, 7], [4, 2, 5, 1], [7, 5, 3, 8]]),
    ),
    "DataFormatDimMap": (ops.DataFormatDimMap(), (np.array([0, 1, -2, -4]),), [0, 3, 1, 0]),
    "while": (
        lambda x, n: ops.WhileLoop()(lambda v: v.sum() < n, lambda v: v * 2, x),
        (ROW, np.float32(50)),
        ROW * 16,
    ),
    "for": (
        lambda x, n: ops.ForiLoop()(0, n, lambda i, v: v + i, x),
        (ROW, np.array(5)),
        ROW + 10,
    ),
    "scan": (
        lambda x: ops.Scan()(lambda c, v: (c + v, c * v), x, [1, 2])[0],
        (ROW,),
        ROW + 3,
    ),
    "x= of mean": (lambda x: ops.mean(x=x, axis=1, keep_dims=True), (X,), X.mean(1, keepdims=True)),
    "x= of floor_div": (lambda x, y: ops.floor_div(x=x, y=y), (X, Y), np.floor(X / Y)),
    "x= of sqrt": (lambda x: ops.sqrt(x=x), (ROW,), np.sqrt(ROW)),
    "x= of relu6": (lambda x: ops.relu6(x=x), (X,), X.clip(0, 6)),
    "alpha of subtract": (lambda x, y: ops.subtract(x, y, alpha=2), (X, Y), X - 2 * Y),
}


def outputs(found: Any) -> list[Any]:
    return [x.asnumpy() for x in (found if isinstance(found, (tuple, list)) else (found,))]


@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    function, arrays, want = ROWS[name]
    wanted = want if isinstance(want, tuple) else (want,)
    tensors = [T(a) for a in arrays]
    eager, compiled = outputs(function(*tensors)), outputs(ms.jit(function)(*tensors))
    for a, b, w in zip(eager, compiled, wanted, strict=True):
        assert a.shape == np.shape(w)
        np.testing.assert_allclose(a, w, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_segments() -> None:
    x = T(X)
    want = {"Sum": X[:2].sum(0), "Mean": X[:2].mean(0), "Max": X[1], "Min": X[0]}
    for kind, first in want.items():
        got = getattr(ops, f"Segment{kind}")()(x, T(IDS)).asnumpy()
        np.testing.assert_allclose(got, np.stack((first, X[0] * 0, X[2])))
    product = ops.SegmentProd()(x, T(IDS)).asnumpy()
    np.testing.assert_allclose(product, np.stack((X[0] * X[1], X[0] * 0 + 1, X[2])))
    slope = ms.grad(lambda v: ops.SegmentMean()(v, T(IDS)).sum())(x)
    assert slope.asnumpy()[:, 0].tolist() == [0.5, 0.5, 1.0]


def test_gradients() -> None:
    def loop(v: Any) -> Any:
        return ops.WhileLoop()(lambda u: u < 50, lambda u: u * u, v)

    assert ms.grad(loop)(T(2.0)).item() == ms.jit(ms.grad(loop))(T(2.0)).item() == 1024.0
    assert ms.check_gradient(ops.swiglu, T(X), order=1)
    assert ms.check_gradient(lambda x: ops.matrix_diag_part(x, (-1, 1)), T(X), order=1)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "swiglu": (lambda: ops.swiglu(T(ROW)), ValueError, "even"),
    "NthElement": (lambda: ops.NthElement()(T(ROW), 3), ValueError, "n=3"),
    "segments": (lambda: ops.SegmentSum()(T(ROW), T([1, 0, 0])), ValueError, "ascending"),
    "band": (lambda: ops.matrix_diag(T(X), (1, 0)), ValueError, "lower one first"),
    "band rows": (lambda: ops.matrix_diag(T(X), (0, 1)), ValueError, "rows"),
    "scan": (lambda: ops.Scan()(lambda c, x: (c, x), 0, None), TypeError, "neither"),
    "while": (lambda: ops.WhileLoop()(None, None, 0), TypeError, "functions"),
    "output_size": (
        lambda: ops.RepeatInterleaveInt()(T(ROW), 2, 0, output_size=5),
        ValueError,
        "output_size",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()


def test_dice_is_divided_by_the_samples() -> None:
    metric = ms.nn.Dice()
    metric.update(T([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), T([[0, 1], [1, 0], [0, 1]]))
    assert metric.eval() == pytest.approx(0.2046779, rel=1e-6)
