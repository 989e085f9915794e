"""Conformance test cases of convolution, and helpers for cases with sliding windows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from ...dtype import REAL, bfloat16, float16, float32
from ...ops.channels_last import (
    conv_channels_last,
    conv_input_grad_channels_last,
    conv_weight_grad_channels_last,
)
from ...ops.convolution import conv, conv_input_grad, conv_weight_grad, conv_with_bias
from ..case import Array, Bad, Make, OpCase, Oracle, Sample, Samples

Ints: TypeAlias = "tuple[int, ...]"  # one per spatial axis
Pairs: TypeAlias = "tuple[tuple[int, int], ...]"  # (low, high) per spatial axis

IMAGE = np.ones((1, 3, 4, 4), np.float32)
IMAGINARY = np.ones((1, 3, 4), np.complex64)
KERNEL = np.ones((2, 2, 3, 3), np.float32)
NO_POINT = {"zero_d": "the input has batch, channel and spatial axes"}
TOL = {float16: 2e-2, bfloat16: 2e-1, float32: 2e-5}
GRAD_TOL = {float16: 1e-1, bfloat16: 1.0, float32: 2e-4}
WHY = "sums of many products, in whatever order"

# input, weight, stride, padding, dilation, groups
CONVOLUTIONS: list[tuple[str, Ints, Ints, Ints, Pairs, Ints, int]] = [
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


def shape_after(x: Ints, w: Ints, stride: Ints, padding: Pairs, dilation: Ints) -> tuple[int, ...]:
    sizes = [
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, (a, b), d in zip(x[2:], w[2:], stride, padding, dilation)
    ]
    return (x[0], w[0], *sizes)


def array_of(make: Make, kind: str, shape: Ints, which: int, first: int = 0) -> Array:
    """Return operand number `which`, of the given shape, for a test sample of a windowed op.

    `kind` is the kind of the sample. If it is "nan", the operand whose number is `first` has a NaN;
    if it is "noncontiguous", that operand is not contiguous. Other operands are ordinary.
    """
    if which != first or kind in ("normal", "empty", "odd"):
        return make(*shape)
    if kind == "nan":
        x = make(*shape)
        x[(0, 1, *[2] * (len(shape) - 2))] = np.nan
        return x
    return make.strided(*shape)


def convolutions(which: str) -> Samples:
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
                yield Sample(
                    (array_of(make, kind, out, 0), make(*w)),
                    {"input_shape": x, **common},
                    kind,
                    grad,
                )
            else:
                args = (array_of(make, kind, x, 0), make(*out))
                yield Sample(args, {"weight_shape": w, **common}, kind, grad)

    return samples


def wide(x: Array) -> Array:
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(np.int64)


def _walk(
    x: Ints, w: Ints, out: Ints, stride: Ints, padding: Pairs, dilation: Ints, groups: int
) -> Iterator[Any]:
    """Yield (output, kernel, input) positions of a sliding window, except those in the padding."""
    for o in np.ndindex(*out):
        for k in np.ndindex(*w):
            i = tuple(
                a * s - low + b * d for a, b, s, (low, _), d in zip(o, k, stride, padding, dilation)
            )
            if all(0 <= a < n for a, n in zip(i, x)):
                yield o, k, i


def conv_of(x: Array, w: Array, stride: Ints, padding: Pairs, dilation: Ints, groups: int) -> Array:
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


def with_bias(x: Array, w: Array, bias: Array, **common: Any) -> Array:
    y = wide(conv_of(x.astype(np.float64) if x.dtype.kind in "fV" else x, w, **common))
    return (y + wide(bias).reshape(-1, *[1] * (x.ndim - 2))).astype(x.dtype)


def conv_input_of(
    dout: Array,
    w: Array,
    input_shape: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    groups: int,
) -> Array:
    n, m = dout.shape[0], w.shape[0]
    d = wide(dout).reshape(n, groups, m // groups, *dout.shape[2:])
    b = wide(w).reshape(groups, m // groups, *w.shape[1:])
    dx = np.zeros((n, groups, w.shape[1], *input_shape[2:]), d.dtype)
    every = slice(None)
    for o, k, i in _walk(
        input_shape[2:], w.shape[2:], dout.shape[2:], stride, padding, dilation, groups
    ):
        part = np.einsum("ngo,goc->ngc", d[(every, every, every, *o)], b[(every, every, every, *k)])
        dx[(every, every, every, *i)] += part
    return dx.reshape(input_shape).astype(dout.dtype)


def conv_weight_of(
    x: Array,
    dout: Array,
    weight_shape: Ints,
    stride: Ints,
    padding: Pairs,
    dilation: Ints,
    groups: int,
) -> Array:
    n, m = dout.shape[:2]
    a = wide(x).reshape(n, groups, x.shape[1] // groups, *x.shape[2:])
    d = wide(dout).reshape(n, groups, m // groups, *dout.shape[2:])
    dw = np.zeros((groups, m // groups, *weight_shape[1:]), a.dtype)
    every = slice(None)
    for o, k, i in _walk(
        x.shape[2:], weight_shape[2:], dout.shape[2:], stride, padding, dilation, groups
    ):
        part = np.einsum("ngo,ngc->goc", d[(every, every, every, *o)], a[(every, every, every, *i)])
        dw[(every, every, every, *k)] += part
    return dw.reshape(weight_shape).astype(x.dtype)


def last(samples: Samples, images: int = 1) -> Samples:
    """Return a function that yields the samples of `samples` with channels last.

    The channel axis of the first `images` arguments moves from position 1 to the end; other
    arguments are unchanged.
    """

    def moved(make: Make) -> Iterator[Sample]:
        for sample in samples(make):
            args = [np.moveaxis(x, 1, -1) for x in sample.args[:images]]
            yield dataclasses.replace(sample, args=(*args, *sample.args[images:]))

    return moved


def last_of(oracle: Oracle, images: int = 1, results: int = 1) -> Oracle:
    """Return a channels-last test oracle that calls a channels-first NumPy function.

    The first `images` operands are channels-last, and so are the results, of which the first
    `results` are returned.
    """

    def found(*args: Array, **attributes: object) -> Array | tuple[Array, ...]:
        moved = [np.moveaxis(x, -1, 1) for x in args[:images]]
        made = oracle(*moved, *args[images:], **attributes)
        ys = made if isinstance(made, tuple) else (made,)
        last = tuple([np.moveaxis(y, 1, -1) for y in ys[:results]])
        return last[0] if results == 1 else last

    return found


def conv_weight_last_of(x: Array, dout: Array, **common: Any) -> Array:
    return conv_weight_of(np.moveaxis(x, -1, 1), np.moveaxis(dout, -1, 1), **common)


CONV_ERRORS = [
    Bad((IMAGE, KERNEL, (1, 1), ((0, 0), (0, 0)), (1, 1), 1), ValueError, "groups"),
    Bad(
        (IMAGE, np.ones((2, 3, 5, 5), np.float32), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
        ValueError,
        "kernel of 5",
    ),
]
NO_CONV = {**NO_POINT, "broadcast": "shapes are matched by their meaning"}

CASES = [
    OpCase(
        conv,
        convolutions("conv"),
        oracle=conv_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_CONV,
        errors=CONV_ERRORS,
    ),
    OpCase(
        conv_channels_last,
        last(convolutions("conv")),
        oracle=last_of(conv_of),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_CONV,
        errors=[
            Bad(
                (IMAGE, KERNEL, (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
                ValueError,
                r"\(1, 4, 3, 4\).*groups",
            ),
            Bad(
                (IMAGE, np.ones((2, 4, 5, 5), np.float32), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
                ValueError,
                "kernel of 5",
            ),
        ],
    ),
    OpCase(
        conv_input_grad_channels_last,
        last(convolutions("input")),
        oracle=last_of(conv_input_of),
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_CONV,
        errors=[
            Bad(
                (
                    np.ones((1, 4, 4, 3), np.float32),
                    np.ones((2, 3, 3, 3), np.float32),
                    (1, 3, 4, 4),
                    (1, 1),
                    ((0, 0), (0, 0)),
                    (1, 1),
                    1,
                ),
                ValueError,
                r"dout of shape \(1, 3, 4, 4\); wanted \(1, 2, 2, 2\)",
            )
        ],
    ),
    OpCase(
        conv_weight_grad_channels_last,
        last(convolutions("weight"), 2),
        oracle=conv_weight_last_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_CONV,
        errors=[
            Bad(
                (
                    np.ones((1, 4, 4, 3), np.float32),
                    np.ones((1, 4, 4, 3), np.float32),
                    (2, 3, 3, 3),
                    (1, 1),
                    ((0, 0), (0, 0)),
                    (1, 1),
                    1,
                ),
                ValueError,
                "wanted",
            )
        ],
    ),
    OpCase(
        conv_with_bias,
        convolutions("bias"),
        dtypes=REAL,
        oracle=with_bias,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_CONV,
        errors=[
            Bad(
                (IMAGE, KERNEL, np.ones(2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
                ValueError,
                "groups",
            )
        ],
    ),
    OpCase(
        conv_input_grad,
        convolutions("input"),
        oracle=conv_input_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_CONV,
        errors=[
            Bad(
                (
                    IMAGE,
                    np.ones((2, 3, 3, 3), np.float32),
                    (1, 3, 4, 4),
                    (1, 1),
                    ((0, 0), (0, 0)),
                    (1, 1),
                    1,
                ),
                ValueError,
                r"dout of shape \(1, 3, 4, 4\); wanted \(1, 2, 2, 2\)",
            )
        ],
    ),
    OpCase(
        conv_weight_grad,
        convolutions("weight"),
        oracle=conv_weight_of,
        tol=TOL,
        grad_tol=GRAD_TOL,
        why=WHY,
        without=NO_CONV,
        errors=[
            Bad(
                (IMAGE, IMAGE, (2, 3, 3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
                ValueError,
                "wanted",
            )
        ],
    ),
]
