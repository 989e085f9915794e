"""The whole cross entropy and its gradient in one region of rows, beside line-by-line execution."""

from __future__ import annotations

import os

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.backend import registry

DEVICE = os.environ.get("DUOGRAPH_CUDA_DEVICE", "CUDA-emulated")  # `make test-gpu` says GPU

# name -> (rows, classes, further arguments of cross_entropy)
CASES = {
    "mean": (70, 33, {}),
    "sum": (70, 33, {"reduction": "sum"}),
    "none": (70, 33, {"reduction": "none"}),
    "an odd number of classes, more than lanes": (5, 1031, {}),
    "fewer classes than a row needs": (9, 5, {}),
    "ignored labels": (70, 33, {"ignore_index": 3}),
    "weights": (12, 40, {"weight": True}),
    "smoothing": (12, 40, {"label_smoothing": 0.1}),
    "weights and smoothing": (12, 40, {"weight": True, "label_smoothing": 0.1}),
    "one row": (1, 100, {}),
}


@pytest.fixture(autouse=True)
def _there():
    problem = registry.problem_of(registry.entries()[DEVICE])
    if problem is not None:
        pytest.skip(problem)


def _result(case, dtype, labels_dtype, device, level):
    rows, classes, more = CASES[case]
    rng = np.random.default_rng(rows)
    x = ms.Tensor(rng.normal(size=(rows, classes)) * 3, dtype, device=device)
    labels = ms.Tensor(rng.integers(0, classes, rows), labels_dtype, device=device)
    more = dict(more)
    if more.get("weight"):
        more["weight"] = ms.Tensor(rng.random(classes), ms.float32, device=device)

    def loss(x, labels):
        return (ops.cross_entropy(x.astype(ms.float32), labels, **more) * 1.5).sum()

    step = ms.value_and_grad(loss)
    value, grad = (step if level is None else ms.jit(step, jit_level=level))(x, labels)
    return float(value), grad.asnumpy().astype(np.float64)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_cross_entropy_and_its_gradient(case, dtype):
    dtype, labels_dtype = getattr(ms, dtype), ms.int64 if case == "sum" else ms.int32
    want, want_grad = _result(case, dtype, labels_dtype, "CPU", None)
    for level in (None, "O0", "O1", "O2"):
        got, grad = _result(case, dtype, labels_dtype, DEVICE, level)
        assert got == pytest.approx(want, rel=1e-5), level
        # a gradient in bfloat16 may round the other way
        limit = 1e-5 if dtype is ms.float32 else 1e-2
        np.testing.assert_allclose(grad, want_grad, rtol=limit, atol=1e-6, err_msg=str(level))


@pytest.mark.parametrize("level", [None, "O0", "O1", "O2"])
@pytest.mark.parametrize("bad", [40, -1])
def test_a_label_out_of_range_is_an_error(bad, level):
    x = ms.Tensor(np.ones((6, 40), np.float32), device=DEVICE)
    labels = ms.Tensor(np.array([0, 1, bad, 3, 4, 5], np.int32), device=DEVICE)
    step = ms.value_and_grad(ops.cross_entropy)
    step = step if level is None else ms.jit(step, jit_level=level)
    with pytest.raises(IndexError, match=str(bad)):
        step(x, labels)[0].asnumpy()


def test_one_kernel_computes_loss_and_gradient():
    x = ms.Tensor(np.ones((70, 1000), np.float32), ms.bfloat16, device=DEVICE)
    labels = ms.Tensor(np.zeros(70, np.int32), device=DEVICE)
    step = ms.jit(
        ms.value_and_grad(lambda x, y: ops.cross_entropy(x.astype(ms.float32), y)), jit_level="O2"
    )
    step(x, labels)
    text = str(step.explain(x, labels))
    assert "scatter" not in text and "log_softmax" not in text, text
