"""Sparse tensors and their functions compute what their dense forms do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.ops.sparse_functions import _ON_VALUES

T = ms.Tensor
I = T([[0, 1], [1, 2], [0, 3]])  # noqa: E741
V = T([1.0, 2.0, 3.0])
COO = ms.COOTensor(I, V, (3, 4))
OTHER = ms.COOTensor(T([[0, 1], [2, 0]]), T([5.0, -2.0]), (3, 4))
PTR, COLUMNS = T([0, 2, 2, 3]), T([0, 3, 1])
CSR = ms.CSRTensor(PTR, COLUMNS, V, (3, 4))
D = T(np.arange(1.0, 13).reshape(3, 4))
W = T(np.arange(8.0).reshape(4, 2))
A, B, C = (x.to_dense().asnumpy() for x in (COO, OTHER, CSR))


def dense(x: Any) -> Any:
    return (x.to_dense() if hasattr(x, "to_dense") else x).asnumpy()


ROWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "coo dense": (lambda: COO, [[0, 1, 0, 3], [0, 0, 2, 0], [0, 0, 0, 0]]),
    "coo duplicates": (lambda: ms.COOTensor(T([[1], [1]]), T([1.0, 2.0]), (3,)), [0, 3, 0]),
    "csr dense": (lambda: CSR, [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]]),
    "coo to csr": (COO.to_csr, A),
    "csr to coo": (CSR.to_coo, C),
    "coo + coo": (lambda: COO + OTHER, A + B),
    "coo - coo": (lambda: COO - OTHER, A - B),
    "coo + dense": (lambda: COO + D, A + D.asnumpy()),
    "coo * dense": (lambda: COO * D, A * D.asnumpy()),
    "coo * 2": (lambda: COO * 2, A * 2),
    "coo / dense": (lambda: COO / D, A / D.asnumpy()),
    "-coo": (lambda: -COO, -A),
    "coo add": (lambda: COO.add(OTHER, T(2.5)), [[0, 6, 0, 3], [0, 0, 0, 0], [0, 0, 0, 0]]),
    "coo concat 0": (lambda: ops.coo_concat((COO, OTHER), 0), np.concatenate((A, B), 0)),
    "coo concat -1": (lambda: ops.coo_concat((COO, OTHER), -1), np.concatenate((A, B), 1)),
    "csr + csr": (lambda: CSR + COO.to_csr(), A + C),
    "csr - csr": (lambda: CSR - COO.to_csr(), C - A),
    "csr add": (lambda: ops.csr_add(CSR, COO.to_csr(), T(2.0), T(3.0)), 2 * C + 3 * A),
    "csr mul": (lambda: ops.csr_mul(CSR, D), C * D.asnumpy()),
    "csr div": (lambda: ops.csr_div(CSR, D[:, :1]), C / D.asnumpy()[:, :1]),
    "csr mv": (lambda: ops.csr_mv(CSR, W[:, :1]), C @ W.asnumpy()[:, :1]),
    "csr mm": (lambda: ops.csr_mm(CSR, W), C @ W.asnumpy()),
    "csr mm csr": (lambda: ops.csr_mm(CSR, COO.to_csr(), False, True), C @ A.T),
    "csr mm transposed": (lambda: ops.csr_mm(CSR, D, trans_a=True), C.T @ D.asnumpy()),
    "csr sum": (lambda: ops.csr_reduce_sum(CSR, 1), C.sum(1, keepdims=True)),
    "csr gather": (lambda: ops.csr_gather(PTR, COLUMNS, D, (3, 4)), [1, 4, 10]),
    "csr2coo": (lambda: ops.csr2coo(PTR, 3), [0, 0, 2]),
    "coo2csr": (lambda: ops.coo2csr(T([0, 0, 2]), 3), [0, 2, 2, 3]),
    "softmax": (
        lambda: ops.csr_softmax(CSR, ms.float32),
        [[1 / (1 + np.e), 0, 0, np.e / (1 + np.e)], [0] * 4, [0, 1, 0, 0]],
    ),
    "matmul": (lambda: ops.SparseTensorDenseMatmul()(I, V, (3, 4), W), A @ W.asnumpy()),
    "matmul transposed": (
        lambda: ops.SparseTensorDenseMatmul(True, True)(I, V, T([3, 4]), D.T),
        A.T @ D.asnumpy(),
    ),
    "SparseToDense": (lambda: ops.SparseToDense()(I, V, (3, 4)), A),
    "SparseTensorDenseAdd": (
        lambda: ops.SparseTensorDenseAdd()(I, V, T([3, 4]), D),
        A + D.asnumpy(),
    ),
    "row tensor": (
        lambda: ops.row_tensor_add(ms.RowTensor(T([1]), T([[1.0] * 4]), (3, 4)), D),
        D.asnumpy() + [[0], [1], [0]],
    ),
    "astype": (lambda: COO.astype(ms.float16), A),
    "to_coo": (lambda: T(A).to_coo(), A),
    "to_csr": (lambda: T(A).to_csr(), A),
    "empty": (lambda: T(np.zeros((2, 3), np.float32)).to_csr(), np.zeros((2, 3))),
}


@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    call, want = ROWS[name]
    np.testing.assert_allclose(dense(call()), want, rtol=1e-6)


@pytest.mark.parametrize("name", _ON_VALUES)
def test_functions_of_the_values(name: str) -> None:
    for kind, x in (("coo", COO * 0.25), ("csr", CSR * 0.25)):
        got = getattr(ops, f"{kind}_{name}")(x)
        assert type(got) is type(x) and got.shape == x.shape
        want = _ON_VALUES[name](x.values).asnumpy()
        np.testing.assert_array_equal(got.values.asnumpy(), want)


def test_parts_and_text() -> None:
    assert (COO.ndim, COO.size, COO.itemsize, COO.dtype) == (2, 3, 4, ms.float32)
    assert [x.tolist() for x in COO.to_csr().to_tuple()[:2]] == [[0, 2, 3, 3], [1, 3, 2]]
    assert str(CSR) == (
        "CSRTensor(shape=[3, 4], dtype=Float32, indptr=Tensor(shape=[4], dtype=Int64, "
        "value=[0 2 2 3]), indices=Tensor(shape=[3], dtype=Int64, value=[0 3 1]), values="
        "Tensor(shape=[3], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00  3.00000000e+00]))"
    )
    order = ops.coalesce(T([[0, 0], [1, 1]]), T([1.0, 2.0]), T([2, 2]))
    assert [x.tolist() for x in order] == [[[0], [1]], [3.0], [2, 2]]
    assert ms.COOTensor(coo_tensor=COO).to_tuple() == COO.to_tuple()


def test_gradients_and_compiled_code() -> None:
    def product(values: Any, matrix: Any) -> Any:
        x = ms.CSRTensor(PTR, COLUMNS, values, (3, 4))
        return x.mm(matrix) + ops.csr_exp(x).sum(1)

    assert ms.check_gradient(product, (T(np.array([0.1, 0.2, 0.3])), T(W.asnumpy())), order=1)
    np.testing.assert_array_equal(ms.jit(product)(V, W).asnumpy(), product(V, W).asnumpy())

    def joined(values: Any) -> Any:
        return (ms.COOTensor(I, values, (3, 4)) + OTHER).to_dense()

    slopes = ms.grad(lambda v: (joined(v) * D).sum())(V)
    assert slopes.tolist() == [2.0, 7.0, 4.0]


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "coo range": (lambda: ms.COOTensor(T([[0, 9]]), T([1.0]), (3, 4)), ValueError, "below"),
    "coo dtype": (lambda: ms.COOTensor(T([[0.0, 1.0]]), T([1.0]), (3, 4)), TypeError, "integers"),
    "coo shapes": (lambda: ms.COOTensor(I, T([1.0]), (3, 4)), ValueError, "wanted"),
    "coo size": (lambda: ms.COOTensor(I, V, (3, 0)), ValueError, "positive"),
    "coo nothing": (ms.COOTensor, TypeError, "indices"),
    "csr columns": (lambda: ms.CSRTensor(PTR, T([0, 3, 4]), V, (3, 4)), ValueError, "columns"),
    "csr indptr": (lambda: ms.CSRTensor(T([0, 2, 1, 3]), COLUMNS, V, (3, 4)), ValueError, "rise"),
    "csr axes": (lambda: ms.CSRTensor(PTR, COLUMNS, V, (3, 4, 5)), ValueError, "two sizes"),
    "row": (lambda: ms.RowTensor(T([0]), T([[1.0]]), (3, 2)), ValueError, "wanted"),
    "sum": (lambda: CSR.sum(0), ValueError, "axis"),
    "mm": (lambda: CSR.mm(D), ValueError, "shapes"),
    "add": (lambda: COO + 3, TypeError, "COOTensor"),
    "kind": (lambda: ops.csr_mv(COO, W), TypeError, "CSRTensor"),
    "flags": (lambda: ops.csr_mm(CSR, W, True, adjoint_a=True), ValueError, "trans"),
    "to_csr": (lambda: V.to_csr(), ValueError, "two axes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()
