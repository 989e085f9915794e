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


def _picked(values, labels):
    """Return the element of each row at its label."""
    return ops.nll_loss(values, labels, reduction="none")


# What is computed from logits (rows, classes) before one element of each row is read.
BEFORE = {
    "log_softmax": lambda x: ops.log_softmax(x, 1),
    "a row's mean subtracted, squared": lambda x: (x * 2 - x.mean(1, keep_dims=True)) ** 2,
    "two tensors": lambda x: ops.tanh(x) * ops.exp(x),
    "a tensor used twice": lambda x: (y := x * 3) * y,
    "a vector of classes": lambda x: x * 2 + x[0],
    "a narrower dtype between": lambda x: (x * 2).astype(ms.float16).astype(ms.float32) + 1,
    "a comparison between": lambda x: ops.select(x > x.mean(1, keep_dims=True), x * 2, x * 3),
    "from integers": lambda x: (x * 4).astype(ms.int32).astype(ms.float32) * 0.5,
    "nothing": lambda x: x + 0,
    "a long chain": lambda x: ops.sin(ops.cos(ops.sin(ops.cos(ops.tanh(x * 2 + 1) - 1) * 3) / 2)),
}  # fmt: skip


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("shape", [(70, 33), (5, 1031), (9, 5), (3, 40)])
@pytest.mark.parametrize("name", BEFORE)
def test_an_element_of_what_is_computed_from_rows(name, shape, level):
    """The element at the label, and the gradient, are those of op-by-op execution."""
    rng = np.random.default_rng(1)
    array = rng.normal(size=shape).astype(np.float32)
    labels = rng.integers(0, shape[1], shape[0]).astype(np.int32)

    def loss(x, labels):
        picked = _picked(BEFORE[name](x), labels)
        return (picked * ops.arange(shape[0])).sum(), picked

    def results(device, compiled):
        step = ms.value_and_grad(loss, has_aux=True)
        step = ms.jit(step, jit_level=level) if compiled else step
        (_, picked), grad = step(ms.Tensor(array, device=device), ms.Tensor(labels, device=device))
        return picked.asnumpy(), grad.asnumpy()

    for got, want in zip(results(DEVICE, True), results("CPU", False), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_positions_are_counted_in_the_kernel(level):
    """Rows compared with positions: along the row, along another axis, read elsewhere as well."""
    array = np.random.default_rng(2).normal(size=(40, 40)).astype(np.float32)

    def f(x):
        at = ops.arange(40)
        below = ops.select(at < 7, x, 0 * x)
        other = ops.select(at.reshape(40, 1) < 7, x, 0 * x)
        return ops.softmax(below, 1), ops.softmax(other, 1), below.sum(0), at + 1

    want = f(ms.Tensor(array, device="CPU"))
    got = ms.jit(f, jit_level=level)(ms.Tensor(array, device=DEVICE))
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine.asnumpy(), theirs.asnumpy(), rtol=2e-6, atol=2e-6)
