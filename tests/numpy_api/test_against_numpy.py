"""Functions of duograph.numpy return what those of NumPy return, in both modes."""

from __future__ import annotations

from typing import Any

import duograph as ms
import duograph.numpy as mnp
import numpy as np
import pytest
from duograph import Tensor

A = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
B = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
I = np.array([[3, -1, 2], [0, 5, -4]], np.int32)  # noqa: E741
J = np.array([2, 4, 3], np.int32)
V = np.array([0.5, -1.25, 2.0, 0.0], np.float32)
N = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]], np.float32)
T = np.array([[True, False, True], [False, False, True]])
X = np.array([1.0, 2.0, 4.0, 7.0], np.float32)
ZERO = np.array(3.0, np.float32)
EMPTY = np.zeros((0, 3), np.float32)


def row(name: str, *args: Any, **kwargs: Any) -> Any:
    shown = ",".join(
        [str(getattr(a, "shape", a)) for a in args] + [f"{k}={kwargs[k]}" for k in kwargs]
    )
    return pytest.param(name, args, kwargs, id=f"{name}({shown})")


UNARY = {
    "abs sign square floor ceil trunc rint fix fabs negative positive exp exp2 expm1 sin cos tan "
    "arctan sinh cosh tanh arcsinh cbrt deg2rad rad2deg radians signbit isnan isinf isfinite "
    "isposinf isneginf": (A, V, ZERO, EMPTY, I),
    "sqrt log log2 log10 log1p reciprocal": (B, ZERO, EMPTY),
    "arcsin arccos arctanh": (V[:1], A / 5, EMPTY),
    "arccosh": (B, ZERO),
    "invert bitwise_not": (I, T),
    "logical_not": (A, I, T),
}
BINARY = {
    "add subtract multiply divide true_divide maximum minimum equal not_equal less less_equal "
    "greater greater_equal": ((A, B), (A, 2.5), (I, J), (I, 2), (ZERO, B), (EMPTY, B[0])),
    "arctan2 hypot copysign logaddexp logaddexp2 heaviside": ((A, B), (A, 2.0), (V, ZERO)),
    "power float_power": ((B, A), (B, 2), (J, 2)),
    "floor_divide mod remainder fmod divmod": ((A, B), (I, J), (I, 3), (A, 2.5)),
    "logical_and logical_or logical_xor": ((T, ~T), (A, B), (I, J)),
    "gcd lcm": ((I, J), (I, 20), (J, EMPTY[:, 0].astype(np.int32)[:, None])),
    "bitwise_and bitwise_or bitwise_xor": ((I, J), (I, 6), (T, ~T)),
    "matmul dot": ((A, B.T.copy()), (V, X)),
}
CALLS = [
    *[row(n, x) for names, xs in UNARY.items() for n in names.split() for x in xs],
    *[
        row(n, *xs)
        for names, several in BINARY.items()
        for n in names.split()
        for xs in several
    ],
    row("array", [1, 2], ndmin=2),
    row("asarray", V),
    row("arange", 2, 9, 3),
    row("arange", 3.0),
    row("arange", 1, 2, 0.25),
    row("linspace", 0, 1, 5),
    row("linspace", 0, 5, 4, endpoint=False),
    row("linspace", A, 3.0, 4, axis=-1),
    row("linspace", 2.0, 3.0, 1),
    row("linspace", 2.0, 3.0, 0),
    row("logspace", 0, 2, 5, base=2.0),
    row("geomspace", -1, -256, 5),
    row("geomspace", B, 64.0, 3),
    row("eye", 3, 4, 1),
    row("identity", 3),
    row("tri", 3, 4, -1),
    row("zeros", (2, 0)),
    row("ones", 3),
    row("full", (2, 2), 7),
    row("full", (2, 3), [1, 2, 3]),
    row("full", 2, True),
    row("zeros_like", A),
    row("ones_like", I),
    row("full_like", A, 0.5),
    row("bartlett", 7),
    row("blackman", 6),
    row("hamming", 1),
    row("hanning", 0),
    row("diag", V),
    row("diag", V, 1),
    row("diag", A),
    row("diag", A, -1),
    row("diagflat", A, 1),
    row("diagonal", C, 1, 1, 2),
    row("triu", A, 1),
    row("tril", C),
    row("vander", X, 3),
    row("vander", X, increasing=True),
    row("tril_indices", 3, 1, 4),
    row("triu_indices", 3),
    row("triu_indices_from", A),
    row("tril_indices_from", A, -1),
    row("diag_indices", 3, 3),
    row("indices", (2, 3)),
    row("indices", (2, 3), sparse=True),
    row("meshgrid", X, V),
    row("meshgrid", X, V, J, indexing="ij"),
    row("meshgrid", X, V, sparse=True),
    row("ix_", J, np.array([0, 1])),
    row("where", A > 0, A, B),
    row("where", T, 1.5, I),
    row("where", T),
    row("argwhere", I),
    row("take", A, J - 2, mode="wrap"),
    row("take", A, J, 0, mode="clip"),
    row("take", A, np.array([[0, 1]]), 1, mode="raise"),
    row("take_along_axis", A, np.array([[0], [2]]), 1),
    row("choose", np.array([0, 2, 1]), [J, J * 10, J * 100]),
    row("choose", np.array([0, 3, -1]), [J, J * 10], mode="wrap"),
    row("choose", np.array([0, 3, 0]), [1, J], mode="clip"),
    row("searchsorted", X, V),
    row("searchsorted", X, 4.0, side="right"),
    row("searchsorted", X[::-1].copy(), V, sorter=np.array([3, 2, 1, 0])),
    row("unravel_index", np.array([5, 0, 3]), (2, 3)),
    row("unravel_index", np.array([5, 0, 3]), (2, 3), order="F"),
    row("ravel_multi_index", np.array([[0, 1], [2, 0]]), (2, 3)),
    row("ravel_multi_index", np.array([[0, 4], [7, -1]]), (2, 3), mode="wrap", order="F"),
    row("unique", I),
    row("unique", np.array([3, 1, 3, 2]), return_inverse=True),
    row("unique", EMPTY),
    row("setdiff1d", np.array([3, 1, 2, 1]), np.array([2, 7])),
    row("setdiff1d", np.array([3, 1, 2]), np.array([1]), assume_unique=True),
    row("intersect1d", np.array([3, 1, 2, 1]), np.array([1, 3, 1])),
    row("intersect1d", np.array([3, 1, 2, 1]), np.array([1, 3, 1]), return_indices=True),
    row("concatenate", (A, B), axis=1),
    row("concatenate", (A, V), axis=None),
    row("concatenate", (I, B)),
    row("append", A, B),
    row("append", A, B, axis=1),
    row("stack", (A, B), axis=2),
    row("hstack", (A, B)),
    row("hstack", (V, X)),
    row("vstack", (V, X)),
    row("dstack", (V, X)),
    row("dstack", (A, B)),
    row("column_stack", (V, X)),
    row("tile", A, (2, 1)),
    row("tile", V, (2, 1, 2)),
    row("tile", C, 2),
    row("repeat", A, 2, axis=1),
    row("repeat", A, 2),
    row("repeat", A, [1, 2], axis=0),
    row("reshape", A, (3, -1)),
    row("ravel", C),
    row("transpose", C),
    row("transpose", C, (1, 0, 2)),
    row("expand_dims", A, 1),
    row("expand_dims", A, (0, -1)),
    row("squeeze", A[:1]),
    row("squeeze", A[:1], 0),
    row("size", C),
    row("size", C, 1),
    row("atleast_1d", ZERO),
    row("atleast_2d", V, A),
    row("atleast_3d", V, A, C),
    row("broadcast_to", A[:1], (4, 3)),
    row("broadcast_arrays", A[:1], A[:, :1]),
    row("swapaxes", C, 0, 2),
    row("moveaxis", C, [0, 1], [-1, 0]),
    row("rollaxis", C, 2),
    row("rollaxis", C, 0, 3),
    row("rollaxis", C, 1, -1),
    row("flip", C, axis=(0, 2)),
    row("flip", C),
    row("flipud", C),
    row("fliplr", C),
    row("roll", A, 1),
    row("roll", A, (1, 2), (0, 1)),
    row("roll", A, 1, (0, 1)),
    row("rot90", A),
    row("rot90", C, 3, (1, 2)),
    row("split", A, 3, 1),
    row("array_split", X, 3),
    row("array_split", X, [1, 1, 3]),
    row("hsplit", A, [1]),
    row("vsplit", A, 2),
    row("dsplit", C, 2),
    row("sum", A, axis=1, keepdims=True),
    row("sum", T),
    row("sum", I, axis=(0, 1)),
    row("sum", A, initial=2.5),
    row("sum", EMPTY, axis=0),
    row("prod", A, axis=1),
    row("mean", A, axis=0),
    row("mean", I),
    row("std", A, axis=1, ddof=1),
    row("var", I),
    row("max", A, axis=1),
    row("min", A),
    row("amax", A, axis=0, where=T, initial=-1),
    row("amin", A, where=T, initial=0.5),
    row("max", EMPTY, axis=0, initial=1.5),
    row("argmax", A, axis=1),
    row("argmin", A),
    row("ptp", A, axis=1, keepdims=True),
    row("any", A > 2, axis=0),
    row("all", A > -3),
    row("count_nonzero", I, axis=0),
    row("average", A, axis=1, weights=np.array([1.0, 2.0, 3.0], np.float32)),
    row("average", A, weights=B, returned=True),
    row("average", I, axis=0, returned=True),
    row("nansum", N, axis=1),
    row("nanmax", N),
    row("nanmin", N[:1], axis=1, keepdims=True),
    row("nanmean", N[:1], axis=1),
    row("nanvar", N),
    row("nanstd", N, ddof=1),
    row("nansum", I),
    row("nancumsum", N, axis=0),
    row("cumsum", A, axis=1),
    row("cumsum", T),
    row("cumprod", I, axis=0),
    row("diff", X, n=2),
    row("diff", A, axis=0),
    row("diff", X, prepend=1, append=X),
    row("diff", T[0]),
    row("ediff1d", A, to_end=9, to_begin=[1, 2]),
    row("gradient", X),
    row("gradient", X, 2.0, edge_order=2),
    row("gradient", C),
    row("gradient", C, 2.0, axis=1),
    row("gradient", X, np.array([0.0, 1.0, 3.0, 3.5], np.float32), edge_order=2),
    row("gradient", A, axis=0),
    row("interp", np.array([-1.0, 0.5, 1.5, 2.0, 9.0, np.nan]), np.array([0.0, 1, 2]), V[:3]),
    row("interp", V, np.array([0.0, 1.0, 2.0]), V[:3], left=-5.0, right=7.0),
    row("interp", 0.5, [0.0], [3.0]),
    row("unwrap", np.array([0.0, 3.5, 9.0, 2.0, -7.0])),
    row("unwrap", C, axis=0),
    *[
        row(name, x, y, mode=mode)
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for x, y in [(X, V[:3]), (J, I[0]), (V[:2], X), (V[:1], X)]
    ],
    row("polyadd", J, V),
    row("polysub", V, J),
    row("polymul", J, X),
    row("polyval", V, A),
    row("polyval", [], X),
    row("polyder", V, 2),
    row("polyder", V, 7),
    row("polyint", V),
    row("polyint", V, 2, [1.0, 2.0]),
    row("tensordot", A, B, axes=([0, 1], [0, 1])),
    row("tensordot", A, B.T.copy(), 1),
    row("dot", C, np.ones((2, 4, 3), np.float32)),
    row("dot", V, X),
    row("dot", C[0], X),
    row("inner", A, B),
    row("outer", A, V),
    row("kron", A, I),
    row("kron", V, X),
    row("cross", A, B),
    row("cross", A[:, :2], B),
    row("cross", A[:, :2], B[:, :2]),
    row("cross", A, B, axisc=0),
    row("cross", A.T.copy(), B.T.copy(), axis=0),
    row("trace", A),
    row("trace", C, 1, 0, 2),
    row("cov", A),
    row("cov", A, B, rowvar=False),
    row("cov", A, bias=True),
    row("cov", V, ddof=0, aweights=B[0, 0] + np.arange(4, dtype=np.float32)),
    row("cov", V, fweights=np.array([1, 2, 0, 3])),
    row("corrcoef", np.array([[1.0, 2, 4], [3, 1, 0]], np.float32)),
    row("corrcoef", V),
    row("bincount", np.array([0, 3, 3, 1])),
    row("bincount", np.array([0, 3, 1]), V[:3], minlength=6),
    row("digitize", A, X),
    row("digitize", A, X, right=True),
    row("digitize", A, X[::-1].copy()),
    row("digitize", A, X[::-1].copy(), right=True),
    row("histogram_bin_edges", A, 4),
    row("histogram_bin_edges", ZERO, 2),
    row("histogram_bin_edges", np.zeros(0), 2),
    row("histogram", A, 4),
    row("histogram", A, 3, (-1, 2)),
    row("histogram", A, [-2, 0, 1, 3]),
    row("histogram", A, 4, weights=B),
    row("histogram", A, [-2, 0, 1, 3], density=True),
    row("histogram2d", X, V, (2, 3)),
    row("histogram2d", X, V, [0, 1, 5]),
    row("histogramdd", C.reshape(-1, 3), (2, 3, 2), density=True),
    row("histogramdd", (X, V), [3, [0, 1, 2]], weights=X),
    row("array_equal", A, A),
    row("array_equal", A, V),
    row("array_equal", N, N, equal_nan=True),
    row("array_equiv", V, [V, V]),
    row("array_equiv", V, A),
    row("isclose", A, A + np.float32(1e-9)),
    row("isclose", N, N, equal_nan=True),
    row("isin", I, [2, 5]),
    row("isin", I, J, invert=True),
    row("isin", A, EMPTY),
    row("clip", A, -1, 1),
    row("clip", I, 0, 2),
    row("clip", A, None, B),
    row("around", V, 1),
    row("round", I, -1),
    row("around", A / 3),
    row("select", [T, ~T], [A, B], 5),
    row("select", [T], [A]),
    row("isscalar", 3.0),
    row("isscalar", "text"),
]  # fmt: skip
VALUE_SIZED = {"unique", "setdiff1d", "intersect1d", "argwhere"}
HOST_RESULTS = {"size", "isscalar"}


def given(value: Any, tensors: list[Any]) -> Any:
    """Replace the NumPy arrays in an argument by Tensors, in order."""
    if isinstance(value, np.ndarray):
        return tensors.pop(0)
    if isinstance(value, (tuple, list)):
        return type(value)(given(v, tensors) for v in value)
    return value


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in arrays_in(v)]
    return []


def flat(value: Any) -> list[Any]:
    """Return the arrays of a result as a list."""
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in flat(v)]
    return [value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)]


def same(got: Any, want: Any, name: str) -> None:
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        kinds = {"i": "iu", "u": "iu", "b": "b", "c": "c", "f": "f"}[w.dtype.kind]
        if name not in IN_FLOATS:
            assert g.dtype.kind in kinds, (g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6, equal_nan=True)


# MindSpore returns these as float32, also for integers.
IN_FLOATS = {
    "bincount", "histogram", "histogram2d", "histogramdd", "ravel_multi_index", "floor", "ceil",
    "trunc", "fix",
}  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
@pytest.mark.filterwarnings("ignore")
def test_function_returns_what_numpy_returns(name: str, args: Any, kwargs: Any) -> None:
    """Eagerly, and compiled where the size of the result does not depend on values."""
    numpys = {"average": {"x": "a"}}.get(name, {})
    numpy_args = [np.asarray(args[0], np.int32) if name == "bincount" else args[0], *args[1:]]
    want = getattr(np, name)(*numpy_args, **{numpys.get(k, k): v for k, v in kwargs.items()})
    want = list(want) if name == "indices" else want  # a list of Tensors in MindSpore
    function = getattr(mnp, name)
    names = list(kwargs)
    values = [*args, *kwargs.values()]

    def call(*tensors: Tensor) -> Any:
        mine = given(values, list(tensors))
        return function(*mine[: len(args)], **dict(zip(names, mine[len(args) :], strict=True)))

    tensors = [Tensor(a) for v in values for a in arrays_in(v)]
    same(call(*tensors), want, name)
    reads_values = name in VALUE_SIZED or (name, len(args)) == ("where", 1) or name == "bincount"
    if name not in HOST_RESULTS and not reads_values:
        same(ms.jit(call)(*tensors), want, name)
