"""Functions that few programs use return what NumPy and SciPy return, in both modes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
import scipy.signal
import scipy.spatial
import scipy.special
from duograph import ops
from duograph.errors import GradientError

T = ms.Tensor
RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4, 5))
P = RNG.uniform(0.5, 6, (4, 5))
Q = RNG.uniform(0.5, 6, (4, 5))
U = RNG.uniform(0.1, 0.9, (4, 5))
I = RNG.integers(-9, 9, (3, 4))  # noqa: E741
NAN = np.where(X > 0.8, np.nan, X)
C = X[0] + 1j * X[1]
LARGE = np.array([0, 1e-9, 0.1, 1.999, 2.001, 7.9, 8.1, 30, 300, 1e5, np.inf, np.nan])
SIGNED = np.concatenate([-LARGE, LARGE])

# name -> (function of Tensors, arrays, expected)
Row = tuple[Callable[..., Any], tuple[Any, ...], Any]
ROWS: dict[str, Row] = {
    "igamma": (ops.igamma, (P, Q), scipy.special.gammainc(P, Q)),
    "igamma edges": (
        ops.igamma,
        (np.array([1.0, 1, 0, -1, 2]), np.array([0, np.inf, 1, 1, -1.0])),
        np.array([0, 1, np.nan, np.nan, np.nan]),
    ),
    "igammac": (ops.igammac, (P, Q), scipy.special.gammaincc(P, Q)),
    "igamma of a number": (
        lambda x: ops.igamma(2.0, x),
        (Q,),
        scipy.special.gammainc(2.0, Q),
    ),
    "zeta": (ops.zeta, (P + 1, Q), scipy.special.zeta(P + 1, Q)),
    "zeta pole": (ops.zeta, (np.array([1.0, 2, 3]), np.array([2.0, 0, -1])), np.full(3, np.inf)),
    "polygamma": (lambda x: ops.polygamma(2, x), (X,), scipy.special.polygamma(2, X)),
    "polygamma 0": (lambda x: ops.polygamma(0, x), (P,), scipy.special.digamma(P)),
    "mvlgamma": (lambda x: ops.mvlgamma(x, 3), (P + 1,), scipy.special.multigammaln(P + 1, 3)),
    "Betainc": (ops.Betainc(), (P, Q, U), scipy.special.betainc(P, Q, U)),
    "gcd": (ops.gcd, (I, I[:1]), np.gcd(I, I[:1])),
    "lcm": (ops.lcm, (I, I[:1]), np.lcm(I, I[:1])),
    "gcd of dtypes": (ops.gcd, (I.astype(np.int8), I), np.gcd(I, I)),
    "nextafter": (ops.nextafter, (X, X[::-1]), np.nextafter(X, X[::-1])),
    "population_count": (
        ops.population_count,
        (I,),
        np.array([[bin(v & (2**64 - 1)).count("1") for v in row] for row in I.tolist()], np.uint8),
    ),
    "polar": (ops.polar, (P, X[0]), P * np.exp(1j * X[0])),
    "view_as_real": (ops.view_as_real, (C,), np.stack([C.real, C.imag], -1)),
    "eps": (ops.eps, (X,), np.full(X.shape, np.finfo(np.float64).eps)),
    "histc": (
        lambda x: ops.histc(x, 7, -1, 2),
        (X,),
        np.histogram(X, 7, (-1, 2))[0].astype(np.float64),
    ),
    "histc range": (lambda x: ops.histc(x, 7), (X,), np.histogram(X, 7)[0].astype(np.float64)),
    "quantile": (lambda x: ops.quantile(x, 0.3, 1), (X,), np.quantile(X, 0.3, 1)),
    "quantile all": (lambda x: ops.quantile(x, 0.3), (X,), np.quantile(X, 0.3)),
    "quantiles": (
        lambda x, q: ops.quantile(x, q, -1, True),
        (X, np.array([0.0, 0.37, 1.0])),
        np.quantile(X, [0, 0.37, 1], -1, keepdims=True),
    ),
    "quantile nan": (lambda x: ops.quantile(x, 0.3, 0), (NAN,), np.quantile(NAN, 0.3, 0)),
    "nanquantile": (lambda x: ops.nanquantile(x, 0.6, 2), (NAN,), np.nanquantile(NAN, 0.6, 2)),
    "nanquantile keepdims": (
        lambda x: ops.nanquantile(x, 0.6, None, True),
        (NAN,),
        np.nanquantile(NAN, 0.6, keepdims=True),
    ),
    "nanmean": (lambda x: ops.nanmean(x, 1), (NAN,), np.nanmean(NAN, 1)),
    "nanmean axes": (
        lambda x: ops.nanmean(x, (0, 2), True),
        (NAN,),
        np.nanmean(NAN, (0, 2), keepdims=True),
    ),
    "aminmax": (lambda x: ops.aminmax(x, axis=1), (X,), (X.min(1), X.max(1))),
    "aminmax nan": (
        lambda x: ops.aminmax(x, axis=2),
        (NAN,),
        (np.nanmin(NAN, 2), np.nanmax(NAN, 2)),
    ),
    "intopk": (
        lambda x, t: ops.intopk(x, t, 2),
        (np.array([[1.0, 3, 2], [1, 3, 2], [1, 3, np.nan]]), np.array([0, 2, 2])),
        np.array([False, True, False]),
    ),
    "pdist": (
        lambda x: ops.pdist(x, 3.0),
        (X[0],),
        scipy.spatial.distance.pdist(X[0], "minkowski", p=3),
    ),
    "pdist infinite": (
        lambda x: ops.pdist(x, float("inf")),
        (X[0],),
        scipy.spatial.distance.pdist(X[0], "chebyshev"),
    ),
    "dist": (ops.dist, (X, X[0]), np.linalg.norm((X - X[0]).reshape(-1))),
    "vecdot": (lambda x, y: ops.vecdot(x, y, axis=0), (C, X[1]), (C.conj() * X[1]).sum(0)),
    "bidense": (
        ops.bidense,
        (X[0], X[1], RNG.standard_normal((2, 5, 5)), np.ones(2)),
        None,
    ),
    "stft": (
        lambda x: ops.stft(x, 8, 2, window=T(np.hanning(8)), return_complex=True),
        (X.reshape(2, 30),),
        None,
    ),
}  # fmt: skip
ROWS["bidense"] = (*ROWS["bidense"][:2], np.einsum(
    "ni,oij,nj->no", *[ROWS["bidense"][1][i] for i in (0, 2, 1)]) + 1)  # fmt: skip
_frames = np.lib.stride_tricks.sliding_window_view(
    np.pad(X.reshape(2, 30), ((0, 0), (4, 4)), "reflect"), 8, 1
)[:, ::2]
ROWS["stft"] = (*ROWS["stft"][:2], np.fft.rfft(_frames * np.hanning(8)).swapaxes(1, 2))
for _name in ("i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1"):
    _x = LARGE if _name[0] in "ky" else SIGNED
    with np.errstate(all="ignore"):
        _want = getattr(scipy.special, _name)(_x)
    _want = np.where(np.isinf(_x) & (_name[0] in "jy"), 0.0, _want)
    if _name in ("i0", "i1"):
        _want = np.where(np.isinf(_x), _x if _name == "i1" else np.inf, _want)
    if _name[0] in "ky":
        _want = np.where(_x < 0, np.nan, _want)
    ROWS[f"bessel_{_name}"] = (getattr(ops, f"bessel_{_name}"), (_x,), _want)
for _name, _scipy in (("hann", "hann"), ("hamming", "hamming"), ("blackman", "blackman"),
                      ("bartlett", "bartlett")):  # fmt: skip
    for _periodic in (True, False):
        for _n in (1, 2, 7):
            ROWS[f"{_name} {_periodic} {_n}"] = (
                functools.partial(getattr(ops, f"{_name}_window"), _n, _periodic),
                (),
                getattr(scipy.signal.windows, _scipy)(_n, not _periodic),
            )
ROWS["kaiser"] = (
    lambda: ops.kaiser_window(9, True, 5.0),
    (),
    scipy.signal.windows.kaiser(9, 5.0, False),
)


def outputs(found: Any) -> list[Any]:
    return [x.asnumpy() for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", ROWS)
def test_values(name: str) -> None:
    function, arrays, want = ROWS[name]
    wanted = want if isinstance(want, tuple) else (want,)
    tensors = [T(a) for a in arrays]
    eager, compiled = outputs(function(*tensors)), outputs(ms.jit(function)(*tensors))
    for a, b, w in zip(eager, compiled, wanted, strict=True):
        w = np.asarray(w)
        assert a.shape == w.shape
        assert a.dtype.kind == w.dtype.kind
        np.testing.assert_allclose(a, w, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(a, b)


SMOOTH = {
    "igamma": (ops.igamma, (P, Q)),
    "igammac": (ops.igammac, (P, Q)),
    "zeta": (ops.zeta, (P + 1, Q)),
    "polygamma": (lambda x: ops.polygamma(1, x), (P,)),
    "mvlgamma": (lambda x: ops.mvlgamma(x, 2), (P,)),
    "Betainc": (ops.Betainc(), (P, Q, U)),
    "polar": (lambda r, t: ops.view_as_real(ops.polar(r, t)), (P, Q)),
    "quantile": (lambda x: ops.quantile(x, 0.3, 1), (X,)),
    "nanmean": (lambda x: ops.nanmean(x, 1), (X,)),
    "pdist": (ops.pdist, (X[0],)),
    "dist": (ops.dist, (X[0], X[1])),
    "vecdot": (ops.vecdot, (X[0], X[1])),
    "stft": (lambda x: ops.stft(x, 8, window=T(np.hanning(8))), (X.reshape(2, 30),)),
    **{
        f"bessel_{n}": (getattr(ops, f"bessel_{n}"), (P,))
        for n in ("i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1")
    },
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str) -> None:
    function, arrays = SMOOTH[name]
    checked = ms.check_gradient(function, tuple(T(a) for a in arrays), order=1)
    assert checked, checked


def test_gradient_of_bincount() -> None:
    weights = T([1.0, 2.0, 3.0])
    numbers = T([1, 0, 1])
    assert ops.bincount(numbers, weights).asnumpy().tolist() == [2.0, 4.0]
    slope = ms.grad(lambda w: (ops.bincount(numbers, w) * T([5.0, 7.0])).sum())(weights)
    assert slope.asnumpy().tolist() == [7.0, 5.0, 7.0]


def test_no_gradient_is_lost() -> None:
    with pytest.raises(GradientError, match="nextafter"):
        ms.grad(lambda x: ops.nextafter(x, x + 1).sum())(T([1.0]))


def test_primitive_classes() -> None:
    x = T(np.array([[1.0, 5, 2], [4, 3, 6]], np.float32))
    found = ops.Histogram(3, 1.0, 6.0)(x)
    assert found.dtype == ms.int32 and found.asnumpy().tolist() == [2, 2, 2]
    got = ops.HistogramFixedWidth(2)(x, T([2.0, 4.0])).asnumpy()
    assert got.tolist() == [2, 4]
    y, z = T([0, 1, 1, 2]), T([0, 1, 2, 2])
    assert ops.ConfusionMatrix(3)(y, z).asnumpy().tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert ops.EqualCount()(y, z).asnumpy().tolist() == [3]
    packed = ops.CompareAndBitpack()(T(np.arange(16.0)), T(3.0))
    assert packed.asnumpy().tolist() == [15, 255]
    assert ops.EuclideanNorm(True)(x, T([0])).shape == (1, 3)
    assert ops.BartlettWindow()(T(5)).dtype == ms.float32
    counts = ops.Bincount()(T([0, 1, 1, 9]), T(3), T(np.zeros(0, np.float32)))
    assert counts.asnumpy().tolist() == [1, 2, 0]


SCALARS = {
    "scalar_add": ((1, 2.5), 3.5),
    "scalar_floordiv": ((7, 2), 3),
    "scalar_mod": ((7, 4), 3),
    "scalar_max": ((7, 4), 7),
    "scalar_le": ((7, 4), False),
    "scalar_usub": ((7,), -7),
    "tuple_getitem": (((4, 5), 1), 5),
    "tuple_setitem": (((4, 5), -1, 6), (4, 6)),
    "tuple_reversed": (((4, 5),), (5, 4)),
    "tuple_div": (((4, 6), (2, 3)), (2, 2)),
    "make_tuple": ((1, 2), (1, 2)),
    "shape_mul": (((2, 3),), 6),
    "reduced_shape": (((2, 3), (0,)), (1, 3)),
    "broadcast_gradient_args": (((2, 3), (3,)), ((), (0,))),
    "string_concat": (("a", "b"), "ab"),
    "is_not": ((None, 1), True),
    "isconstant": ((3,), True),
    "is_nonzero": ((T([2.0]),), True),
}


@pytest.mark.parametrize("name", SCALARS)
def test_functions_of_python_values(name: str) -> None:
    args, want = SCALARS[name]
    assert getattr(ops, name)(*args) == want


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "zeta": (lambda: ops.zeta(1.0, 2.0), TypeError, "at least one Tensor"),
    "polygamma": (lambda: ops.polygamma(-1, T(1.0)), ValueError, "0 or more"),
    "polygamma n": (lambda: ops.polygamma(T(1.0), T(1.0)), TypeError, "integer"),
    "mvlgamma": (lambda: ops.mvlgamma(T(1.0), 0), ValueError, "at least 1"),
    "bessel": (lambda: ops.bessel_i0(T(1j)), TypeError, "complex"),
    "bincount": (lambda: ops.bincount(T([1, -1])), ValueError, "negative"),
    "bincount axes": (lambda: ops.bincount(T([[1]])), ValueError, "one axis"),
    "bincount floats": (lambda: ops.bincount(T([1.0])), TypeError, "integers"),
    "quantile": (lambda: ops.quantile(T([1.0]), 2.0), ValueError, "0 to 1"),
    "quantile ints": (lambda: ops.quantile(T([1]), 0.5), TypeError, "floating"),
    "quantile empty": (lambda: ops.quantile(ops.zeros((0,)), 0.5), ValueError, "elements"),
    "pdist": (lambda: ops.pdist(T([1.0])), ValueError, "two axes"),
    "pdist p": (lambda: ops.pdist(T([[1.0]]), -1.0), ValueError, "0 or more"),
    "vecdot": (lambda: ops.vecdot(T([1.0, 2]), T([1.0, 2, 3])), ValueError, "broadcast"),
    "bidense": (lambda: ops.bidense(T([1.0]), T([1.0]), T([1.0])), ValueError, "wanted"),
    "window": (lambda: ops.hann_window(-1), ValueError, "0 or more"),
    "window dtype": (lambda: ops.hann_window(3, dtype=ms.int32), TypeError, "floating"),
    "stft": (lambda: ops.stft(T([1.0] * 8), 4, window=T([1.0])), ValueError, "window"),
    "stft n_fft": (lambda: ops.stft(T([1.0] * 8), 40, center=False), ValueError, "n_fft"),
    "histc": (lambda: ops.histc(T([1.0]), 0), ValueError, "bins"),
    "view_as_real": (lambda: ops.view_as_real(T([1.0])), TypeError, "complex"),
    "scalar_add": (lambda: ops.scalar_add(T(1), 2), TypeError, "Python numbers"),
    "CompareAndBitpack": (lambda: ops.CompareAndBitpack()(T([1.0]), T(1.0)), ValueError, "8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()
