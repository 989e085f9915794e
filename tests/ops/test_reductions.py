"""Both argument styles of reductions, their dtypes and errors, primitive classes: against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

T = ms.Tensor
X = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
M = X[0]
N = np.array([[3, 1, 2], [6, 5, 4]], np.int32)
F = np.array([1.0, 3.0, 3.0, 2.0, 3.0], np.float32)
NAN = np.array([1, np.nan, 3, np.nan], np.float32)

Call = Callable[[], Any]
STYLES: dict[str, tuple[Call, Any]] = {
    "sum": (lambda: T(X).sum(), X.sum()),
    "sum axis": (lambda: T(X).sum(1), X.sum(1)),
    "sum axis, keepdim by position": (lambda: T(X).sum(1, True), X.sum(1, keepdims=True)),
    "sum axis, dtype by position": (lambda: T(X).sum(1, ms.float16), X.sum(1).astype(np.float16)),
    "sum older order": (lambda: T(X).sum(1, None, True), X.sum(1, keepdims=True)),
    "sum keywords": (lambda: T(X).sum(axis=(0, -1), keepdims=True), X.sum((0, 2), keepdims=True)),
    "sum newer keywords": (lambda: T(X).sum(dim=0, keepdim=True), X.sum(0, keepdims=True)),
    "sum initial": (lambda: T(X).sum(axis=1, initial=3), X.sum(1) + 3),
    "sum list": (lambda: T(X).sum([0]), X.sum(0)),
    "sum of ()": (lambda: T(X).sum(()), X.sum()),
    "sum of int32": (lambda: T(N).sum(), np.int64(21)),
    "sum of bool": (lambda: T(N > 2).sum(), np.int64(4)),
    "ops.sum": (lambda: ops.sum(T(X), dim=1, keepdim=True), X.sum(1, keepdims=True)),
    "mean": (lambda: T(X).mean((1, 2)), X.mean((1, 2))),
    "mean keep_dims": (lambda: ops.mean(T(X), 1, keep_dims=True), X.mean(1, keepdims=True)),
    "mean of int32": (lambda: T(N).mean(1), np.array([2, 5], np.int32)),
    "mean of negative ints": (lambda: T(-N).mean(), np.int32(-3)),
    "prod": (lambda: ops.prod(T(X), 1), X.prod(1)),
    "prod of int32": (lambda: ops.prod(T(N)), np.int64(720)),
    "all": (lambda: T(N > 1).all(axis=1), (N > 1).all(1)),
    "any keepdim": (lambda: T(N > 5).any(dim=1, keepdim=True), (N > 5).any(1, keepdims=True)),
    "max": (lambda: T(X).max(), X.max()),
    "max dim": (lambda: T(X).max(1), (X.max(1), X.argmax(1))),
    "max dim, keepdim": (
        lambda: T(M).max(1, True),
        (M.max(1, keepdims=True), M.argmax(1)[:, None]),
    ),
    "max axis=": (lambda: T(X).max(axis=1), X.max(1)),
    "max dim=": (lambda: T(X).max(dim=1), (X.max(1), X.argmax(1))),
    "max return_indices": (
        lambda: T(X).max(axis=1, return_indices=True),
        (X.max(1), X.argmax(1)),
    ),
    "max axes": (lambda: T(X).max(axis=(0, 2)), X.max((0, 2))),
    "max initial": (lambda: T(X).max(initial=9.0), np.float32(9)),
    "min dim": (lambda: T(X).min(1), (X.min(1), X.argmin(1))),
    "ops.max": (lambda: ops.max(T(X)), (X.max(), np.int64(0))),
    "ops.max axis": (
        lambda: ops.max(T(X), 1, True),
        (X.max(1, keepdims=True), X.argmax(1)[:, None]),
    ),
    "max where": (
        lambda: ops.amax(T(M), 1, initial=-9.0, where=T(M < 0)),
        M.max(1, initial=-9, where=M < 0),
    ),
    "amin": (lambda: ops.amin(T(X), (0, 1), True), X.min((0, 1), keepdims=True)),
    "max of NaN": (lambda: T(NAN).max(), np.float32(np.nan)),
    "argmax": (lambda: T(X).argmax(), X.argmax()),
    "argmax keepdims": (lambda: T(M).argmax(axis=1, keepdims=True), M.argmax(1)[:, None]),
    "argmax of NaN": (lambda: T(NAN).argmax(), np.int64(1)),
    "argmin dim": (lambda: T(X).argmin(dim=0), X.argmin(0).astype(np.int32)),
    "std": (lambda: T(X).std(), X.std()),
    "std ddof": (lambda: T(X).std(1, 1), X.std(1, ddof=1)),
    "var dim": (lambda: T(X).var(dim=1), X.var(1, ddof=1)),
    "var correction": (
        lambda: T(X).var(dim=1, correction=0, keepdim=True),
        X.var(1, keepdims=True),
    ),
    "norm": (lambda: T(X).norm(), np.linalg.norm(X)),
    "norm matrix": (lambda: ops.norm(T(M), 1), np.linalg.norm(M, 1)),
    "norm nuclear": (lambda: ops.norm(T(M), "nuc"), np.linalg.norm(M, "nuc")),
    "norm dim": (lambda: T(M).norm(3, 1), (np.abs(M) ** 3).sum(1) ** (1 / 3)),
    "cumsum": (lambda: T(X).cumsum(1), X.cumsum(1)),
    "cumsum dim": (lambda: T(X).cumsum(dim=-1), X.cumsum(-1)),
    "cumsum dtype": (lambda: ops.cumsum(T(N), 0, ms.float32), N.cumsum(0).astype(np.float32)),
    "cumprod": (lambda: ops.cumprod(T(X), 2), X.cumprod(2)),
    "cummax later of equals": (
        lambda: ops.cummax(T(F), 0),
        (np.maximum.accumulate(F), np.array([0, 1, 2, 2, 4])),
    ),
    "cummax of NaN": (lambda: ops.cummax(T(NAN), 0)[1], np.array([0, 1, 1, 3])),
    "median": (lambda: ops.median(T(M), 1), (np.sort(M)[:, 1], np.argsort(M)[:, 1])),
    "logsumexp": (
        lambda: T(X).logsumexp((0, 2), True),
        np.log(np.exp(X).sum((0, 2), keepdims=True)),
    ),
    "softmax": (lambda: T(X).softmax(dim=1), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    "softmax of two axes": (lambda: ops.softmax(T(M), (0, 1)), np.exp(M) / np.exp(M).sum()),
    "count_nonzero": (lambda: ops.count_nonzero(T(N - 3), 1), np.array([2, 3], np.int32)),
    "ReduceSum": (
        lambda: ops.ReduceSum(keep_dims=True)(T(X), (0, 1)),
        X.sum((0, 1), keepdims=True),
    ),
    "ReduceSum of ()": (lambda: ops.ReduceSum()(T(X), ()), X.sum()),
    "ReduceSum skip_mode": (lambda: ops.ReduceSum(skip_mode=True)(T(X), ()), X),
    "ReduceMean": (lambda: ops.ReduceMean()(T(X), -1), X.mean(-1)),
    "ArgMaxWithValue": (lambda: ops.ArgMaxWithValue(1)(T(M)), (M.argmax(1), M.max(1))),
    "Argmax": (lambda: ops.Argmax()(T(M)), M.argmax(-1).astype(np.int32)),
    "CumSum": (
        lambda: ops.CumSum(exclusive=True, reverse=True)(T(F), 0),
        np.array([11, 8, 5, 3, 0], np.float32),
    ),
    "matmul": (lambda: T(X) @ T(X[0].T), X @ X[0].T),
    "matmul of a vector": (lambda: T(X) @ T(X[0, 0]), X @ X[0, 0]),
    "array @ tensor": (lambda: M.T @ T(M), M.T @ M),
    "MatMul": (lambda: ops.MatMul(transpose_b=True)(T(M), T(M)), M @ M.T),
    "addmm": (
        lambda: ops.addmm(T(M[:, :3]), T(M), T(M.T), beta=2, alpha=3),
        2 * M[:, :3] + 3 * (M @ M.T),
    ),
    "einsum": (lambda: ops.einsum("bij,bkj->bik", T(X), T(X)), np.einsum("bij,bkj->bik", X, X)),
    "einsum ellipsis": (lambda: ops.einsum("...ij->...j", T(X)), X.sum(1)),
    "tensor_dot": (
        lambda: ops.tensor_dot(T(X), T(X), ((0, 1), (0, 1))),
        np.tensordot(X, X, ((0, 1), (0, 1))),
    ),
}


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    got = got.asnumpy()
    want = np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    half = want.dtype.itemsize == 2
    np.testing.assert_allclose(got, want, rtol=2e-3 if half else 1e-5, atol=2e-3 if half else 1e-6)


@pytest.mark.parametrize("name", STYLES)
def test_style(name: str) -> None:
    run, want = STYLES[name]
    same(run(), want)


ERRORS: dict[str, tuple[Call, type[Exception], str]] = {
    "axis": (lambda: T(X).sum(3), ValueError, "axis 3"),
    "axis twice": (lambda: T(X).sum((0, -3)), ValueError, "twice"),
    "unknown keyword": (lambda: T(X).sum(axes=1), TypeError, "'axes'"),
    "both spellings": (lambda: ops.sum(T(X), 1, dim=1), TypeError, "both"),
    "keepdims": (lambda: ops.mean(T(X), 1, 1), TypeError, "keepdims=1"),
    "mean of bool": (lambda: T(N > 1).mean(), TypeError, "bool"),
    "max of nothing": (lambda: T(X[:0]).max(axis=0), ValueError, r"\(0, 3, 4\)"),
    "argmax of nothing": (lambda: T(X[:0]).argmax(), ValueError, "empty"),
    "softmax of ints": (lambda: ops.softmax(T(N)), TypeError, "int32"),
    "matmul": (lambda: T(M) @ T(M), ValueError, "to equal the last axis but one of the second"),
    "mm of three axes": (lambda: ops.mm(T(X), T(M)), ValueError, "2 axes"),
    "einsum": (lambda: ops.einsum("ij,jk", T(M)), ValueError, "2"),
    "einsum sizes": (lambda: ops.einsum("ij,jk->ik", T(M), T(M)), ValueError, "'j'"),
    "norm of a matrix": (lambda: ops.norm(T(M), 5), ValueError, "ord=5"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    run, kind, pattern = ERRORS[name]
    with pytest.raises(kind, match=pattern):
        run()


def test_equal_extremes_share_the_gradient() -> None:
    x = T([1.0, 3.0, 3.0])
    np.testing.assert_allclose(ms.grad(lambda t: t.max())(x).asnumpy(), [0, 0.5, 0.5])
    np.testing.assert_allclose(ms.grad(lambda t: t.max(0)[0])(x).asnumpy(), [0, 1, 0])


def test_norm_at_zero_has_gradient_zero() -> None:
    np.testing.assert_array_equal(ms.grad(lambda t: t.norm())(T([0.0, 0.0])).asnumpy(), [0, 0])


def test_product_with_zeros_has_the_right_gradient() -> None:
    grad = ms.grad(lambda t: ops.prod(t))
    np.testing.assert_allclose(grad(T([2.0, 0.0, 3.0])).asnumpy(), [0, 6, 0])
    np.testing.assert_allclose(grad(T([0.0, 0.0, 3.0])).asnumpy(), [0, 0, 0])


def test_cumprod_second_order() -> None:
    def f(t: Any) -> Any:
        return ops.cumprod(t, 0).sum()

    hessian = ms.grad(lambda t: (ms.grad(f)(t) * T([1.0, 2.0])).sum())(T([3.0, 5.0]))
    np.testing.assert_allclose(hessian.asnumpy(), [2, 1])


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    ("args", "options", "pair"),
    [
        ((), {}, False),
        ((None,), {}, False),
        ((0,), {}, True),
        ((1, True), {}, True),
        ((), {"dim": 0}, True),
        ((0,), {"keepdim": True}, True),
        ((), {"axis": 0}, False),
        ((), {"axis": (0, 1)}, False),
        (((0, 1),), {}, False),
        ((-1,), {"keepdims": True}, False),
        ((-1,), {"return_indices": True}, True),
        ((), {"axis": -1, "return_indices": True}, True),
    ],
)
def test_forms_of_max_and_min(name, args, options, pair):
    """Which forms return (values, indices); asked of MindSpore 2.10."""
    x = np.array([[3.0, 5.0, 1.0], [4.0, 2.0, 6.0]], np.float32)
    axis = args[0] if args else options.get("axis", options.get("dim"))
    keep = options.get("keepdims", options.get("keepdim", args[1] if len(args) > 1 else False))
    found = getattr(ms.Tensor(x), name)(*args, **options)
    assert isinstance(found, tuple) == pair
    values = found[0] if pair else found
    np.testing.assert_array_equal(values.asnumpy(), getattr(np, name)(x, axis=axis, keepdims=keep))
