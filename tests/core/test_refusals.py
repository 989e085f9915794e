"""What functions of `ops` say to arguments of the wrong kind: the function, the argument, what it
wanted.
"""

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
def test_messages(call, pattern: str) -> None:
    with pytest.raises(DuographError, match=pattern):
        call()


def test_errors_of_a_users_function_stay_what_they_are() -> None:
    def mine(x):
        return x.nope

    with pytest.raises(AttributeError, match="nope"):
        ops.vmap(mine)(X)


def test_a_function_is_found_where_it_is_used() -> None:
    assert pickle.loads(pickle.dumps(ops.split)) is ops.split
    assert ops.split.__module__ == "duograph.ops"
    assert "Args:" in ops.split.__doc__


def test_dtype_given_as_a_tensor() -> None:
    with pytest.raises(TypeError, match="dtype: got Tensor"):
        ops.zeros((2,), X)
