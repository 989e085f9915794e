"""Keywords that MindSpore's Tensor methods take beside those of the functions."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(12, dtype=np.float32).reshape(3, 4)

# call of a Tensor `x` (2, 3, 4) or `m` (3, 4) -> the same with NumPy
CALLS = [
    (lambda x, m: x.diagonal(axis1=1, axis2=2), np.diagonal(X, 0, 1, 2)),
    (lambda x, m: x.diagonal(1, 0, -1), np.diagonal(X, 1, 0, -1)),
    (lambda x, m: x.diagonal(offset=-1, dim1=1, dim2=2), np.diagonal(X, -1, 1, 2)),
    (lambda x, m: m.trace(), np.trace(M)),
    (lambda x, m: m.trace(offset=1), np.trace(M, 1)),
    (lambda x, m: m.trace(-2), np.trace(M, -2)),
    (lambda x, m: m.trace(9), np.float32(0)),
    (lambda x, m: x.trace(0, 1, 2), np.trace(X, 0, 1, 2)),
    (lambda x, m: x.trace(axis1=2, axis2=0), np.trace(X, 0, 2, 0)),
    (lambda x, m: m.trace(dtype=ms.int32), np.trace(M).astype(np.int32)),
    (lambda x, m: x.flip(dims=(0, 2)), X[::-1, :, ::-1]),
    (lambda x, m: x.flip(dims=1), X[:, ::-1]),
    (lambda x, m: x.flip(0, 1), X[::-1, ::-1]),
    (lambda x, m: x.flip((0,)), X[::-1]),
    (lambda x, m: m.expand_as(x=x[:, :, :]), np.broadcast_to(M, (2, 3, 4))),
    (lambda x, m: m.expand_as(x), np.broadcast_to(M, (2, 3, 4))),
    (lambda x, m: m.expand_as(other=m), M),
    (lambda x, m: (m * 1).clamp_(min=3, max=5), M.clip(3, 5)),
    (lambda x, m: (m * 1).clamp_(max=5), M.clip(None, 5)),
    (lambda x, m: ms.ops.pinv(m), np.linalg.pinv(M)),
    (lambda x, m: ms.ops.pinv(m, rtol=0.5), np.linalg.pinv(M, rcond=0.5)),
    (lambda x, m: ms.ops.pinv(m, atol=5.0), np.linalg.pinv(M, rcond=5.0 / np.linalg.norm(M, 2))),
    (lambda x, m: ms.ops.pinv(m, atol=1e-9, rtol=0.5), np.linalg.pinv(M, rcond=0.5)),
    (
        lambda x, m: ms.ops.pinv(ms.Tensor([[2.0, 9.0], [1.0, 3.0]]), hermitian=True),
        np.linalg.inv(np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)),
    ),
]


@pytest.mark.parametrize(("call", "wanted"), CALLS)
def test_values(call, wanted):
    found = call(ms.Tensor(X), ms.Tensor(M)).asnumpy()
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("call", "wanted"), CALLS[:-5])  # pinv computes on the host
def test_compiled_values(call, wanted):
    found = ms.jit(call)(ms.Tensor(X), ms.Tensor(M)).asnumpy()
    np.testing.assert_array_equal(found, call(ms.Tensor(X), ms.Tensor(M)).asnumpy())


def test_gradients():
    slope = ms.grad(lambda x: x.trace(1, 1, 2).sum())(ms.Tensor(X)).asnumpy()
    np.testing.assert_array_equal(slope, np.broadcast_to(np.eye(3, 4, 1), (2, 3, 4)))


WRONG = [
    ("x.trace()", ValueError), ("x.diagonal(axis1=1, axis2=1)", ValueError),
    ("m.expand_as()", TypeError), ("m.flip(dims=5)", ValueError),
    ("ms.ops.pinv(m.astype(ms.int32), atol=1.0)", TypeError),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error"), WRONG)
def test_wrong_arguments_are_refused(call, error):
    with pytest.raises(error):
        eval(call, {"x": ms.Tensor(X), "m": ms.Tensor(M), "ms": ms})
