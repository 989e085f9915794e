"""Error messages of functions of `ops`: they name the function, the argument and what it takes."""

from __future__ import annotations

import pickle

import duograph as ms
import numpy as np
import pytest
from duograph import ops
from duograph.errors import DuographError

X = ms.Tensor(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda: ops.norm([1, 2]), "norm: got list for 'A'; wanted a Tensor"),
        (lambda: ops.bernoulli(None), "bernoulli: got NoneType for 'input'; wanted a Tensor"),
        (lambda: ops.split(X, 1, "a"), "'a'"),
        (lambda: ops.svd(X[0]), r"svd: got shape \(3,\); wanted matrices"),
        (lambda: ops.pinv(X * np.nan), "wanted finite values"),
        (lambda: ops.zeros((2**40, 2**40)), r"wanted less than 2\*\*63 bytes"),
        (lambda: ops.zeros(2**70), r"wanted less than 2\*\*63 bytes"),
    ],
)
def test_messages_for_wrong_arguments(call, pattern: str) -> None:
    with pytest.raises(DuographError, match=pattern):
        call()


def test_errors_of_user_functions_are_not_changed() -> None:
    def mine(x):
        return x.nope

    with pytest.raises(AttributeError, match="nope"):
        ops.vmap(mine)(X)


def test_public_functions_pickle_by_their_public_name() -> None:
    assert pickle.loads(pickle.dumps(ops.split)) is ops.split
    assert ops.split.__module__ == "duograph.ops"
    assert "Args:" in ops.split.__doc__


def test_tensor_in_place_of_a_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match="dtype: got Tensor"):
        ops.zeros((2,), X)
