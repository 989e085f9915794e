"""Conformance test cases of activation functions and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ops
from ...dtype import FLOATING
from ...op import OPS
from ...ops import activation
from ...ops.activation import gelu_erf, gelu_erf_grad, gelu_tanh, gelu_tanh_grad, sigmoid_grad
from ...ops.rectifiers import relu_grad, relu_of
from ..case import Array, Bad, Make, OpCase, Sample, of_op, unary
from .arithmetic import IMAGINARY, ROWS, TEXT, fused, no_complex

if TYPE_CHECKING:
    from ..case import Oracle

_erf = np.vectorize(math.erf, otypes=[np.float64])


def away(*points: float, **kwargs: object) -> Callable[[Make], Iterator[Sample]]:
    """Return a function that yields test samples with no input value near the kinks `points`.

    At a kink of an activation function, finite differences do not approximate the gradient.
    `kwargs` are passed to every call.
    """

    def samples(make: Make) -> Iterator[Sample]:
        for sample in unary(-4.0, 4.0, **kwargs)(make):
            (x,) = sample.args
            if sample.kind == "nan" or not (make.dtype.is_floating and x.size):
                yield sample
                continue
            wide = x.astype(np.float64)
            for p in points:
                wide = np.where(np.abs(wide - p) < 0.05, p + 0.125, wide)
            moved = wide.astype(x.dtype)
            if sample.kind == "noncontiguous":
                moved = np.ascontiguousarray(moved.T).T
            yield Sample((moved,), sample.kwargs, sample.kind, sample.grad)

    return samples


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    t = x * beta
    return np.where(t > threshold, x, np.logaddexp(t, 0) / beta)


def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def channels(make: Make) -> Iterator[Sample]:
    def x(*shape: int) -> Array:
        return np.where(make(*shape) > 0, 1, -1).astype(make.dtype.np) * make(
            *shape, low=0.25, high=2
        )

    def weight(n: int) -> Array:
        return make(n, low=0.1, high=0.9)

    yield Sample((x(2, 3), weight(3)))
    yield Sample((x(2, 3, 4), weight(1)), kind="broadcast")
    yield Sample((x(), weight(1)), kind="zero_d")
    yield Sample((x(0, 3), weight(3)), kind="empty")
    yield Sample((x(3, 7, 5), weight(7)), kind="odd")
    yield Sample((make.strided(4, 5, low=0.25, high=2), weight(5)), kind="noncontiguous")
    yield Sample((make.special(3, 3), weight(3)), kind="nan")


def prelu(x: Array, weight: Array) -> Array:
    if len(weight) > 1:
        weight = weight.reshape(-1, *(1,) * (x.ndim - 2))
    return np.where(x > 0, x, x * weight)


def halves(make: Make) -> Iterator[Sample]:
    yield Sample((make(3, 4),))
    yield Sample((make(4, 3), 0))
    yield Sample((make(0, 4),), kind="empty")
    yield Sample((make(5, 14),), kind="odd")
    yield Sample((make.strided(4, 6),), kind="noncontiguous")
    yield Sample((make.special(10),), kind="nan")


def glu(x: Array, axis: int = -1) -> Array:
    a, b = np.split(x, 2, axis)
    return a * sigmoid(b)


def case(function: Any, oracle: Oracle, *points: float, **kwargs: object) -> OpCase:
    """Return the test case of an activation function that is one op, and of its gradient op.

    `oracle` is the function in NumPy, `points` are its kinks, which samples avoid (see `away`);
    `kwargs` are passed to every call.
    """
    found = of_op(function)
    op = found or OPS[function.__name__]  # a public function that prepares the op's operands
    covers = [OPS[f"{op.name}_grad"]] if op.bprop_rule else []
    covers += [] if found else [op]
    return OpCase(
        function, away(*points, **kwargs), oracle=fused(oracle), covers=covers,
        errors=[
            Bad(("text",), TypeError, "got str", kwargs),
            Bad((IMAGINARY,), TypeError, f"{op.name}: .*complex64", kwargs),
        ],
        dtypes=FLOATING,
        why="integers are taken too; rounding back to them is the body's",
    )  # fmt: skip


CASES = [
    OpCase(activation.sigmoid, unary(-4, 4), errors=[TEXT], covers=[sigmoid_grad]),
    OpCase(relu_of, away(0.0), errors=[TEXT, no_complex(1, "relu")], covers=[relu_grad]),
    case(ops.relu6, lambda x: np.minimum(np.maximum(x, 0), 6), 0.0),
    case(ops.leaky_relu, lambda x, alpha: np.where(x > 0, x, alpha * x), 0.0, alpha=0.3),
    case(ops.elu, lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)), 0.0, alpha=0.7),
    case(
        ops.celu, lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)), 0.0, alpha=0.7
    ),
    case(
        ops.selu,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
        0.0,
    ),
    OpCase(
        ops.gelu,
        unary(-4, 4),
        dtypes=FLOATING,
        oracle=fused(gelu),
        covers=[gelu_erf, gelu_erf_grad],
        errors=[Bad((ROWS, "best"), ValueError, "gelu: got approximate='best'")],
    ),
    OpCase(
        ops.gelu,
        unary(-4, 4, approximate="tanh"),
        dtypes=FLOATING,
        oracle=fused(gelu),
        covers=[gelu_tanh, gelu_tanh_grad],
        name="gelu by tanh",
        errors=[no_complex(1, "gelu")],
    ),
    case(ops.fast_gelu, lambda x: x * sigmoid(1.702 * x)),
    case(ops.silu, lambda x: x * sigmoid(x)),
    case(ops.softplus, softplus, beta=2.0, threshold=5.0),
    case(ops.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), -3.0, 3.0),
    case(ops.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), -3.0, 3.0),
    case(ops.mish, lambda x: x * np.tanh(softplus(x))),
    case(ops.logsigmoid, lambda x: -np.logaddexp(-x, 0)),
    case(ops.hardshrink, lambda x, lambd: np.where(np.abs(x) <= lambd, 0, x), -0.5, 0.5, lambd=0.5),
    case(
        ops.softshrink,
        lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)),
        -0.5,
        0.5,
        lambd=0.5,
    ),
    case(ops.softsign, lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))),
    case(
        ops.hardtanh,
        lambda x, min_val, max_val: np.clip(x, min_val, max_val),
        -0.5,
        0.75,
        min_val=-0.5,
        max_val=0.75,
    ),
    case(ops.tanhshrink, lambda x: x - np.tanh(x)),
    case(ops.threshold, lambda x, thr, value: np.where(x > thr, x, value), 0.5, thr=0.5, value=3.0),
    OpCase(
        ops.prelu,
        channels,
        dtypes=FLOATING,
        oracle=prelu,
        errors=[Bad((ROWS, np.ones(2, np.float32)), ValueError, r"prelu: weight has shape \(2,\)")],
    ),
    OpCase(
        ops.glu,
        halves,
        dtypes=FLOATING,
        oracle=fused(glu),
        without={"zero_d": "there is no axis to halve"},
        errors=[
            Bad((ROWS,), ValueError, "glu: x has shape .*even"),
            Bad((ROWS, 5), ValueError, "glu: .*5"),
        ],
    ),
]
