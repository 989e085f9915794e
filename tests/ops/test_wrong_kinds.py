"""Every function of `ops`, one argument at a time of a kind that makes no sense: the error is ours,
and comes soon.
"""

from __future__ import annotations

import inspect
import types
import warnings
from typing import Any

import duograph as ms
import duograph.numpy as mnp
import numpy as np
import pytest
from duograph import Tensor, ops
from duograph.errors import DuographError

X = Tensor(np.arange(1, 7, dtype=np.float32).reshape(2, 3))
WRONG = {
    "None": None,
    "text": "a",
    "float": 1.5,
    "mixed": [1, "b"],
    "object": object(),
    "huge": -(10**12),
    "dict": {},
}
# Functions whose arguments go to the user's function, are those of a derivative rule, or are no
# business of users.
LEFT_OUT = {"vjp", "binop_grad_common", "refusing"}
NAMES = sorted(
    name
    for name, value in ((n, getattr(ops, n)) for n in dir(ops))
    if not name.startswith("_")
    and callable(value)
    and not isinstance(value, (type, types.ModuleType))
    and name not in LEFT_OUT
)


def sensible(name: str) -> Any:
    """Return a valid value for a required argument, while another argument gets a wrong one."""
    if "dtype" in name:
        return ms.float32
    if name in ("axis", "dim"):
        return 0
    if name in ("shape", "size", "sizes"):
        return (2, 3)
    if name in ("fn", "forward_fn", "func", "grad_fn"):
        return lambda a: a
    return X


def ours(error: Exception) -> bool:
    """Return whether duograph raised the error on purpose, or `dtype` did."""
    return isinstance(error, DuographError) or str(error).startswith("dtype: got")


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_wrong_kinds(name: str) -> None:
    check(getattr(ops, name), name)


@pytest.mark.parametrize("name", [n for n in mnp.__all__ if inspect.isfunction(getattr(mnp, n))])
def test_arguments_of_wrong_kinds_of_numpy(name: str) -> None:
    check(getattr(mnp, name), f"numpy.{name}")


METHODS = sorted(
    name
    for name, value in ops.installed_methods.items()
    if inspect.isfunction(value) and value.__code__ is ops.gather_nd.__code__
)


@pytest.mark.parametrize("name", METHODS)
def test_arguments_of_wrong_kinds_of_methods(name: str) -> None:
    check(getattr(X, name), f"Tensor.{name}")


def check(function: Any, name: str) -> None:
    """Call a function with one wrong argument at a time; each error must be ours."""
    parameters = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    base = {p.name: sensible(p.name) for p in parameters if p.default is p.empty}
    found = []
    for p in parameters:
        for label, value in WRONG.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(**{**base, p.name: value})
            except Exception as error:  # noqa: BLE001
                if not ours(error):
                    found.append(f"{name}({p.name}=<{label}>): {type(error).__name__}: {error}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "call,says",
    [
        (lambda: ops.leaky_relu(X, None), "leaky_relu: got alpha=None; wanted a number"),
        (lambda: ops.elu(X, "a"), "elu: got alpha='a'; wanted a number"),
        (lambda: ops.reshape(X, None), "reshape: got shape=None; wanted an int or a tuple of ints"),
        (lambda: ops.rand(2, generator="a"), "got str for generator; wanted a Generator"),
        (lambda: ops.addcmul(X, X, X, None), "addcmul: got value=None; wanted a number"),
        (
            lambda: ops.tensor_split(X, 10**9),
            "tensor_split: got 1000000000 parts of an axis of size 2",
        ),
        (lambda: ops.cov(X, fweights="a"), "cov: got str for a weight; wanted a Tensor"),
    ],
)
def test_what_the_error_says(call: Any, says: str) -> None:
    with pytest.raises(DuographError) as caught:
        call()
    assert says in str(caught.value)


OPTIONS = {"bool": "no", "int": 1.5, "str": 7}
SCOPES: dict[str, Any] = {
    "ops": ops,
    "Tensor": X,
    "numpy": mnp,
    "mint": ms.mint,
    "mint.nn.functional": ms.mint.nn.functional,
}
# The options of these are checked under the name of the function that they call, or after another.
OTHER_NAMES = {
    "refusing",
    "constexpr",
    "matrix_band_part",
    "reduce_all",
    "reduce_any",
    "reduce_prod",
}


@pytest.mark.parametrize("scope", SCOPES)
def test_every_option_of_another_kind_is_refused_by_name(scope: str) -> None:
    """A bool that is no bool, an int that is a float, a text that is a number."""
    found, n = [], 0
    for name in sorted(set(dir(SCOPES[scope])) - OTHER_NAMES):
        function = None if name.startswith("_") else getattr(SCOPES[scope], name)
        if function is None or isinstance(function, (type, types.ModuleType)):
            continue
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            continue
        base = {p.name: sensible(p.name) for p in parameters if p.default is p.empty}
        for p in parameters:
            kind = str(p.annotation).removesuffix(" | None")
            if kind not in OPTIONS:
                continue
            n += 1
            given = {k: v for k, v in base.items() if k not in ("args", "kwargs")}
            try:
                function(**{**given, p.name: OPTIONS[kind]})
                found.append(f"{name}({p.name}={OPTIONS[kind]!r}) is accepted")
            except DuographError as error:
                if f"={OPTIONS[kind]!r}; wanted" not in str(error):
                    found.append(f"{name}({p.name}={OPTIONS[kind]!r}): {error}")
    assert n > 20
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "call",
    [
        lambda flag: ops.argsort(X, descending=flag),
        lambda flag: X.argsort(descending=flag),
        lambda flag: ops.cholesky(Tensor(np.eye(2, dtype=np.float32)), upper=flag),
        lambda flag: ops.avg_pool1d(X[None], 2, ceil_mode=flag),
        lambda flag: ops.topk(X, np.int64(2), sorted=flag),
    ],
)
def test_flags_of_numpy_and_tensors_are_flags(call: Any) -> None:
    wanted = str(call(True))
    assert str(call(np.bool_(True))) == wanted
    assert str(call(Tensor(True))) == wanted
    for wrong in (1, "no", 0.0, None, [True]):
        with pytest.raises(DuographError, match="wanted True or False"):
            call(wrong)


@pytest.mark.parametrize("far", [2**40, -(2**40), 10**12, 7, -7])
def test_diagonals_that_are_far_out(far: int) -> None:
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(ops.tril(Tensor(x), far).asnumpy(), x if far > 0 else x * 0)
    np.testing.assert_array_equal(ops.triu(Tensor(x), far).asnumpy(), x if far < 0 else x * 0)
