"""Decompositions, solvers and matrix functions agree with NumPy and SciPy, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
import scipy.linalg
from duograph import ops
from duograph.errors import GradientError

T = ms.Tensor
RNG = np.random.default_rng(8)
A = RNG.standard_normal((4, 4)) + np.diag([4.0, 5, 6, 7])
BATCH = RNG.standard_normal((2, 3, 3)) + np.diag([4.0, 5, 6])
TALL = RNG.standard_normal((5, 3))
WIDE = RNG.standard_normal((3, 5))
B = RNG.standard_normal((4, 2))
Z = A + 1j * RNG.standard_normal((4, 4))
LOW = np.linalg.cholesky(A @ A.T)
LU, PIVOTS = scipy.linalg.lu_factor(A)
DIAGONALS = [RNG.standard_normal((1, 4)) for _ in range(3)]
TRIDIAGONAL = (
    np.diag(DIAGONALS[1][0]) + np.diag(DIAGONALS[0][0, :-1], 1) + np.diag(DIAGONALS[2][0, 1:], -1)
)

Row = tuple[Callable[..., Any], tuple[Any, ...], Any]
ROWS: dict[str, Row] = {
    "qr": (lambda x: ops.qr(x), (TALL,), np.linalg.qr(TALL)),
    "qr of batches": (lambda x: ops.qr(x), (BATCH,), np.linalg.qr(BATCH)),
    "qr wide": (lambda x: ops.qr(x), (WIDE,), np.linalg.qr(WIDE)),
    "qr complex": (lambda x: ops.qr(x), (Z,), np.linalg.qr(Z)),
    "qr complete": (lambda x: ops.qr(x, "complete"), (TALL,), np.linalg.qr(TALL, "complete")),
    "geqrf": (
        lambda x: ops.geqrf(x),
        (TALL,),
        tuple(v.T if i == 0 else v for i, v in enumerate(np.linalg.qr(TALL, "raw"))),
    ),
    "orgqr": (lambda x: ops.orgqr(*ops.geqrf(x)), (TALL,), np.linalg.qr(TALL)[0]),
    "orgqr complex": (lambda x: ops.orgqr(*ops.geqrf(x)), (Z,), np.linalg.qr(Z)[0]),
    "ormqr": (
        lambda x, y: ops.ormqr(*ops.geqrf(x), y),
        (TALL, WIDE.T),
        np.linalg.qr(TALL, "complete")[0] @ WIDE.T,
    ),
    "ormqr right, transposed": (
        lambda x, y: ops.ormqr(*ops.geqrf(x), y, False, True),
        (TALL, WIDE),
        WIDE @ np.linalg.qr(TALL, "complete")[0].T,
    ),
    "matrix_exp": (ops.matrix_exp, (A,), scipy.linalg.expm(A)),
    "matrix_exp of batches": (ops.matrix_exp, (BATCH,), scipy.linalg.expm(BATCH)),
    "matrix_exp complex": (ops.matrix_exp, (Z,), scipy.linalg.expm(Z)),
    "MatrixLogarithm": (ops.MatrixLogarithm(), (A,), scipy.linalg.logm(A)),
    "lstsq": (ops.lstsq, (TALL, WIDE.T), np.linalg.lstsq(TALL, WIDE.T, None)[0]),
    "lstsq wide": (ops.lstsq, (WIDE, B[:3]), np.linalg.lstsq(WIDE, B[:3], None)[0]),
    "lstsq of a vector": (
        ops.lstsq,
        (TALL, WIDE[0]),
        np.linalg.lstsq(TALL, WIDE[0], None)[0][:, None],
    ),
    "Lstsq regularised": (
        ops.Lstsq(l2_regularizer=0.5),
        (TALL, WIDE.T),
        np.linalg.solve(TALL.T @ TALL + 0.5 * np.eye(3), TALL.T @ WIDE.T),
    ),
    "lu_solve": (ops.lu_solve, (B, LU, PIVOTS + 1), np.linalg.solve(A, B)),
    "lu_unpack": (lambda x, p: ops.lu_unpack(x, p), (LU, PIVOTS + 1), scipy.linalg.lu(A)),
    "cholesky_solve": (ops.cholesky_solve, (B, LOW), np.linalg.solve(A @ A.T, B)),
    "cholesky_solve upper": (
        lambda b, u: ops.cholesky_solve(b, u, True),
        (B, LOW.T),
        np.linalg.solve(A @ A.T, B),
    ),
    "matrix_solve": (lambda a, b: ops.matrix_solve(a, b, True), (A, B), np.linalg.solve(A.T, B)),
    "MatrixTriangularSolve": (
        ops.MatrixTriangularSolve(False, True),
        (A, B),
        np.linalg.solve(np.triu(A).T, B),
    ),
    "TridiagonalMatMul": (ops.TridiagonalMatMul(), (*DIAGONALS, B), TRIDIAGONAL @ B),
    "eigvals": (
        lambda x: ops.eigvals(x).real().sort()[0],
        (A @ A.T,),
        np.linalg.eigvalsh(A @ A.T),
    ),
    **{
        f"matrix_norm {p}": (
            lambda x, p=p: ops.matrix_norm(x, p),
            (BATCH,),
            np.linalg.norm(BATCH, p, (-2, -1)),
        )
        for p in ("fro", 1, -1, np.inf, -np.inf)
    },
    **{
        f"cond {p}": (lambda x, p=p: ops.cond(x, p), (A,), np.asarray(np.linalg.cond(A, p)))
        for p in (1, "fro", np.inf)
    },
}


def outputs(found: Any) -> list[Any]:
    return [x.asnumpy() for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    function, arrays, want = ROWS[name]
    wanted = tuple(want) if isinstance(want, tuple) else (want,)
    tensors = [T(np.ascontiguousarray(a)) for a in arrays]
    eager, compiled = outputs(function(*tensors)), outputs(ms.jit(function)(*tensors))
    for a, b, w in zip(eager, compiled, wanted, strict=True):
        assert a.shape == w.shape
        np.testing.assert_allclose(a, w, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


HOST = {  # computed from concrete values: eager only
    "cond": (lambda x: ops.cond(x), np.linalg.cond(A)),
    "cond -2": (lambda x: ops.cond(x, -2), np.linalg.cond(A, -2)),
    "nuclear": (ops.NuclearNorm(), np.linalg.norm(A, "nuc")),
}


@pytest.mark.parametrize("name", HOST)
def test_values_by_svd(name: str) -> None:
    function, want = HOST[name]
    np.testing.assert_allclose(function(T(A)).asnumpy(), want, rtol=1e-10)


@pytest.mark.parametrize("x", [A, Z, BATCH], ids=["real", "complex", "batches"])
def test_eig_reconstructs(x: Any) -> None:
    values, vectors = outputs(ops.eig(T(x)))
    np.testing.assert_allclose(x @ vectors, vectors * values[..., None, :], atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1.0, atol=1e-12)
    assert ops.Eig()(T(x))[1].shape == ()


def test_eig_of_float32_is_complex64() -> None:
    assert [t.dtype for t in ops.eig(T(A.astype(np.float32)))] == [ms.complex64] * 2


SMOOTH: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "q": (lambda x: ops.qr(x)[0], (TALL,)),
    "r": (lambda x: ops.qr(x)[1], (TALL,)),
    "qr of batches": (lambda x: ops.qr(x), (BATCH,)),
    "qr complex": (lambda x: tuple(v.abs() for v in ops.qr(x)), (Z,)),
    "eigvals": (lambda x: ops.eigvals(x).abs(), (A,)),
    "eig": (lambda x: ops.eig(x)[1].abs(), (A,)),
    "eig complex": (lambda x: ops.eig(x)[1].abs(), (Z,)),
    "matrix_exp": (ops.matrix_exp, (A * 0.3,)),
    "MatrixLogarithm": (ops.MatrixLogarithm(), (A,)),
    "lstsq": (ops.lstsq, (TALL, WIDE.T)),
    "lstsq wide": (ops.lstsq, (WIDE, B[:3])),
    "lu_solve": (lambda b, x: ops.lu_solve(b, x, T(PIVOTS + 1)), (B, LU)),
    "cholesky_solve": (ops.cholesky_solve, (B, LOW)),
    "ormqr": (lambda y: ops.ormqr(*ops.geqrf(T(TALL)), y), (WIDE.T,)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    function, arrays = SMOOTH[name]
    checked = ms.check_gradient(function, tuple(T(a) for a in arrays), order=1)
    assert checked, checked


@pytest.mark.parametrize("call", [lambda x: ops.geqrf(x)[0], lambda x: ops.qr(x, "complete")[0],
                                  lambda x: ops.orgqr(x, x[0])])  # fmt: skip
def test_gradients_that_are_missing_are_refused(call: Callable[..., Any]) -> None:
    with pytest.raises(GradientError):
        ms.grad(lambda x: call(x).sum())(T(TALL))


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "qr": (lambda: ops.qr(T([1.0])), ValueError, "matrices"),
    "qr mode": (lambda: ops.qr(T(A), "other"), ValueError, "mode"),
    "qr half": (lambda: ops.qr(T(A, ms.float16)), TypeError, "float16"),
    "qr nan": (lambda: ops.qr(T([[float("nan")]])), ValueError, "finite"),
    "eig": (lambda: ops.eig(T(TALL)), ValueError, "square"),
    "orgqr": (lambda: ops.orgqr(T(WIDE), T([1.0])), ValueError, "k <= n <= m"),
    "matrix_exp": (lambda: ops.matrix_exp(T(TALL)), ValueError, "square"),
    "lstsq": (lambda: ops.lstsq(T(TALL), T(B)), ValueError, "wanted"),
    "lstsq ints": (lambda: ops.lstsq(T([[1]]), T([[1]])), TypeError, "floating"),
    "lu_solve": (lambda: ops.lu_solve(T(B), T(LU), T([9, 1, 1, 1])), ValueError, "pivots"),
    "cholesky_solve": (lambda: ops.cholesky_solve(T(B), T(TALL)), ValueError, "wanted"),
    "matrix_norm": (lambda: ops.matrix_norm(T(A), 3), ValueError, "ord"),
    "TridiagonalMatMul": (
        lambda: ops.TridiagonalMatMul()(T(A), T(A), T(A), T(B)),
        ValueError,
        "diagonals",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("at", [(0, 0), (0, -1), (-1, 0), (-1, -1)])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_the_determinant_of_a_matrix_with_nan_is_nan(
    n: int, at: tuple[int, int], compiled: bool
) -> None:
    matrix = np.random.default_rng(3).standard_normal((2, n, n))
    wanted = np.linalg.det(matrix)
    matrix[(0, *at)] = np.nan

    def both(x: ms.Tensor) -> Any:
        return ops.det(x), ops.slogdet(x)[1]

    for dtype in (np.float32, np.float64):
        found, size = (ms.jit(both) if compiled else both)(T(matrix.astype(dtype)))
        assert np.isnan(found.asnumpy()[0]) and np.isnan(size.asnumpy()[0])
        np.testing.assert_allclose(found.asnumpy()[1], wanted[1], 1e-4)


@pytest.mark.parametrize(
    "matrix", [[[0.0]], [[0, 0], [0, 1]], [[1, 2], [2, 4]], [[0, 1, 2], [0, 3, 4], [0, 5, 6]]]
)
def test_the_determinant_of_a_singular_matrix_is_zero(matrix: Any) -> None:
    x = T(np.array(matrix, np.float32))
    assert float(ops.det(x)) == 0.0
    assert [float(v) for v in ops.slogdet(x)] == [0.0, -np.inf]
