"""Conformance test cases of single time steps of recurrent layers, against NumPy equations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...dtype import FLOATING, bfloat16, float16
from ...ops.recurrent import gru_step, lstm_step, rnn_step
from ..case import Array, Bad, Make, OpCase, Sample

WITHOUT = {"zero_d": "operands are batches of rows", "broadcast": "the parts have fixed shapes"}
WHY = "gates are floating; each result is a chain of a dozen roundings in half precision"
TOL = {float16: 1e-2, bfloat16: 8e-2}


def samples(make: Make, gates: int, cell: bool = False, **kwargs: object) -> Iterator[Sample]:
    """Yield test samples of one time step of a recurrent layer.

    `gates` is the number of gates; `cell` says whether the layer has a cell state beside the hidden
    state. `kwargs` are passed to every call.
    """

    def call(
        n: int, h: int, kind: str = "normal", bias: bool = True, x: Array | None = None
    ) -> Sample:
        x = make(n, gates * h) if x is None else x
        states = [make(n, h) for _ in range(1 + cell)]
        tail = [make(gates * h)] if bias else []
        args = (x, *states, make(gates * h, h, low=-1, high=1), *tail)
        return Sample(args, kwargs, kind)

    yield call(2, 3)
    yield call(2, 3, bias=False)
    yield call(0, 3, "empty")
    yield call(5, 7, "odd")
    yield call(4, 3, "noncontiguous", x=make.strided(4, 3 * gates))
    yield call(3, 2, "nan", x=make.special(3, 2 * gates))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _wide(*arrays: Array | float) -> list[Any]:
    return [None if a is None else np.asarray(a, np.float64) for a in arrays]


def rnn(
    x: Array, h: Array, weight: Array, bias: Array | None = None, relu_gate: bool = False
) -> Array:
    """Compute one time step of a plain recurrent layer (tanh or ReLU) in NumPy."""
    a, b, w, c = _wide(x, h, weight, 0.0 if bias is None else bias)
    out = a + b @ w.T + c
    return (np.maximum(out, 0) if relu_gate else np.tanh(out)).astype(x.dtype)


def lstm(
    x: Array, h: Array, c: Array, weight: Array, bias: Array | None = None
) -> tuple[Array, ...]:
    """Compute one LSTM time step (Hochreiter and Schmidhuber, 1997) in NumPy.

    Gates are in the order i, f, g, o.
    """
    a, b, kept, w, d = _wide(x, h, c, weight, 0.0 if bias is None else bias)
    i, f, g, o = np.split(a + b @ w.T + d, 4, axis=1)
    new = _sigmoid(f) * kept + _sigmoid(i) * np.tanh(g)
    return (_sigmoid(o) * np.tanh(new)).astype(x.dtype), new.astype(x.dtype)


def gru(x: Array, h: Array, weight: Array, bias: Array | None = None) -> Array:
    """Compute one GRU time step (Cho et al., 2014) in NumPy, with gates in the order r, z, n."""
    a, b, w, d = _wide(x, h, weight, 0.0 if bias is None else bias)
    (xr, xz, xn), (hr, hz, hn) = np.split(a, 3, axis=1), np.split(b @ w.T + d, 3, axis=1)
    z = _sigmoid(xz + hz)
    new = np.tanh(xn + _sigmoid(xr + hr) * hn)
    return ((1 - z) * new + z * b).astype(x.dtype)


def _bad(gates: int, cell: bool = False) -> list[Bad]:
    state = np.ones((2, 3), np.float32)
    wide = np.ones((4, 3 * gates), np.float32)
    weight = np.ones((3 * gates, 3), np.float32)
    return [Bad((wide, *[state] * (1 + cell), weight), ValueError, r"\(4, \d+\).*\(2, \d+\)")]


CASES = [
    OpCase(
        rnn_step,
        partial(samples, gates=1),
        FLOATING,
        rnn,
        _bad(1),
        why=WHY,
        tol=TOL,
        without=WITHOUT,
    ),
    OpCase(
        rnn_step,
        partial(samples, gates=1, relu_gate=True),
        FLOATING,
        rnn,
        _bad(1),
        why=WHY,
        tol=TOL,
        without=WITHOUT,
        name="rnn_step relu",
    ),
    OpCase(
        lstm_step,
        partial(samples, gates=4, cell=True),
        FLOATING,
        lstm,
        _bad(4, True),
        why=WHY,
        tol=TOL,
        without=WITHOUT,
    ),
    OpCase(
        gru_step,
        partial(samples, gates=3),
        FLOATING,
        gru,
        _bad(3),
        why=WHY,
        tol=TOL,
        without=WITHOUT,
    ),
]
