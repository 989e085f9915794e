"""duograph.scipy: factors multiply to the matrix, minima are minima, assignments are the best."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, scipy
from duograph.scipy import linalg, optimize

rng = np.random.default_rng(3)
M = rng.standard_normal((4, 4))
S = M @ M.T + 4 * np.eye(4)  # symmetric and positive definite
B = rng.standard_normal((4, 2))
TALL = rng.standard_normal((5, 3))
SINGULAR = np.array([[0.0, 2.0, 1.0], [0.0, 4.0, 2.0], [0.0, 1.0, 7.0]])


def near(got: Tensor, want: Any) -> None:
    rtol = 1e-3 if got.dtype == ms.float32 else 1e-10
    np.testing.assert_allclose(got.asnumpy(), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("dtype", "compiled"), [(np.float32, False), (np.float64, False), (np.float64, True)]
)
def test_factors_give_the_matrix(dtype: Any, compiled: bool) -> None:
    def run(function: Callable[..., Any], *arrays: Any) -> Any:
        return (ms.jit(function) if compiled else function)(
            *[Tensor(a.astype(dtype)) for a in arrays]
        )

    near(run(linalg.inv, S), np.linalg.inv(S))
    near(run(lambda a: linalg.cholesky(a, lower=True), S), np.linalg.cholesky(S))
    near(run(linalg.cholesky, S), np.linalg.cholesky(S).T)
    mixed = np.triu(S) + np.tril(M, -1)  # the other triangle is not read
    near(run(linalg.cholesky, mixed), np.linalg.cholesky(S).T)
    near(run(linalg.cho_factor, mixed)[0], np.linalg.cholesky(S).T + np.tril(M, -1))
    for lower in (False, True):
        solved = run(lambda a, b, low=lower: linalg.cho_solve(linalg.cho_factor(a, low), b), S, B)
        near(solved, np.linalg.solve(S, B))
    near(run(lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), S, B[:, 0]),
         np.linalg.solve(S, B[:, 0]))  # fmt: skip
    for matrix in (M, TALL, TALL.T.copy(), SINGULAR):
        p, low, high = (t.asnumpy() for t in run(linalg.lu, matrix))
        np.testing.assert_allclose(p @ low @ high, matrix, rtol=1e-4, atol=1e-5)
        assert np.array_equal(np.diag(low), np.ones(min(matrix.shape)))
        assert np.array_equal(low, np.tril(low)) and np.array_equal(high, np.triu(high))
        assert np.abs(low).max() <= 1 and np.array_equal(p @ p.T, np.eye(len(p)))
        near(run(lambda a: linalg.lu(a, permute_l=True), matrix)[0], p @ low)
    near(run(lambda a: linalg.eigh(a, eigvals_only=True), S), np.linalg.eigvalsh(S))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, "T", 2])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(lower: bool, trans: int | str, unit: bool) -> None:
    read = np.tril(S) if lower else np.triu(S)
    if unit:
        np.fill_diagonal(read, 1)
    matrix = read.T if trans else read
    for right in (B, B[:, 0]):
        x = linalg.solve_triangular(Tensor(S), Tensor(right), trans, lower, unit)
        near(x, np.linalg.solve(matrix, right))
    many = linalg.solve_triangular(
        Tensor(np.stack([S, 2 * S])), Tensor(np.stack([B, B])), lower=lower
    )
    assert many.shape == (2, 4, 2)


def test_eigenvalues() -> None:
    values, vectors = linalg.eigh(Tensor(S))
    near(Tensor(S) @ vectors, (vectors * values).asnumpy())
    near(ms.ops.swapaxes(vectors, 0, 1) @ vectors, np.eye(4))
    upper = linalg.eigh(Tensor(np.triu(S)), lower=False, eigvals_only=True, eigvals=(1, 2))
    near(upper, np.linalg.eigvalsh(S)[1:3])
    assert linalg.eigh([[2, 1], [1, 2]])[0].dtype == ms.float64


def test_compact_decomposition_and_blocks() -> None:
    both, exchanges = linalg.lu_factor(Tensor(M))
    x = ms.ops.lu_solve(Tensor(B), both, exchanges + 1)
    near(x, np.linalg.solve(M, B))
    made = linalg.block_diag(Tensor([[1, 2]]), Tensor([3]), Tensor(np.zeros((1, 0), np.int64)), 4)
    assert made.tolist() == [[1, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0], [0, 0, 0, 4]]


@pytest.mark.parametrize("driver", [None, "gels", "gelss"])
@pytest.mark.parametrize("right", [B, B[:, 0]], ids=["matrix", "vector"])
def test_least_squares(driver: str | None, right: Any) -> None:
    tall = M[:, :2]
    x, residuals, rank, values = linalg.lstsq(Tensor(tall), Tensor(right), driver=driver)
    want = np.linalg.lstsq(tall, right, rcond=None)
    near(x, want[0])
    if driver is not None:
        near(residuals, want[1] if right.ndim == 2 else want[1][0])
    if driver != "gels":
        assert rank.item() == 2
    assert values.size == (2 if driver == "gelss" else 0)


DIFFERENTIABLE = {
    "inv": (linalg.inv, (M,)),
    "cholesky": (lambda a: linalg.cholesky(a), (S,)),
    "cho_solve": (lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), (S, B)),
    "eigh": (lambda a: linalg.eigh(a, eigvals_only=True), (S,)),
    "projection": (lambda a: (lambda v: v @ v.T)(linalg.eigh(a, eigvals=(1, 2))[1]), (S,)),
    "lu": (lambda a: linalg.lu(a)[1:], (M,)),
    "lu_factor": (lambda a: linalg.lu_factor(a)[0], (M,)),
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, 1), (S, B)),
    "lstsq": (lambda a, b: linalg.lstsq(a, b, driver="gels")[:2], (TALL, TALL[:, :1] ** 2)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_agrees_with_finite_differences(name: str) -> None:
    function, arrays = DIFFERENTIABLE[name]
    found = ms.check_gradient(function, [Tensor(a) for a in arrays], order=1)
    assert found and found.compared, str(found)


def himmelblau(p: Tensor) -> Tensor:
    x, y = p
    return (x**2 + y - 11.0) ** 2 + (x + y**2 - 7.0) ** 2


def rosenbrock(p: Tensor, a: float = 1.0) -> Tensor:
    return (100 * (p[1:] - p[:-1] ** 2) ** 2 + (a - p[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", ["BFGS", "lbfgs"])
@pytest.mark.parametrize(
    ("function", "start", "args", "want"),
    [
        (himmelblau, [0.0, 0.0], (), [3.0, 2.0]),
        (rosenbrock, [-1.2, 1.0, 0.7], (), [1.0, 1.0, 1.0]),
        (rosenbrock, [0.0, 0.0], (2.0,), [2.0, 4.0]),
        (lambda p: ((p - 3.0) ** 2).sum(), [], (), []),
    ],
    ids=["himmelblau", "rosenbrock", "args", "empty"],
)
def test_minima(method: str, function: Any, start: Any, args: Any, want: Any) -> None:
    found = optimize.minimize(function, Tensor(start, ms.float64), args, method)
    np.testing.assert_allclose(found.x.asnumpy(), want, rtol=1e-4)
    assert found.success.item() and found.status.item() == 0
    assert (found.hess_inv is None) == (method == "lbfgs")


def test_minimum_with_a_gradient_and_a_limit() -> None:
    start = Tensor([4.0, -3.0])
    slope = lambda p: 2 * p  # noqa: E731
    found = optimize.minimize(lambda p: (p * p).sum(), start, method="BFGS", jac=slope)
    np.testing.assert_allclose(found.x.asnumpy(), [0, 0], atol=1e-5)
    stopped = optimize.minimize(rosenbrock, start, method="BFGS", options={"maxiter": 1})
    assert stopped.status.item() == 1 and stopped.nit.item() == 1
    assert start.tolist() == [4.0, -3.0]


def test_line_search_meets_the_wolfe_conditions() -> None:
    def f(x: Tensor) -> Tensor:
        return x[0] ** 2 - x[1] ** 3

    found = optimize.line_search(f, Tensor([1.0, 1.0]), Tensor([-1, -1]))
    assert found.a_k.item() == 1.0 and found.failed.item()  # uphill; MindSpore prints 1.0 too
    start, way = Tensor([-1.2, 1.0], ms.float64), Tensor([215.6, 88.0], ms.float64)
    found = optimize.line_search(rosenbrock, start, way)
    value, slope = ms.value_and_grad(rosenbrock)(start)
    first = float((slope * way).sum())
    step = found.a_k.item()
    assert not found.failed.item()
    assert found.f_k.item() <= value.item() + 1e-4 * step * first
    assert abs(float((found.g_k * way).sum())) <= 0.9 * abs(first)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (1, 1), (0, 3), (1, 4)], ids=str)
def test_assignments_are_the_best(shape: tuple[int, int], maximize: bool) -> None:
    costs = rng.integers(-4, 5, shape).astype(np.float32)
    rows, columns = optimize.linear_sum_assignment(Tensor(costs), maximize)
    total = costs[rows.asnumpy(), columns.asnumpy()].sum()
    wide = costs if shape[0] <= shape[1] else costs.T
    sums = [
        wide[range(len(wide)), chosen].sum()
        for chosen in itertools.permutations(range(wide.shape[1]), len(wide))
    ]
    assert total == (max(sums) if maximize else min(sums))
    assert sorted(rows.tolist()) == rows.tolist() and len(set(columns.tolist())) == min(shape)


def test_assignment_with_a_limit() -> None:
    costs = Tensor([[2.0, 3.0, 0.0], [3.0, 2.0, 0.0], [3.0, 3.0, 0.0]])
    rows, columns = optimize.linear_sum_assignment(costs, False, Tensor(2))
    assert rows.tolist() == [0, 1, -1] and columns.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.inv(B), ValueError, "wanted a square matrix"),
        (lambda: linalg.cholesky(S[None]), ValueError, "wanted a square matrix"),
        (lambda: linalg.cho_solve((S, True), B[:3]), ValueError, "wanted as many rows"),
        (lambda: linalg.eigh(S, S), ValueError, "got b"),
        (lambda: linalg.eigh(S, eigvals=(2, 1)), ValueError, "wanted two indices"),
        (lambda: linalg.eigh(S * np.nan), ValueError, "wanted finite elements"),
        (lambda: linalg.lu(B[0]), ValueError, "wanted a matrix"),
        (lambda: linalg.lu_factor(B), ValueError, "wanted a square matrix"),
        (lambda: linalg.solve_triangular(S, B, "H"), ValueError, "got trans='H'"),
        (lambda: linalg.lstsq(S, B[:2]), ValueError, "wanted \\(m, n\\)"),
        (lambda: linalg.lstsq(S, B, driver="qr"), ValueError, "got driver='qr'"),
        (lambda: optimize.minimize(himmelblau, Tensor([0.0, 0.0])), ValueError, "got method=None"),
        (lambda: optimize.minimize(himmelblau, Tensor(0.0), method="BFGS"), ValueError, "a vector"),
        (lambda: optimize.minimize(himmelblau, Tensor([0.0]), method="BFGS", options={"eps": 1}),
         ValueError, "got the options eps"),
        (lambda: optimize.line_search(himmelblau, Tensor([0.0]), Tensor([1.0, 2.0])), ValueError,
         "vectors of one size"),
        (lambda: optimize.linear_sum_assignment(Tensor(B), 1), TypeError, "wanted a bool"),
        (lambda: optimize.linear_sum_assignment(Tensor(B[0]), True), ValueError, "wanted a matrix"),
        (lambda: optimize.linear_sum_assignment(Tensor(B + np.inf), True), ValueError, "finite"),
    ],
)  # fmt: skip
def test_wrong_argument_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_names() -> None:
    assert scipy.linalg is linalg and scipy.optimize is optimize
