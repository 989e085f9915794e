"""Conformance test cases of normalisation of layers, batches, groups and vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ...dtype import bfloat16, float16, float32
from ...ops.batch_normalization import (
    batch_moments,
    batch_norm_grad,
    batch_norm_infer,
    batch_norm_train,
    batch_products,
)
from ...ops.normalization import (
    group_norm,
    l2_normalize,
    layer_norm,
    layer_norm_core,
    layer_norm_grad,
    lrn,
    rms_norm,
)
from ..case import ROWS, Array, Bad, Make, OpCase, Sample
from .convolution import GRAD_TOL, NO_POINT, TOL, WHY, wide


def layer_norms(make: Make) -> Iterator[Sample]:
    rows: list[tuple[str, tuple[int, ...], int]] = [
        ("normal", (3, 5), 1),
        ("normal", (2, 3, 4), 1),
        ("normal", (2, 3, 4), 2),
        ("normal", (6,), 0),
        ("empty", (0, 4), 1),
        ("odd", (7, 13, 3), 2),
        ("odd", (3, 131), 1),
        ("noncontiguous", (4, 5), 1),
        ("nan", (3, 4), 1),
    ]
    for kind, shape, axis in rows:
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[1, 2] = np.nan
        g, b = make(*shape[axis:], low=0.5, high=1.5), make(*shape[axis:])
        yield Sample((x, g, b), {"axis": axis, "eps": 1e-3}, kind, shape != (3, 131))


def layer_norm_of(x: Array, gamma: Array, beta: Array, axis: int, eps: float) -> tuple[Array, ...]:
    axes = tuple(range(axis, x.ndim))
    y = wide(x)
    mean = y.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(y.var(axes, keepdims=True) + eps)
    kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return (
        ((y - mean) * rstd * wide(gamma) + wide(beta)).astype(x.dtype),
        mean.astype(kept),
        rstd.astype(kept),
    )


def layer_norm_grads(make: Make) -> Iterator[Sample]:
    for sample in layer_norms(make):
        x, g, _ = sample.args
        axis = sample.kwargs["axis"]
        _, mean, rstd = layer_norm_of(x, g, g, axis, 1e-3)
        yield Sample((x, g, mean, rstd, make(*x.shape)), {"axis": axis}, sample.kind, sample.grad)


def optional_norms(make: Make) -> Iterator[Sample]:
    for sample in layer_norms(make):
        x, g, b = sample.args
        yield Sample((x, g, b), sample.kwargs, sample.kind, sample.grad)
        if sample.kind == "normal":
            yield Sample((x, None, None), sample.kwargs, sample.kind)


def optional_norm_of(x: Array, gamma: Array, beta: Array, axis: int, eps: float) -> Array:
    one, zero = np.ones(x.shape[axis:]), np.zeros(x.shape[axis:])
    return layer_norm_of(
        x, one if gamma is None else gamma, zero if beta is None else beta, axis, eps
    )[0]


def batch_norms(make: Make) -> Iterator[Sample]:
    rows: list[tuple[str, tuple[int, ...]]] = [
        ("normal", (5, 3)), ("normal", (3, 2, 4)), ("normal", (2, 3, 3, 2)), ("empty", (3, 0, 2)),
        ("odd", (7, 5, 11)), ("noncontiguous", (5, 4)), ("nan", (4, 3)),
    ]  # fmt: skip
    for kind, shape in rows:
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[1, 2] = np.nan
        c = shape[1]
        yield Sample((x, make(c, low=0.5, high=1.5), make(c)), {"eps": 1e-3}, kind)


def batch_norm_of(x: Array, gamma: Array, beta: Array, eps: float) -> tuple[Array, ...]:
    axes = (0, *range(2, x.ndim))
    y = wide(x)
    mean, var = y.mean(axes), y.var(axes)

    def along(v: Array) -> Array:
        return wide(v).reshape(-1, *[1] * (x.ndim - 2))

    out = (y - along(mean)) / np.sqrt(along(var) + eps) * along(gamma) + along(beta)
    kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return out.astype(x.dtype), mean.astype(kept), var.astype(kept)


def batch_norm_grads(make: Make) -> Iterator[Sample]:
    for sample in batch_norms(make):
        x, g, _ = sample.args
        _, mean, var = batch_norm_of(x, g, g, 1e-3)
        yield Sample((x, g, mean, var, make(*x.shape)), sample.kwargs, sample.kind, sample.grad)


def batch_moments_of(x: Array) -> tuple[Array, ...]:
    one = np.ones(x.shape[1])
    return batch_norm_of(x, one, one, 1.0)[1:]


def batch_products_of(dout: Array, x: Array, mean: Array) -> tuple[Array, ...]:
    axes = (0, *range(2, x.ndim))
    dy = wide(dout)
    centred = wide(x) - wide(mean).reshape(-1, *[1] * (x.ndim - 2))
    kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return dy.sum(axes).astype(kept), (dy * centred).sum(axes).astype(kept)


def batches(make: Make) -> Iterator[Sample]:
    for sample in batch_norms(make):
        yield dataclasses.replace(sample, args=sample.args[:1], kwargs={})


def batches_of_gradients(make: Make) -> Iterator[Sample]:
    for sample in batch_norms(make):
        x = sample.args[0]
        mean = batch_moments_of(x)[0]
        yield dataclasses.replace(sample, args=(make(*x.shape), x, mean), kwargs={})


def batch_norm_infers(make: Make) -> Iterator[Sample]:
    for sample in batch_norms(make):
        x, g, b = sample.args
        c = x.shape[1]
        yield Sample((x, g, b, make(c), make(c, low=0.5)), sample.kwargs, sample.kind, sample.grad)


def batch_norm_infer_of(
    x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, eps: float
) -> Array:
    def along(v: Array) -> Array:
        return wide(v).reshape(-1, *[1] * (x.ndim - 2))

    scale = along(gamma) / np.sqrt(along(variance) + eps)
    return ((wide(x) - along(mean)) * scale + along(beta)).astype(x.dtype)


def group_norms(make: Make) -> Iterator[Sample]:
    for kind, shape, groups in (
        ("normal", (2, 4, 3), 2),
        ("normal", (2, 3, 2, 2), 1),
        ("empty", (0, 4, 3), 2),
        ("odd", (3, 6, 7), 3),
        ("noncontiguous", (3, 4), 2),
        ("nan", (2, 4, 2), 2),
    ):
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[1, 2] = np.nan
        c = shape[1]
        yield Sample((x, make(c), make(c), groups, 1e-3), kind=kind)
        if kind == "normal":
            yield Sample((x, None, None, groups, 1e-3), kind=kind)


def group_norm_of(x: Array, weight: Array, bias: Array, groups: int, eps: float) -> Array:
    y = wide(x).reshape(x.shape[0], groups, int(np.prod(x.shape[1:])) // groups)
    mean, var = y.mean(2, keepdims=True), y.var(2, keepdims=True)
    out = ((y - mean) / np.sqrt(var + eps)).reshape(x.shape)
    along = (-1, *[1] * (x.ndim - 2))
    if weight is not None:
        out = out * wide(weight).reshape(along)
    return (out if bias is None else out + wide(bias).reshape(along)).astype(x.dtype)


def rms_norms(make: Make) -> Iterator[Sample]:
    for sample in layer_norms(make):
        x, g, _ = sample.args
        if x.shape != g.shape:
            yield Sample((x, g, 1e-3), kind=sample.kind, grad=sample.grad)


def rms_norm_of(x: Array, gamma: Array, eps: float) -> tuple[Array, ...]:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / np.sqrt((wide(x) ** 2).mean(axes, keepdims=True) + eps)
    kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return (wide(x) * rstd * wide(gamma)).astype(x.dtype), rstd.astype(kept)


def responses(make: Make) -> Iterator[Sample]:
    for kind, shape in (
        ("normal", (2, 5, 3, 2)),
        ("empty", (0, 3, 2, 2)),
        ("odd", (3, 7, 5, 1)),
        ("noncontiguous", (2, 3, 4, 2)),
        ("nan", (1, 4, 2, 2)),
    ):
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[0, 1, 1, 1] = np.nan
        yield Sample((x, 1, 1.0, 0.5, 0.75), kind=kind)


def response_of(x: Array, depth_radius: int, bias: float, alpha: float, beta: float) -> Array:
    y = wide(x)
    c = x.shape[1]
    out = np.empty_like(y)
    for i in range(c):
        near = y[:, max(i - depth_radius, 0) : i + depth_radius + 1]
        out[:, i] = y[:, i] / (bias + alpha * (near**2).sum(1)) ** beta
    return out.astype(x.dtype)


def unit_vectors(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4), (1,), 1e-4))
    yield Sample((make(2, 3, 4), (0, 2), 1e-4))
    yield Sample((make(low=0.5), (), 1e-4), kind="zero_d")
    yield Sample((make(0, 3), (1,), 1e-4), kind="empty")
    yield Sample((make(7, 11, 3), (1,), 1e-4), kind="odd")
    yield Sample((make.strided(4, 5), (0,), 1e-4), kind="noncontiguous")
    yield Sample((make.special(9), (0,), 1e-4), kind="nan")


def unit_of(x: Array, axis: int, epsilon: float) -> Array:
    y = wide(x)
    total = np.maximum((y * y).sum(axis, keepdims=True), epsilon)
    return (y / np.sqrt(total)).astype(x.dtype)


NO_STAT = {"zero_d": "there must be an axis to normalise"}

CASES = [
    OpCase(
        layer_norm_core,
        layer_norms,
        oracle=layer_norm_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[Bad((ROWS, np.ones(4), np.ones(4), 1, 1e-5), ValueError, r"gamma of shape \(4,\)")],
    ),
    OpCase(
        layer_norm_grad,
        layer_norm_grads,
        without=NO_STAT,
        tol={float16: 1e-1, bfloat16: 1.0, float32: 2e-4},
        grad_tol={float16: 5e-1, bfloat16: 5.0, float32: 2e-3},
        why=WHY,
        errors=[
            Bad(
                (np.ones((2, 3), np.int64), ROWS[0], ROWS[:, :1], ROWS[:, :1], ROWS, 1),
                TypeError,
                "int64",
            )
        ],
    ),
    OpCase(
        layer_norm,
        optional_norms,
        oracle=optional_norm_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[Bad((ROWS, np.ones(4), None, 1, 1e-5), ValueError, r"gamma of shape \(4,\)")],
    ),
    OpCase(
        batch_norm_train,
        batch_norms,
        oracle=batch_norm_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[Bad((ROWS, np.ones(4), np.ones(4), 1e-5), ValueError, r"gamma of shape \(4,\)")],
    ),
    OpCase(
        batch_norm_grad,
        batch_norm_grads,
        without=NO_STAT,
        tol={float16: 1e-1, bfloat16: 1.0, float32: 2e-4},
        grad_tol={float16: 1.0, bfloat16: 9.0, float32: 5e-3},
        why=WHY,
        errors=[Bad((np.ones((2, 3), np.int64), *[ROWS[0]] * 3, ROWS, 1e-5), TypeError, "int64")],
    ),
    OpCase(
        batch_moments,
        batches,
        oracle=batch_moments_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[Bad((np.ones(3, np.float32),), ValueError, "wanted")],
    ),
    OpCase(
        batch_products,
        batches_of_gradients,
        oracle=batch_products_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[Bad((ROWS, ROWS, np.ones(4, np.float32)), ValueError, "means")],
    ),
    OpCase(
        batch_norm_infer,
        batch_norm_infers,
        oracle=batch_norm_infer_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[
            Bad((ROWS, np.ones(4), np.ones(4), np.ones(4), np.ones(4), 1e-5), ValueError, "gamma")
        ],
    ),
    OpCase(
        group_norm,
        group_norms,
        oracle=group_norm_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[Bad((np.ones((2, 4), np.int64), None, None, 2, 1e-5), TypeError, "int64")],
    ),
    OpCase(
        rms_norm,
        rms_norms,
        oracle=rms_norm_of,
        without=NO_STAT,
        tol=TOL,
        grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3},
        why=WHY,
        errors=[Bad((np.ones((2, 4), np.int64), np.ones(4), 1e-5), TypeError, "int64")],
    ),
    OpCase(
        lrn,
        responses,
        oracle=response_of,
        without=NO_POINT,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        errors=[Bad((np.ones((1, 2, 2, 2), np.int64), 1, 1.0, 1.0, 0.5), TypeError, "int64")],
    ),
    OpCase(
        l2_normalize,
        unit_vectors,
        oracle=unit_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        errors=[Bad((np.ones(2, np.int64), (0,), 1e-4), TypeError, "int64")],
    ),
]
