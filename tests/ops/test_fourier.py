"""Fourier transforms return what NumPy's return, in both modes, and have gradients."""

from __future__ import annotations

from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import ops

RNG = np.random.default_rng(3)
R = RNG.standard_normal((3, 4, 5))
C = RNG.standard_normal((3, 4, 5)) + 1j * RNG.standard_normal((3, 4, 5))
NORMS = (None, "backward", "forward", "ortho")
TYPES = {"float32": np.float32, "int32": np.int32, "float64": np.float64, "complex64": np.complex64}


def agree(got: Any, want: Any, tolerance: float) -> None:
    got = got.asnumpy()
    assert got.shape == want.shape
    assert (got.dtype.kind == "c") == (want.dtype.kind == "c")
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_one_axis(name: str, mode: int) -> None:
    x = R if name in ("rfft", "ihfft") else C
    function = getattr(ops, name)
    eager = mode == ms.PYNATIVE_MODE
    for n in (None, 3, 4, 7) if eager else (None, 7):
        for dim in (-1, 0):
            for norm in NORMS if eager else ("ortho",):
                want = getattr(np.fft, name)(x, n, dim, norm)

                def call(t: Any, n: Any = n, dim: int = dim, norm: Any = norm) -> Any:
                    return function(t, n, dim, norm)

                run = call if eager else ms.jit(call)
                agree(run(ms.Tensor(x)), want, 1e-12)


AXES = [(None, (-2, -1)), ((2, 6), (0, 1)), ((3, 3), (-1, 0)), ((4, 4), (1, 2))]


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn",
                                  "irfftn"])  # fmt: skip
def test_several_axes(name: str) -> None:
    x = R if name.startswith("r") else C
    cases = AXES if name.endswith("2") else [*AXES, (None, None), ((3, 8), None), (None, (1,))]
    for s, dim in cases:
        for norm in NORMS:
            # NumPy deprecates sizes without axes
            axes = (-2, -1) if dim is None and s is not None else dim
            want = getattr(np.fft, name)(x, s, axes, norm)
            agree(getattr(ops, name)(ms.Tensor(x), s, dim, norm), want, 1e-12)


@pytest.mark.parametrize("suffix", ["2", "n"])
def test_hermitian_over_several_axes(suffix: str) -> None:
    x = ms.Tensor(R)
    half = getattr(ops, "ihfft" + suffix)(x, norm="ortho")
    want = np.conj(np.fft.rfftn(R, axes=(-2, -1) if suffix == "2" else None, norm="ortho"))
    agree(half, want, 1e-12)
    back = getattr(ops, "hfft" + suffix)(half, R.shape[-2 :] if suffix == "2" else R.shape,
                                         norm="ortho")  # fmt: skip
    agree(back, R, 1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_dtypes(kind: str) -> None:
    x = (C if kind == "complex64" else R * 5).astype(TYPES[kind])
    got = ops.fft(ms.Tensor(x))
    assert got.dtype == (ms.complex128 if kind == "float64" else ms.complex64)
    agree(got, np.fft.fft(x), 1e-4)
    assert ops.irfft(ms.Tensor(x)).dtype == (ms.float64 if kind == "float64" else ms.float32)


def test_shifts_and_frequencies() -> None:
    x = ms.Tensor(R)
    for dim in (None, 0, (0, 2)):
        agree(ops.fftshift(x, dim), np.fft.fftshift(R, dim), 0)
        agree(ops.ifftshift(x, dim), np.fft.ifftshift(R, dim), 0)
    for n in (1, 4, 5):
        agree(ops.fftfreq(n, 0.3, ms.float64), np.fft.fftfreq(n, 0.3), 1e-12)
        agree(ops.rfftfreq(n, 0.3), np.fft.rfftfreq(n, 0.3).astype(np.float32), 1e-6)


GRADIENTS = {
    "fft": lambda x: ops.fft(x, 6).abs(),
    "rfft": lambda x: ops.rfft(x, dim=0, norm="ortho").abs(),
    "irfft": lambda x: ops.irfft(ops.fft(x), 5),
    "hfft": lambda x: ops.hfft(ops.fft(x)),
    "rfftn": lambda x: ops.rfftn(x).real(),
    "ihfft2": lambda x: ops.ihfft2(x).imag(),
    "fftshift": lambda x: ops.fftshift(x) * x,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    assert ms.check_gradient(GRADIENTS[name], ms.Tensor(R[0]))
    compiled = ms.jit(ms.grad(lambda x: GRADIENTS[name](x).sum()))(ms.Tensor(R[0]))
    eager = ms.grad(lambda x: GRADIENTS[name](x).sum())(ms.Tensor(R[0]))
    np.testing.assert_allclose(compiled.asnumpy(), eager.asnumpy(), rtol=1e-10)


@pytest.mark.parametrize("real,inverse,onesided", [(False, False, True), (False, True, True),
                                                   (True, False, True), (True, False, False),
                                                   (True, True, True)])  # fmt: skip
def test_flags(real: bool, inverse: bool, onesided: bool) -> None:
    x = R if real and not inverse else C
    net = ops.FFTWithSize(2, inverse, real, onesided=onesided, signal_sizes=())
    name = ("i" if inverse else "") + ("r" if real and onesided else "") + "fft2"
    agree(net(ms.Tensor(x)), getattr(np.fft, name)(x), 1e-12)


WRONG = {
    "norm": (lambda: ops.fft(ms.Tensor(R), norm="other"), ValueError, "norm"),
    "axis": (lambda: ops.fft(ms.Tensor(R), dim=3), ValueError, "dim 3"),
    "n": (lambda: ops.fft(ms.Tensor(R), 0), ValueError, "at least 1"),
    "0-d": (lambda: ops.fft(ms.Tensor(1.0)), ValueError, "0-d"),
    "empty": (lambda: ops.fft(ops.zeros((2, 0))), ValueError, "empty"),
    "complex": (lambda: ops.rfft(ms.Tensor(C)), TypeError, "real"),
    "lengths": (lambda: ops.fftn(ms.Tensor(R), (3,), (0, 1)), ValueError, "equal lengths"),
    "twice": (lambda: ops.fftn(ms.Tensor(R), None, (0, 0)), ValueError, "twice"),
    "frequency": (lambda: ops.fftfreq(0), ValueError, "at least 1"),
    "flag": (lambda: ops.FFTWithSize(4, False, False), ValueError, "1, 2 or 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()
