"""Convolution, pooling, normalisation, resampling, embedding and boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...dtype import FLOATING, REAL, bfloat16, float16, float32, float64, int32
from ...ops.table import P
from ..case import Bad, Make, OpCase, Sample

ROWS = np.ones((2, 3), np.float32)
IMAGE = np.ones((1, 3, 4, 4), np.float32)
IMAGINARY = np.ones((1, 3, 4), np.complex64)
KERNEL = np.ones((2, 2, 3, 3), np.float32)
INTEGERS = np.ones((1, 2, 2, 2), np.int64)
WHOLE = np.ones((1, 4), np.int64)
NO_POINT = {"zero_d": "the input has batch, channel and spatial axes"}
TOL = {float16: 2e-2, bfloat16: 2e-1, float32: 2e-5}
GRAD_TOL = {float16: 1e-1, bfloat16: 1.0, float32: 2e-4}
WHY = "sums of many products, in whatever order"

# input, weight, stride, padding, dilation, groups
CONVOLUTIONS: list[tuple[str, Any, Any, Any, Any, Any, int]] = [
    ("normal", (2, 3, 6), (4, 3, 3), (1,), ((0, 0),), (1,), 1),
    ("normal", (2, 4, 6), (6, 2, 3), (2,), ((1, 0),), (1,), 2),
    ("normal", (1, 3, 5, 4), (2, 3, 3, 2), (1, 2), ((1, 1), (0, 1)), (2, 1), 1),
    ("normal", (1, 2, 4, 4, 3), (2, 1, 2, 2, 2), (1, 2, 1), ((0, 1), (1, 0), (0, 0)), (1, 1, 2), 2),
    ("normal", (2, 3, 5, 5), (3, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
    ("normal", (2, 3, 4, 4), (5, 3, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ("normal", (1, 1, 5, 5), (1, 1, 2, 2), (3, 3), ((0, 0), (0, 0)), (1, 1), 1),
    ("empty", (0, 3, 5, 5), (2, 3, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ("odd", (3, 5, 11, 7), (7, 5, 3, 5), (2, 1), ((1, 1), (2, 2)), (1, 1), 1),
    ("noncontiguous", (2, 3, 5, 4), (2, 3, 2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ("nan", (1, 2, 5, 5), (2, 2, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
]


def shape_after(x: Any, w: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    sizes = [
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, (a, b), d in zip(x[2:], w[2:], stride, padding, dilation)
    ]
    return (x[0], w[0], *sizes)


def array_of(make: Make, kind: str, shape: Any, which: int, first: int = 0) -> Any:
    """The operand `which`; the first one is special in samples of a kind."""
    if which != first or kind in ("normal", "empty", "odd"):
        return make(*shape)
    if kind == "nan":
        x = make(*shape)
        x[(0, 1, *[2] * (len(shape) - 2))] = np.nan
        return x
    return make.strided(*shape)


def convolutions(which: str) -> Any:
    def samples(make: Make) -> Iterator[Sample]:
        for kind, x, w, stride, padding, dilation, groups in CONVOLUTIONS:
            if kind == "nan" and not make.inexact:
                continue
            common = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
            out = shape_after(x, w, stride, padding, dilation)
            grad = kind != "odd"
            if which == "conv":
                args = (array_of(make, kind, x, 0), make(*w))
                yield Sample(args, common, kind, grad)
            elif which == "bias":
                yield Sample((array_of(make, kind, x, 0), make(*w), make(w[0])), common, kind, grad)
            elif which == "input":
                yield Sample((array_of(make, kind, out, 0), make(*w)), {"input_shape": x, **common}, kind, grad)
            else:
                args = (array_of(make, kind, x, 0), make(*out))
                yield Sample(args, {"weight_shape": w, **common}, kind, grad)

    return samples


def wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(np.int64)


def _walk(x: Any, w: Any, out: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Iterator[Any]:
    """Every (output position, kernel position, input position) inside the input."""
    for o in np.ndindex(*out):
        for k in np.ndindex(*w):
            i = tuple(a * s - low + b * d for a, b, s, (low, _), d in zip(o, k, stride, padding, dilation))
            if all(0 <= a < n for a, n in zip(i, x)):
                yield o, k, i


def conv_of(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    n, m = x.shape[0], w.shape[0]
    out = shape_after(x.shape, w.shape, stride, padding, dilation)
    a = wide(x).reshape(n, groups, x.shape[1] // groups, *x.shape[2:])
    b = wide(w).reshape(groups, m // groups, *w.shape[1:])
    y = np.zeros((n, groups, m // groups, *out[2:]), a.dtype)
    every = slice(None)
    for o, k, i in _walk(x.shape[2:], w.shape[2:], out[2:], stride, padding, dilation, groups):
        part = np.einsum("ngc,goc->ngo", a[(every, every, every, *i)], b[(every, every, every, *k)])
        y[(every, every, every, *o)] += part
    return y.reshape(out).astype(x.dtype)


def with_bias(x: Any, w: Any, bias: Any, **common: Any) -> Any:
    y = wide(conv_of(x.astype(np.float64) if x.dtype.kind in "fV" else x, w, **common))
    return (y + wide(bias).reshape(-1, *[1] * (x.ndim - 2))).astype(x.dtype)


def conv_input_of(
    dout: Any, w: Any, input_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    n, m = dout.shape[0], w.shape[0]
    d = wide(dout).reshape(n, groups, m // groups, *dout.shape[2:])
    b = wide(w).reshape(groups, m // groups, *w.shape[1:])
    dx = np.zeros((n, groups, w.shape[1], *input_shape[2:]), d.dtype)
    every = slice(None)
    for o, k, i in _walk(input_shape[2:], w.shape[2:], dout.shape[2:], stride, padding, dilation, groups):
        part = np.einsum("ngo,goc->ngc", d[(every, every, every, *o)], b[(every, every, every, *k)])
        dx[(every, every, every, *i)] += part
    return dx.reshape(input_shape).astype(dout.dtype)


def conv_weight_of(
    x: Any, dout: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    n, m = dout.shape[:2]
    a = wide(x).reshape(n, groups, x.shape[1] // groups, *x.shape[2:])
    d = wide(dout).reshape(n, groups, m // groups, *dout.shape[2:])
    dw = np.zeros((groups, m // groups, *weight_shape[1:]), a.dtype)
    every = slice(None)
    for o, k, i in _walk(x.shape[2:], weight_shape[2:], dout.shape[2:], stride, padding, dilation, groups):
        part = np.einsum("ngo,ngc->goc", d[(every, every, every, *o)], a[(every, every, every, *i)])
        dw[(every, every, every, *k)] += part
    return dw.reshape(weight_shape).astype(x.dtype)


# ---- pooling ------------------------------------------------------------------------------------

POOLS: list[tuple[str, Any, Any, Any, Any, Any]] = [
    ("normal", (2, 3, 7), (3,), (2,), ((1, 1),), (1,)),
    ("normal", (1, 2, 5, 6), (2, 3), (2, 1), ((0, 1), (1, 1)), (1, 2)),
    ("normal", (1, 1, 3, 4, 3), (2, 2, 2), (1, 1, 1), ((0, 0),) * 3, (1, 1, 1)),
    ("normal", (2, 1, 4, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ("empty", (0, 2, 4, 4), (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ("odd", (3, 5, 11, 7), (3, 2), (2, 3), ((1, 1), (1, 0)), (1, 1)),
    ("noncontiguous", (2, 3, 4, 5), (2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ("nan", (1, 2, 5, 5), (2, 2), (1, 1), ((0, 1), (1, 0)), (1, 1)),
]


def max_pools(make: Make) -> Iterator[Sample]:
    for kind, x, kernel, stride, padding, dilation in POOLS:
        if kind == "nan" and not make.inexact:
            continue
        array = array_of(make, kind, x, 0) if kind in ("nan", "noncontiguous") else make.distinct(*x)
        common = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        yield Sample((array,), common, kind, kind != "noncontiguous")


def max_pool_of(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    out = shape_after(x.shape, (x.shape[1], 0, *kernel), stride, padding, dilation)
    values, index = np.empty(out, x.dtype), np.empty(out, np.int64)
    size = x.shape[2:]
    for at in np.ndindex(*out):
        best: Any = None
        for k in np.ndindex(*kernel):
            i = tuple(a * s - low + b * d for a, b, s, (low, _), d in zip(at[2:], k, stride, padding, dilation))
            if all(0 <= a < n for a, n in zip(i, size)):
                v = x[(*at[:2], *i)]
                if best is None or (best[0] == best[0] and (v > best[0] or v != v)):
                    best = (v, int(np.ravel_multi_index(i, size)))
        values[at], index[at] = best
    return values, index


def max_pool_grads(make: Make) -> Iterator[Sample]:
    for kind, x, kernel, stride, padding, dilation in POOLS:
        if kind == "nan" and not make.inexact:
            continue
        out = shape_after(x, (x[1], 0, *kernel), stride, padding, dilation)
        index = make.index(*out, below=int(np.prod(x[2:])))
        yield Sample((array_of(make, kind, out, 0), index), {"input_shape": x}, kind)


def max_pool_grad_of(dout: Any, index: Any, input_shape: Any) -> Any:
    dx = np.zeros((*input_shape[:2], int(np.prod(input_shape[2:]))), wide(dout).dtype)
    for at in np.ndindex(*dout.shape):
        dx[(*at[:2], index[at])] += wide(dout)[at]
    return dx.reshape(input_shape).astype(dout.dtype)


def avg_pools(of_gradient: bool) -> Any:
    def samples(make: Make) -> Iterator[Sample]:
        for include, divisor in ((True, 0), (False, 0), (True, 3)):
            for kind, x, kernel, stride, padding, _ in POOLS:
                if kind == "nan" and not make.inexact:
                    continue
                one = (1,) * len(kernel)
                common = {"kernel": kernel, "stride": stride, "padding": padding,
                          "count_include_pad": include, "divisor": divisor}  # fmt: skip
                out = shape_after(x, (x[1], 0, *kernel), stride, padding, one)
                if of_gradient:
                    yield Sample((array_of(make, kind, out, 0),), {"input_shape": x, **common}, kind)
                else:
                    yield Sample((array_of(make, kind, x, 0),), common, kind)

    return samples


def _cells(size: Any, out: Any, kernel: Any, stride: Any, padding: Any) -> Iterator[Any]:
    """Every window with the input positions in it."""
    for o in np.ndindex(*out):
        inside = []
        for k in np.ndindex(*kernel):
            i = tuple(a * s - low + b for a, b, s, (low, _) in zip(o, k, stride, padding))
            if all(0 <= a < n for a, n in zip(i, size)):
                inside.append(i)
        yield o, inside


def avg_pool_of(x: Any, kernel: Any, stride: Any, padding: Any, count_include_pad: bool, divisor: int) -> Any:
    out = shape_after(x.shape, (x.shape[1], 0, *kernel), stride, padding, (1,) * len(kernel))
    y = np.zeros(out)
    every = slice(None)
    for o, inside in _cells(x.shape[2:], out[2:], kernel, stride, padding):
        count = divisor or (int(np.prod(kernel)) if count_include_pad else max(len(inside), 1))
        y[(every, every, *o)] = sum(x[(every, every, *i)].astype(np.float64) for i in inside) / count
    return y.astype(x.dtype)


def avg_pool_grad_of(
    dout: Any, input_shape: Any, kernel: Any, stride: Any, padding: Any, count_include_pad: bool, divisor: int
) -> Any:
    dx = np.zeros(input_shape)
    every = slice(None)
    for o, inside in _cells(input_shape[2:], dout.shape[2:], kernel, stride, padding):
        count = divisor or (int(np.prod(kernel)) if count_include_pad else max(len(inside), 1))
        for i in inside:
            dx[(every, every, *i)] += dout[(every, every, *o)].astype(np.float64) / count
    return dx.astype(dout.dtype)


def adaptive(distinct: bool) -> Any:
    def samples(make: Make) -> Iterator[Sample]:
        rows: list[tuple[str, Any, Any]] = [
            ("normal", (2, 3, 9), (4,)), ("normal", (1, 2, 6, 5), (3, 2)), ("normal", (1, 1, 4, 3, 5), (2, 3, 2)),
            ("empty", (0, 2, 4, 4), (2, 3)), ("odd", (3, 5, 11, 7), (4, 3)),
            ("noncontiguous", (2, 3, 4, 5), (3, 2)), ("nan", (1, 2, 5, 5), (2, 3)),
        ]  # fmt: skip
        for kind, x, out in rows:
            array = array_of(make, kind, x, 0)
            if distinct and kind in ("normal", "odd"):
                array = make.distinct(*x)
            yield Sample((array, out), kind=kind, grad=not (distinct and kind == "noncontiguous"))

    return samples


def _bins(n: int, out: int) -> list[tuple[int, int]]:
    return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def adaptive_avg_of(x: Any, output_size: Any) -> Any:
    y = np.zeros((*x.shape[:2], *output_size))
    every = slice(None)
    bins = [_bins(n, o) for n, o in zip(x.shape[2:], output_size)]
    for o in np.ndindex(*output_size):
        where = tuple(slice(*bins[i][a]) for i, a in enumerate(o))
        part = wide(x)[(every, every, *where)]
        y[(every, every, *o)] = part.mean(tuple(range(2, x.ndim)))
    return y.astype(x.dtype)


def adaptive_max_of(x: Any, output_size: Any) -> Any:
    shape = (*x.shape[:2], *output_size)
    values, index = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    bins = [_bins(n, o) for n, o in zip(x.shape[2:], output_size)]
    size = x.shape[2:]
    for at in np.ndindex(*shape):
        best: Any = None
        for i in np.ndindex(*size):
            if all(bins[j][a][0] <= c < bins[j][a][1] for j, (a, c) in enumerate(zip(at[2:], i))):
                v = x[(*at[:2], *i)]
                if best is None or (best[0] == best[0] and (v > best[0] or v != v)):
                    best = (v, int(np.ravel_multi_index(i, size)))
        values[at], index[at] = best
    return values, index


def foldings(of_fold: bool) -> Any:
    def samples(make: Make) -> Iterator[Sample]:
        for kind, x, kernel, stride, padding, dilation in POOLS:
            if kind == "nan" and not make.inexact:
                continue
            out = shape_after(x, (x[1], 0, *kernel), stride, padding, dilation)
            if of_fold:
                columns = (x[0], x[1] * int(np.prod(kernel)), int(np.prod(out[2:])))
                array = make.strided(*columns) if kind == "noncontiguous" else make(*columns)
                if kind == "nan":
                    array[0, 1, 2] = np.nan
                yield Sample((array, x[2:], kernel, stride, padding, dilation), kind=kind)
            else:
                yield Sample((array_of(make, kind, x, 0), kernel, stride, padding, dilation), kind=kind)

    return samples


# ---- normalisation ------------------------------------------------------------------------------


def layer_norms(make: Make) -> Iterator[Sample]:
    rows: list[tuple[str, Any, int]] = [
        ("normal", (3, 5), 1), ("normal", (2, 3, 4), 1), ("normal", (2, 3, 4), 2), ("normal", (6,), 0),
        ("empty", (0, 4), 1), ("odd", (7, 13, 3), 2), ("odd", (3, 131), 1), ("noncontiguous", (4, 5), 1),
        ("nan", (3, 4), 1),
    ]  # fmt: skip
    for kind, shape, axis in rows:
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[1, 2] = np.nan
        g, b = make(*shape[axis:], low=0.5, high=1.5), make(*shape[axis:])
        yield Sample((x, g, b), {"axis": axis, "eps": 1e-3}, kind, shape != (3, 131))


def layer_norm_of(x: Any, gamma: Any, beta: Any, axis: int, eps: float) -> Any:
    axes = tuple(range(axis, x.ndim))
    y = wide(x)
    mean = y.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(y.var(axes, keepdims=True) + eps)
    kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return ((y - mean) * rstd * wide(gamma) + wide(beta)).astype(x.dtype), mean.astype(kept), rstd.astype(kept)


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


def optional_norm_of(x: Any, gamma: Any, beta: Any, axis: int, eps: float) -> Any:
    one, zero = np.ones(x.shape[axis:]), np.zeros(x.shape[axis:])
    return layer_norm_of(x, one if gamma is None else gamma, zero if beta is None else beta, axis, eps)[0]


def batch_norms(make: Make) -> Iterator[Sample]:
    rows: list[tuple[str, Any]] = [
        ("normal", (5, 3)), ("normal", (3, 2, 4)), ("normal", (2, 3, 3, 2)), ("empty", (3, 0, 2)),
        ("odd", (7, 5, 11)), ("noncontiguous", (5, 4)), ("nan", (4, 3)),
    ]  # fmt: skip
    for kind, shape in rows:
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[1, 2] = np.nan
        c = shape[1]
        yield Sample((x, make(c, low=0.5, high=1.5), make(c)), {"eps": 1e-3}, kind)


def batch_norm_of(x: Any, gamma: Any, beta: Any, eps: float) -> Any:
    axes = (0, *range(2, x.ndim))
    y = wide(x)
    mean, var = y.mean(axes), y.var(axes)

    def along(v: Any) -> Any:
        return wide(v).reshape(-1, *[1] * (x.ndim - 2))

    out = (y - along(mean)) / np.sqrt(along(var) + eps) * along(gamma) + along(beta)
    kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return out.astype(x.dtype), mean.astype(kept), var.astype(kept)


def batch_norm_grads(make: Make) -> Iterator[Sample]:
    for sample in batch_norms(make):
        x, g, _ = sample.args
        _, mean, var = batch_norm_of(x, g, g, 1e-3)
        yield Sample((x, g, mean, var, make(*x.shape)), sample.kwargs, sample.kind, sample.grad)


def batch_norm_infers(make: Make) -> Iterator[Sample]:
    for sample in batch_norms(make):
        x, g, b = sample.args
        c = x.shape[1]
        yield Sample((x, g, b, make(c), make(c, low=0.5)), sample.kwargs, sample.kind, sample.grad)


def batch_norm_infer_of(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, eps: float) -> Any:
    def along(v: Any) -> Any:
        return wide(v).reshape(-1, *[1] * (x.ndim - 2))

    scale = along(gamma) / np.sqrt(along(variance) + eps)
    return ((wide(x) - along(mean)) * scale + along(beta)).astype(x.dtype)


def group_norms(make: Make) -> Iterator[Sample]:
    for kind, shape, groups in (
        ("normal", (2, 4, 3), 2), ("normal", (2, 3, 2, 2), 1), ("empty", (0, 4, 3), 2), ("odd", (3, 6, 7), 3),
        ("noncontiguous", (3, 4), 2), ("nan", (2, 4, 2), 2),
    ):  # fmt: skip
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[1, 2] = np.nan
        c = shape[1]
        yield Sample((x, make(c), make(c), groups, 1e-3), kind=kind)
        if kind == "normal":
            yield Sample((x, None, None, groups, 1e-3), kind=kind)


def group_norm_of(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
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


def rms_norm_of(x: Any, gamma: Any, eps: float) -> Any:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    rstd = 1 / np.sqrt((wide(x) ** 2).mean(axes, keepdims=True) + eps)
    kept = np.float32 if x.dtype.itemsize == 2 else x.dtype
    return (wide(x) * rstd * wide(gamma)).astype(x.dtype), rstd.astype(kept)


def responses(make: Make) -> Iterator[Sample]:
    for kind, shape in (
        ("normal", (2, 5, 3, 2)), ("empty", (0, 3, 2, 2)), ("odd", (3, 7, 5, 1)), ("noncontiguous", (2, 3, 4, 2)),
        ("nan", (1, 4, 2, 2)),
    ):
        x = make.strided(*shape) if kind == "noncontiguous" else make(*shape)
        if kind == "nan":
            x[0, 1, 1, 1] = np.nan
        yield Sample((x, 1, 1.0, 0.5, 0.75), kind=kind)


def response_of(x: Any, depth_radius: int, bias: float, alpha: float, beta: float) -> Any:
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


def unit_of(x: Any, axis: Any, epsilon: float) -> Any:
    y = wide(x)
    total = np.maximum((y * y).sum(axis, keepdims=True), epsilon)
    return (y / np.sqrt(total)).astype(x.dtype)


# ---- resampling ---------------------------------------------------------------------------------


def resizes(make: Make) -> Iterator[Sample]:
    for mode in ("nearest", "linear", "cubic"):
        for rule in ("corners", "half", "plain"):
            yield Sample((make(1, 2, 4, 5), (3, 7), mode, rule, (None, None)))
            yield Sample((make(2, 1, 5), (8,), mode, rule, (None,)))
    yield Sample((make(1, 1, 3, 2, 4), (2, 3, 5), "linear", "half", (None, None, None)))
    yield Sample((make(1, 2, 5), (7,), "linear", "half", (1.5,)))
    yield Sample((make(0, 2, 3, 3), (2, 4), "linear", "half", (None, None)), kind="empty")
    yield Sample((make(3, 5, 7, 11), (13, 4), "linear", "corners", (None, None)), kind="odd")
    yield Sample((make.strided(2, 3, 4, 5), (3, 3), "linear", "half", (None, None)), kind="noncontiguous")
    if make.inexact:
        x = make(1, 2, 4)
        x[0, 1, 1] = np.nan
        yield Sample((x, (6,), "linear", "half", (None,)), kind="nan")


def grids(make: Make) -> Iterator[Sample]:
    def places(*shape: int) -> Any:
        # away from the edges of cells, where the derivative jumps
        return (np.floor(make.rng.uniform(0, 12, shape)) * 0.2 - 1.13).astype(make.dtype.np)

    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            smooth = mode == "bilinear" and padding == "zeros"
            yield Sample((make(2, 3, 4, 5), places(2, 3, 2, 2), mode, padding, padding == "border"), grad=smooth)
    yield Sample((make(1, 2, 3, 4, 3), places(1, 2, 2, 3, 3), "bilinear", "zeros", True))
    yield Sample((make(0, 2, 3, 3), places(0, 2, 2, 2), "bilinear", "zeros", False), kind="empty")
    yield Sample((make(3, 5, 7, 11), places(3, 5, 3, 2), "bilinear", "zeros", False), kind="odd")
    yield Sample((make.strided(1, 2, 4, 5), places(1, 3, 2, 2), "bilinear", "border", False), kind="noncontiguous",
                 grad=False)  # fmt: skip
    x = make(1, 2, 4, 4)
    x[0, 1, 1, 1] = np.nan
    yield Sample((x, places(1, 2, 2, 2), "bilinear", "zeros", False), kind="nan")


def embeddings(make: Make) -> Iterator[Sample]:
    yield Sample((make.index(3, 2, below=5), make(5, 4), -1, False))
    yield Sample((make.index(3, 2, below=5), make(5, 4), 2, False), grad=False)
    yield Sample((make.index(6, below=3, dtype=int32), make(3, 2), -1, True), grad=False)
    yield Sample((make.index(below=5), make(5, 4), -1, False), kind="zero_d")
    yield Sample((make.index(0, below=5), make(5, 4), -1, False), kind="empty")
    yield Sample((make.index(11, 3, below=13), make(13, 7), -1, False), kind="odd")
    yield Sample((np.repeat(make.index(4, below=5), 2)[::2], make.strided(5, 4), -1, False), kind="noncontiguous")
    if make.inexact:
        yield Sample((make.index(4, below=3), make.special(3, 3), -1, False), kind="nan")


# ---- boxes --------------------------------------------------------------------------------------


def boxes(make: Make, n: int) -> Any:
    low = make(n, 2, low=0.0, high=8.0)
    return np.concatenate([low, low + make(n, 2, low=1.0, high=8.0)], 1).astype(make.dtype.np)


def overlaps(make: Make) -> Iterator[Sample]:
    for of_ground in (False, True):
        yield Sample((boxes(make, 3), boxes(make, 4), of_ground))
        yield Sample((boxes(make, 0), boxes(make, 4), of_ground), kind="empty")
        yield Sample((boxes(make, 7), boxes(make, 13), of_ground), kind="odd")
        yield Sample((np.repeat(boxes(make, 3), 2, 0)[::2], boxes(make, 2), of_ground), kind="noncontiguous")
    bad = boxes(make, 3)
    bad[1, 2] = np.nan
    yield Sample((bad, boxes(make, 2), False), kind="nan")


def overlap_of(anchor: Any, ground: Any, of_ground: bool) -> Any:
    a, g = wide(anchor), wide(ground)
    out = np.zeros((len(g), len(a)))
    for i, q in enumerate(g):
        for j, p in enumerate(a):
            w = np.maximum(np.minimum(p[2], q[2]) - np.maximum(p[0], q[0]) + 1, 0)
            h = np.maximum(np.minimum(p[3], q[3]) - np.maximum(p[1], q[1]) + 1, 0)
            own = (q[2] - q[0] + 1) * (q[3] - q[1] + 1)
            whole = own if of_ground else own + (p[2] - p[0] + 1) * (p[3] - p[1] + 1) - w * h
            out[i, j] = w * h / whole
    return out.astype(anchor.dtype)


STATS = ((0.1, 0.0, 0.2, 0.0), (0.5, 1.0, 2.0, 1.0))


def encodings(make: Make) -> Iterator[Sample]:
    yield Sample((boxes(make, 3), boxes(make, 3), *STATS))
    yield Sample((boxes(make, 0), boxes(make, 0), *STATS), kind="empty")
    yield Sample((boxes(make, 13), boxes(make, 13), *STATS), kind="odd")
    yield Sample((np.repeat(boxes(make, 3), 2, 0)[::2], boxes(make, 3), *STATS), kind="noncontiguous")
    bad = boxes(make, 3)
    bad[1, 2] = np.nan
    yield Sample((bad, boxes(make, 3), *STATS), kind="nan")


def decodings(make: Make) -> Iterator[Sample]:
    for sample in encodings(make):
        anchor = sample.args[0]
        rest = ((9, 12), *STATS, 0.016)
        yield Sample((anchor, make(len(anchor), 4, low=-0.3, high=0.3), *rest), kind=sample.kind, grad=False)
    # nothing is cut here
    yield Sample((boxes(make, 3) + 20, make(3, 4, low=-0.3, high=0.3), (99, 99), *STATS, 0.016))


def suppressions(make: Make) -> Iterator[Sample]:
    def scored(n: int) -> Any:
        return np.concatenate([boxes(make, n), make.distinct(n, 1)], 1).astype(make.dtype.np)

    yield Sample((scored(6), 0.3))
    yield Sample((scored(0), 0.3), kind="empty")
    yield Sample((scored(31), 0.5), kind="odd")
    yield Sample((np.repeat(scored(4), 2, 0)[::2], 0.3), kind="noncontiguous")


def regions(make: Make) -> Iterator[Sample]:
    def rois(m: int, n: int) -> Any:
        low = make(m, 2, low=0.0, high=4.0)
        return np.concatenate(
            [make.index(m, 1, below=max(n, 1)).astype(low.dtype), low, low + make(m, 2, low=1.3, high=5.0)], 1
        ).astype(make.dtype.np)

    yield Sample((make(2, 3, 6, 5), rois(3, 2), 2, 3, 0.5, 2, 1), grad=False)
    yield Sample((make(1, 2, 6, 5), rois(2, 1), 2, 2, 1.0, 1, 0), grad=False)
    yield Sample((make(1, 2, 6, 5), rois(0, 1), 2, 2, 1.0, 2, 1), kind="empty")
    yield Sample((make(3, 5, 7, 11), rois(7, 3), 3, 1, 0.75, 2, 1), kind="odd", grad=False)
    yield Sample((make.strided(1, 2, 6, 5), rois(2, 1), 2, 2, 1.0, 2, 1), kind="noncontiguous", grad=False)
    x = make(1, 2, 6, 5)
    x[0, 1, 2, 2] = np.nan
    yield Sample((x, rois(2, 1), 2, 2, 1.0, 2, 1), kind="nan")


def crops(make: Make) -> Iterator[Sample]:
    def squares(m: int) -> Any:
        return make(m, 4, low=-0.1, high=1.1)

    for method in ("bilinear", "nearest"):
        args = (make(2, 4, 5, 3), squares(3), make.index(3, below=2), (2, 3), method, 0.5)
        yield Sample(args, grad=False)
    yield Sample((make(1, 4, 5, 2), squares(0), make.index(0, below=1), (2, 2), "bilinear", 0.0), kind="empty")
    odd = (make(3, 7, 11, 5), squares(7), make.index(7, below=3), (1, 5), "bilinear", 0.0)
    yield Sample(odd, kind="odd", grad=False)
    yield Sample((make.strided(1, 4, 5, 2), squares(2), make.index(2, below=1), (2, 2), "bilinear", 0.0),
                 kind="noncontiguous", grad=False)  # fmt: skip
    x = make(1, 4, 5, 2)
    x[0, 1, 1, 1] = np.nan
    yield Sample((x, squares(2), make.index(2, below=1), (2, 2), "bilinear", 0.0), kind="nan")


NO_BOX_POINT = {"zero_d": "boxes are rows of four", "broadcast": "all pairs are formed"}
CONV_ERRORS = [
    Bad((IMAGE, KERNEL, (1, 1), ((0, 0), (0, 0)), (1, 1), 1), ValueError, "groups"),
    Bad((IMAGE, np.ones((2, 3, 5, 5), np.float32), (1, 1), ((0, 0), (0, 0)), (1, 1), 1), ValueError, "window of 5"),
]
NO_CONV = {**NO_POINT, "broadcast": "shapes are matched by their meaning"}
NO_STAT = {"zero_d": "there must be an axis to normalise"}

CASES = [
    OpCase(P.conv, convolutions("conv"), oracle=conv_of, tol=TOL, grad_tol=GRAD_TOL, why=WHY, without=NO_CONV,
           errors=CONV_ERRORS),
    OpCase(P.conv_bias, convolutions("bias"), dtypes=REAL, oracle=with_bias, tol=TOL, grad_tol=GRAD_TOL, why=WHY,
           without=NO_CONV,
           errors=[Bad((IMAGE, KERNEL, np.ones(2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1), ValueError, "groups")]),
    OpCase(P.conv_input_grad, convolutions("input"), oracle=conv_input_of, tol=TOL, grad_tol=GRAD_TOL, why=WHY,
           without=NO_CONV, errors=[Bad(
               (IMAGE, np.ones((2, 3, 3, 3), np.float32), (1, 3, 4, 4), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
               ValueError, r"dout of shape \(1, 3, 4, 4\); wanted \(1, 2, 2, 2\)")]),
    OpCase(P.conv_weight_grad, convolutions("weight"), oracle=conv_weight_of, tol=TOL, grad_tol=GRAD_TOL, why=WHY,
           without=NO_CONV, errors=[Bad(
               (IMAGE, IMAGE, (2, 3, 3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1), ValueError, "wanted")]),
    OpCase(P.max_pool, max_pools, oracle=max_pool_of, without=NO_POINT, errors=[
        Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), (1, 1)), ValueError, "window of 5"),
        Bad((ROWS, (1,), (1,), ((0, 0),), (1,)), ValueError, r"\(2, 3\)"),
        Bad((IMAGINARY, (1,), (1,), ((0, 0),), (1,)), TypeError, "complex64")]),
    OpCase(P.max_pool_grad, max_pool_grads, oracle=max_pool_grad_of, grad=(0,), without=NO_POINT,
           errors=[Bad((IMAGINARY, np.zeros((1, 3, 4), np.int64), (1, 3, 4)), TypeError, "complex64")],
           tol={float16: 1e-2, bfloat16: 1e-1}, why="several cotangents meet in one element"),
    OpCase(P.avg_pool, avg_pools(False), oracle=avg_pool_of, without=NO_POINT, dtypes=FLOATING,
           tol={float16: 1e-2, bfloat16: 5e-2},
           why="means of integers round as the sum over the divisor does in floating point, which no one asks for",
           errors=[Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), True, 0), ValueError, "window of 5")]),
    OpCase(P.avg_pool_grad, avg_pools(True), oracle=avg_pool_grad_of, without=NO_POINT, dtypes=FLOATING,
           tol={float16: 1e-2, bfloat16: 1e-1}, why="sums of shares; integers have no gradient",
           errors=[Bad((IMAGINARY, (1, 3, 4), (1,), (1,), ((0, 0),), True, 0), TypeError, "complex64")]),
    OpCase(P.adaptive_avg_pool, adaptive(False), oracle=adaptive_avg_of, without=NO_POINT,
           tol={float16: 1e-2, bfloat16: 1e-1},
           grad_tol={float16: 5e-2, bfloat16: 5e-1}, why="means of means",
           errors=[Bad((np.ones((1, 2, 3), np.int64), (2,)), TypeError, "int64")]),
    OpCase(P.adaptive_max_pool, adaptive(True), oracle=adaptive_max_of, without=NO_POINT,
           errors=[Bad((np.ones((1, 2, 3), np.int64), (2,)), TypeError, "int64")]),
    OpCase(P.unfold, foldings(False), without=NO_POINT,
           errors=[Bad((IMAGE, (5, 5), (1, 1), ((0, 0), (0, 0)), (1, 1)), ValueError, "window of 5")]),
    OpCase(P.fold, foldings(True), without=NO_POINT, tol={float16: 1e-2, bfloat16: 1e-1},
           grad_tol={float16: 5e-2, bfloat16: 5e-1}, why="several elements meet in one",
           errors=[Bad((IMAGINARY, (4,), (1,), (1,), ((0, 0),), (1,)), TypeError, "complex64")]),
    OpCase(P.layer_norm_core, layer_norms, oracle=layer_norm_of, without=NO_STAT, tol=TOL,
           grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3}, why=WHY,
           errors=[Bad((ROWS, np.ones(4), np.ones(4), 1, 1e-5), ValueError, r"gamma of shape \(4,\)")]),
    OpCase(P.layer_norm_grad, layer_norm_grads, without=NO_STAT, tol={float16: 1e-1, bfloat16: 1.0, float32: 2e-4},
           grad_tol={float16: 5e-1, bfloat16: 5.0, float32: 2e-3}, why=WHY,
           errors=[Bad((np.ones((2, 3), np.int64), ROWS[0], ROWS[:, :1], ROWS[:, :1], ROWS, 1), TypeError, "int64")]),
    OpCase(P.layer_norm, optional_norms, oracle=optional_norm_of, without=NO_STAT, tol=TOL,
           grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3}, why=WHY,
           errors=[Bad((ROWS, np.ones(4), None, 1, 1e-5), ValueError, r"gamma of shape \(4,\)")]),
    OpCase(P.batch_norm_train, batch_norms, oracle=batch_norm_of, without=NO_STAT, tol=TOL,
           grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3}, why=WHY,
           errors=[Bad((ROWS, np.ones(4), np.ones(4), 1e-5), ValueError, r"gamma of shape \(4,\)")]),
    OpCase(P.batch_norm_grad, batch_norm_grads, without=NO_STAT, tol={float16: 1e-1, bfloat16: 1.0, float32: 2e-4},
           grad_tol={float16: 1.0, bfloat16: 9.0, float32: 5e-3}, why=WHY,
           errors=[Bad((np.ones((2, 3), np.int64), *[ROWS[0]] * 3, ROWS, 1e-5), TypeError, "int64")]),
    OpCase(P.batch_norm_infer, batch_norm_infers, oracle=batch_norm_infer_of, without=NO_STAT, tol=TOL,
           grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3}, why=WHY,
           errors=[Bad((ROWS, np.ones(4), np.ones(4), np.ones(4), np.ones(4), 1e-5), ValueError, "gamma")]),
    OpCase(P.group_norm, group_norms, oracle=group_norm_of, without=NO_STAT, tol=TOL,
           grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3}, why=WHY,
           errors=[Bad((np.ones((2, 4), np.int64), None, None, 2, 1e-5), TypeError, "int64")]),
    OpCase(P.rms_norm, rms_norms, oracle=rms_norm_of, without=NO_STAT, tol=TOL,
           grad_tol={float16: 3e-1, bfloat16: 3.0, float32: 1e-3}, why=WHY,
           errors=[Bad((np.ones((2, 4), np.int64), np.ones(4), 1e-5), TypeError, "int64")]),
    OpCase(P.lrn, responses, oracle=response_of, without=NO_POINT, tol=TOL, grad_tol=GRAD_TOL, why=WHY,
           errors=[Bad((np.ones((1, 2, 2, 2), np.int64), 1, 1.0, 1.0, 0.5), TypeError, "int64")]),
    OpCase(P.l2_normalize, unit_vectors, oracle=unit_of, tol=TOL, grad_tol=GRAD_TOL, why=WHY,
           errors=[Bad((np.ones(2, np.int64), (0,), 1e-4), TypeError, "int64")]),
    OpCase(P.resize, resizes, dtypes=FLOATING, without=NO_POINT, tol=TOL, grad_tol=GRAD_TOL,
           why=f"{WHY}; integers are not meant",
           errors=[Bad(("text", (2,), "linear", "half", (None,)), TypeError, "str")]),
    OpCase(P.grid_sample, grids, without=NO_POINT, tol={float16: 5e-2, bfloat16: 5e-1, float32: 5e-5},
           grad_tol={float16: 5e-1, bfloat16: 5.0, float32: 5e-3}, why=WHY,
           errors=[Bad((INTEGERS, INTEGERS, "bilinear", "zeros", True), TypeError, "int64")]),
    OpCase(P.embedding, embeddings, dtypes=FLOATING, grad=(1,), why="tables are floating",
           errors=[Bad(("text", ROWS, -1, False), TypeError, "str")]),
    OpCase(P.iou, overlaps, oracle=overlap_of, without=NO_BOX_POINT, tol={float16: 1e-2, bfloat16: 1e-1}, grad=False,
           why="quotients of areas", errors=[Bad((WHOLE, WHOLE, False), TypeError, "int64")]),
    OpCase(P.bounding_box_encode, encodings, without=NO_BOX_POINT, tol={float16: 2e-2, bfloat16: 2e-1},
           grad_tol={float16: 2e-1, bfloat16: 2.0, float32: 2e-4}, why="quotients of sides",
           errors=[Bad((WHOLE, WHOLE, *STATS), TypeError, "int64")]),
    OpCase(P.bounding_box_decode, decodings, without=NO_BOX_POINT, tol={float16: 5e-2, bfloat16: 5e-1},
           grad_tol={float16: 5e-1, bfloat16: 5.0, float32: 2e-4}, why="exponentials of offsets",
           errors=[Bad((WHOLE, WHOLE, (9, 9), *STATS, 0.1), TypeError, "int64")]),
    OpCase(P.nms_with_mask, suppressions, dtypes=FLOATING, without={
        "zero_d": "boxes are rows of five", "nan": "scores that are not numbers have no order"},
        why="boxes are floating", errors=[Bad(("text", 0.5), TypeError, "str")]),
    OpCase(P.roi_align, regions, without=NO_BOX_POINT, tol={float16: 1e-1, bfloat16: 1.0, float32: 1e-4},
           why="positions round to the dtype", grad=False,
           errors=[Bad((INTEGERS, np.ones((1, 5), np.int64), 1, 1, 1.0, 1, 1), TypeError, "int64")]),
    OpCase(P.crop_and_resize, crops, dtypes=(float32, float64), without=NO_BOX_POINT, tol={float32: 1e-4}, grad=False,
           why="positions round to the dtype; images of other dtypes are cast to that of the boxes",
           errors=[Bad(("text", np.ones((1, 4)), np.zeros(1, np.int64), (1, 1), "bilinear", 0.0), TypeError, "str")]),
]
