"""Gradients of duograph.numpy in both modes, errors of wrong arguments, and its examples."""

from __future__ import annotations

import doctest
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import duograph as ms
import duograph.numpy as mnp
import numpy as np
import pytest
from duograph import Tensor

X = Tensor(np.array([[0.3, -0.7, 0.2], [1.1, 0.5, -0.4]], np.float32))
P = Tensor(np.array([[1.3, 2.7, 0.2], [1.1, 0.5, 3.4]], np.float32))
V = Tensor(np.array([1.5, -0.5, 2.0, 0.25], np.float32))
N = Tensor(np.array([[1.0, np.nan, 3.0], [2.0, 5.0, np.nan]], np.float32))

DIFFERENTIABLE: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "cbrt": (mnp.cbrt, (P,)),
    "hypot": (mnp.hypot, (X, P)),
    "logaddexp2": (mnp.logaddexp2, (X, P)),
    "float_power": (mnp.float_power, (P, X)),
    "divmod": (lambda x, y: mnp.divmod(x, y)[1], (X, P)),
    "clip": (lambda x: mnp.clip(x, -0.5, 0.6), (X,)),
    "around": (lambda x: x * mnp.around(x), (X,)),
    "linspace": (lambda a, b: mnp.linspace(a, b, 4), (X, P)),
    "logspace": (lambda a: mnp.logspace(a, 1.5, 3), (X,)),
    "geomspace": (lambda a, b: mnp.geomspace(a, b, 4, axis=1), (P, P + 1)),
    "array of Tensors": (lambda x: mnp.array([x[0, 0], 2.0, x[1, 2]]), (X,)),
    "full": (lambda x: mnp.full((4, 3), x), (X[0],)),
    "diag": (lambda x: mnp.diag(mnp.diag(x[:, :2])), (X,)),
    "vander": (lambda x: mnp.vander(x, 3, increasing=True), (V,)),
    "concatenate": (lambda x, y: mnp.concatenate((x, y), None), (X, V)),
    "repeat": (lambda x: mnp.repeat(x, [1, 3], 0), (X,)),
    "tile": (lambda x: mnp.tile(x, (2, 1, 2)), (X,)),
    "pad odd": (lambda x: mnp.pad(x, 4, "reflect", reflect_type="odd"), (V,)),
    "pad ramp": (lambda x: mnp.pad(x, 2, "linear_ramp", end_values=3), (X,)),
    "pad median": (lambda x: mnp.pad(x, 1, "median", stat_length=3), (X,)),
    "apply_along_axis": (lambda x: mnp.apply_along_axis(lambda r: r * r[0], 1, x), (X,)),
    "where": (lambda x, y: mnp.where(x > 0, x, y), (X, P)),
    "select": (lambda x: mnp.select([x > 0.4, x < 0], [x * x, -x], 7), (X,)),
    "piecewise": (lambda x: mnp.piecewise(x, [x < 0], [lambda v: -v, lambda v: v**3]), (X,)),
    "take": (lambda x: mnp.take(x, [0, 7], 1), (X,)),
    "take_along_axis": (lambda x: mnp.take_along_axis(x, [[1], [0]], 1), (X,)),
    "choose": (lambda x, y: mnp.choose([0, 1, 0], (x, y)), (X, P)),
    "mean": (lambda x: mnp.mean(x, axis=0), (X,)),
    "std": (lambda x: mnp.std(x, axis=1, ddof=1), (X,)),
    "amax where": (lambda x: mnp.amax(x, where=[True, False, True], initial=-9, axis=1), (X,)),
    "ptp": (lambda x: mnp.ptp(x, axis=0), (X,)),
    "average": (lambda x, w: mnp.average(x, 1, w), (X, P)),
    "nansum": (lambda x: mnp.nansum(mnp.where(mnp.isnan(N), N, x)), (X,)),
    "cumprod": (lambda x: mnp.cumprod(x, 1), (P,)),
    "diff": (lambda x: mnp.diff(x, 2, prepend=1.0), (V,)),
    "ediff1d": (lambda x: mnp.ediff1d(x, to_end=x[0]), (V,)),
    "gradient": (lambda x: mnp.gradient(x, 2.0), (X,)),
    "trapz": (lambda y, x: mnp.trapz(y, x), (V, mnp.cumsum(P.reshape(-1)[:4]))),
    "interp": (lambda x, f: mnp.interp(x, [-1.0, 0.0, 1.0, 2.0], f), (X, V)),
    "unwrap": (lambda x: mnp.unwrap(x), (V * 5,)),
    "convolve": (lambda x, y: mnp.convolve(x, y, "same"), (V, P[0])),
    "correlate": (lambda x, y: mnp.correlate(x, y, "full"), (V, P[0])),
    "polyval": (mnp.polyval, (V, X)),
    "polyint": (lambda p: mnp.polyint(mnp.polyder(p), 2), (V,)),
    "polymul": (mnp.polymul, (V, P[0])),
    "cross": (lambda a, b: mnp.cross(a, b, axisc=0), (X, P)),
    "kron": (mnp.kron, (X, P)),
    "multi_dot": (lambda a, b: mnp.multi_dot([a, b.T, a]), (X, P)),
    "norm": (lambda x: mnp.norm(x, axis=1), (X,)),
    "trace": (lambda x: mnp.trace(x, 1), (X,)),
    "tensordot": (lambda a, b: mnp.tensordot(a, b, ([1], [1])), (X, P)),
    "cov": (lambda x: mnp.cov(x), (X,)),
    "corrcoef": (lambda x, y: mnp.corrcoef(x, y), (V, V * V)),
    "histogram weights": (lambda w: mnp.histogram(V, 3, weights=w)[0], (V,)),
    "bincount weights": (lambda w: mnp.bincount([0, 2, 2, 1], w, length=4), (V,)),
    "fft": (lambda x: mnp.abs(mnp.fft.fft(x)), (V,)),
    "irfftn": (lambda x: mnp.fft.irfftn(mnp.fft.rfftn(x) * 2), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient_agrees_with_finite_differences(name: str) -> None:
    function, inputs = DIFFERENTIABLE[name]
    found = ms.check_gradient(function, inputs, order=1)
    assert found and found.compared, str(found)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: mnp.add(None, 1), TypeError, "add: got None for an operand"),
    (lambda: mnp.clip(X, None, None), ValueError, "got None for both limits"),
    (lambda: mnp.linspace(0, 1, -1), ValueError, "got num=-1"),
    (lambda: mnp.diag(mnp.ones((2, 2, 2))), ValueError, "got 3 axes; wanted one or two"),
    (lambda: mnp.tril_indices_from(V), ValueError, "wanted two axes"),
    (lambda: mnp.meshgrid(V, indexing="yx"), ValueError, "wanted 'xy' or 'ij'"),
    (lambda: mnp.ix_(X), ValueError, "wanted one axis"),
    (lambda: mnp.bartlett(2.5), TypeError, "wanted an int"),
    (lambda: mnp.squeeze(X, 0), ValueError, "squeeze"),
    (lambda: mnp.expand_dims(X, 4), ValueError, "got axis=4 for 3 axes"),
    (lambda: mnp.size(X, 2), ValueError, "got axis=2 for 2 axes"),
    (lambda: mnp.broadcast_arrays(X, V), ValueError, "wanted shapes that broadcast"),
    (lambda: mnp.rollaxis(X, 0, 3), ValueError, "got start=3"),
    (lambda: mnp.concatenate([]), ValueError, "at least one Tensor"),
    (lambda: mnp.stack(3), ValueError, "stack: got int"),
    (lambda: mnp.array_split(V, 0), ValueError, "got 0 sections"),
    (lambda: mnp.split(X, 2, 1), ValueError, "wanted a number that divides it"),
    (lambda: mnp.apply_along_axis(abs, 2, X), ValueError, "got axis=2"),
    (lambda: mnp.apply_over_axes(lambda x, a: x.reshape(-1), mnp.ones((2, 2, 2)), 0), ValueError,
     "got a result of 1 axes"),
    (lambda: mnp.take(X, [0], mode="nearest"), ValueError, "wanted 'clip', 'wrap' or 'raise'"),
    (lambda: mnp.take(V, [9], mode="raise"), IndexError, "9"),
    (lambda: mnp.take_along_axis(X, [0], 0), ValueError, "got 2 and 1 axes"),
    (lambda: mnp.choose([0], []), ValueError, "got no choice"),
    (lambda: mnp.select([X > 0], []), ValueError, "got 1 conditions and 0 choices"),
    (lambda: mnp.piecewise(X, [X > 0], [1, 2, 3]), ValueError, "got 3 functions for 1 conditions"),
    (lambda: mnp.searchsorted(V, 1, side="up"), ValueError, "wanted 'left' or 'right'"),
    (lambda: mnp.unravel_index(1, (2, 3), order="K"), ValueError, "wanted 'C' or 'F'"),
    (lambda: mnp.ravel_multi_index((1, 2), (2, 3, 4)), ValueError, "one for each axis"),
    (lambda: mnp.where(X > 0, X), ValueError, "got one of x and y"),
    (lambda: mnp.amax(X, where=X > 0), ValueError, "got where without initial"),
    (lambda: mnp.average(X, weights=V), ValueError, "got weights of shape"),
    (lambda: mnp.diff(X, -1), ValueError, "got n=-1"),
    (lambda: mnp.gradient(V, edge_order=3), ValueError, "wanted 1 or 2"),
    (lambda: mnp.gradient(X, 1.0, 2.0, 3.0), ValueError, "got 3 distances for 2 axes"),
    (lambda: mnp.gradient(V[:1]), ValueError, "wanted at least 2"),
    (lambda: mnp.interp(1.0, [1.0, 2.0], [1.0]), ValueError, "wanted vectors of one size"),
    (lambda: mnp.convolve([], [1]), ValueError, "wanted a vector with elements"),
    (lambda: mnp.correlate([1], [1], "all"), ValueError, "wanted 'full', 'same' or 'valid'"),
    (lambda: mnp.polyval(X, 1), ValueError, "wanted a vector of coefficients"),
    (lambda: mnp.polyint([1.0], 2, [1, 2, 3]), ValueError, "got 3 constants"),
    (lambda: mnp.cross(V, V), ValueError, "wanted 2 or 3"),
    (lambda: mnp.multi_dot([X]), ValueError, "wanted at least two"),
    (lambda: mnp.norm(mnp.ones((2, 2, 2)), 1), ValueError, "wanted one or two axes"),
    (lambda: mnp.bincount(X), ValueError, "wanted a vector"),
    (lambda: mnp.bincount([0, 1], [1.0]), ValueError, "got weights of shape"),
    (lambda: mnp.histogram(X, "auto"), ValueError, "wanted a number of bins or the edges"),
    (lambda: mnp.histogram(X, 0), ValueError, "wanted at least 1"),
    (lambda: mnp.histogram(X, 2, (3, 1)), ValueError, "wanted a range"),
    (lambda: mnp.histogram(X, 2, weights=V), ValueError, "wanted one for each"),
    (lambda: mnp.histogramdd(X, [2, 2]), ValueError, "wanted 3"),
    (lambda: mnp.pad(X, -1), ValueError, "wanted no negative number"),
    (lambda: mnp.pad(X, ((1, 2, 3),)), ValueError, "a pair for each axis"),
    (lambda: mnp.pad(X, 1, "mirror"), ValueError, "got mode='mirror'"),
    (lambda: mnp.pad(X, 1, "mean", stat_length=0), ValueError, "wanted at least 1"),
    (lambda: mnp.pad(X, 1, "edge", depth=3), TypeError, "got depth"),
    (lambda: mnp.result_type(), TypeError, "wanted at least one"),
    (lambda: mnp.rand(2, dtype=ms.int32), ValueError, "wanted a floating dtype"),
    (lambda: mnp.randint(3, 3), ValueError, "wanted a range"),
    (lambda: mnp.randint(1.5), TypeError, "wanted an int"),
    (lambda: mnp.sin(y=3), TypeError, "y"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
def test_wrong_argument_is_refused(
    call: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        (mnp.array(1), ms.int32),
        (mnp.array([1, 2]), ms.int32),
        (mnp.array([2**40]), ms.int64),
        (mnp.array([1.0, 2]), ms.float32),
        (mnp.array(np.arange(3)), ms.int64),
        (mnp.array([True]), ms.bool_),
        (mnp.array([], "float16"), ms.float16),
        (mnp.arange(5), ms.int32),
        (mnp.arange(5.0), ms.float32),
        (mnp.add([1], 2.5), ms.float32),
        (mnp.add(Tensor([1.0], ms.float16), 2.5), ms.float16),
        (mnp.add(Tensor([1], ms.int8), Tensor([1], ms.int32)), ms.int32),
        (mnp.add(1, 2, dtype=ms.float64), ms.float64),
        (mnp.divide([4], 2), ms.float32),
        (mnp.sum(Tensor([1], ms.int8)), ms.int64),
        (mnp.cumsum(Tensor([1], ms.int8)), ms.int32),
        (mnp.mean([1, 2]), ms.float32),
        (mnp.asfarray([1], ms.int32), ms.float32),
        (mnp.randint(3, shape=4, dtype=ms.int8), ms.int8),
        (mnp.rand(3, dtype=ms.float16), ms.float16),
        (mnp.mgrid[0:2, 0:3], ms.int32),
        (mnp.mgrid[0:1:3j], ms.float32),
        (mnp.ogrid[0:2, 0:1:3j][0], ms.float32),
    ],
)
def test_dtypes_of_results(made: Tensor, dtype: Any) -> None:
    assert made.dtype == dtype


@pytest.mark.parametrize("width", [0, 1, (2, 3), ((1, 0), (0, 4)), ((5, 6), (7, 1))], ids=str)
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("constant", {}),
        ("constant", {"constant_values": ((1, 2), (3, 4))}),
        ("edge", {}),
        ("linear_ramp", {"end_values": (5, -4)}),
        ("maximum", {"stat_length": 2}),
        ("minimum", {}),
        ("mean", {"stat_length": ((1, 2),)}),
        ("median", {}),
        ("reflect", {}),
        ("reflect", {"reflect_type": "odd"}),
        ("symmetric", {}),
        ("symmetric", {"reflect_type": "odd"}),
        ("wrap", {}),
    ],
    ids=str,
)
def test_pad_modes(width: Any, mode: str, options: dict[str, Any]) -> None:
    values = X.asnumpy()
    want = np.pad(values, width, mode, **options)
    np.testing.assert_allclose(mnp.pad(X, width, mode, **options).asnumpy(), want, rtol=1e-5)
    compiled = ms.jit(lambda x: mnp.pad(x, width, mode, **options))
    np.testing.assert_allclose(compiled(X).asnumpy(), want, rtol=1e-5)


def test_pad_by_a_function() -> None:
    def fill(row: Tensor, width: Any, axis: int, kwargs: Any) -> Tensor:
        index = mnp.arange(row.size)
        inside = mnp.logical_and(index >= width[0], index < row.size - width[1])
        return mnp.where(inside, row, kwargs["value"] + axis)

    made = mnp.pad(mnp.ones((1, 1)), ((1, 0), (0, 1)), fill, value=5)
    np.testing.assert_array_equal(made.asnumpy(), [[5, 6], [1, 6]])


def test_slices_and_polar_forms() -> None:
    rows = mnp.apply_along_axis(lambda r: mnp.outer(r, r), 0, [[1, 2], [3, 4]])
    want = np.apply_along_axis(lambda r: np.outer(r, r), 0, np.array([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(rows.asnumpy(), want)
    over = mnp.apply_over_axes(mnp.sum, np.ones((2, 3, 4)), [0, -1])
    np.testing.assert_array_equal(over.asnumpy(), [[[8.0], [8.0], [8.0]]])
    assert mnp.array_str([1.5]) == "[1.5]"
    np.testing.assert_array_equal(mnp.ogrid[0:2, 0:3][1].asnumpy(), np.ogrid[0:2, 0:3][1])
    assert mnp.result_type("i2", Tensor([1.0], ms.float16), 3) == ms.float16
    assert mnp.promote_types(ms.int8, "uint8") == ms.int16


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
@pytest.mark.parametrize("name", [n for n in mnp.fft.__all__ if "freq" not in n])
def test_transforms(name: str, norm: str | None) -> None:
    if "shift" in name:
        got, want = getattr(mnp.fft, name)(X, 1), getattr(np.fft, name)(X.asnumpy(), 1)
    elif name in ("hfft2", "hfftn"):  # NumPy has one axis of these alone
        got = getattr(mnp.fft, name)(X, axes=(1,), norm=norm)
        want = np.fft.hfft(X.asnumpy(), norm=norm)
    elif name in ("ihfft2", "ihfftn"):
        got = getattr(mnp.fft, name)(X, axes=(1,), norm=norm)
        want = np.fft.ihfft(X.asnumpy(), norm=norm)
    else:
        got, want = (
            getattr(m, name)(x, norm=norm) for m, x in [(mnp.fft, X), (np.fft, X.asnumpy())]
        )
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-6)


def test_examples_in_docstrings_made_from_tables() -> None:
    """The texts in source files run in tests/docs; these exist only while Python runs."""
    runner, parser = (
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE),
        doctest.DocTestParser(),
    )
    failures: list[str] = []
    count = 0
    functions = [(n, getattr(m, n)) for m in (mnp, mnp.fft) for n in m.__all__]
    for name, function in functions:
        if isinstance(function, FunctionType):
            assert "Examples:" in (function.__doc__ or ""), name
            assert function.__module__ in ("duograph.numpy", "duograph.numpy.fft"), name
            test = parser.get_doctest(function.__doc__, {}, name, None, None)
            runner.run(test, out=failures.append)
            count += 1
    assert not failures, "\n".join(failures)
    assert count > 240


def test_constants() -> None:
    assert mnp.pi == math.pi and mnp.inf == math.inf and math.isnan(mnp.nan) and mnp.newaxis is None
    assert [n for n in mnp.__all__ if not hasattr(mnp, n)] == []
    assert len(set(mnp.__all__)) == len(mnp.__all__)
