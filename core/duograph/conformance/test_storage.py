"""Tests of dtypes that only store values (`dtype.STORAGE`), on devices that declare them.

pytest runs them with the conformance suite. They check that storing and casting lose no value.
"""

from __future__ import annotations

import numpy as np
import pytest

import duograph as ms

from ..dtype import STORAGE


def _values(dtype):
    """Return all finite values of a storage dtype."""
    if dtype is ms.int4:
        return np.arange(-8, 8).astype(dtype.np)
    values = np.arange(256, dtype=np.uint8).view(dtype.np)
    return values[np.isfinite(values.astype(np.float32))]


def _same(tensor, dtype, array):
    assert tensor.dtype is dtype and tensor.shape == array.shape
    np.testing.assert_array_equal(
        tensor.asnumpy().astype(np.float64), array.astype(np.float64), strict=True
    )


@pytest.fixture(params=STORAGE, ids=lambda d: d.name)
def dtype(request, session):
    if request.param not in session.dtypes:
        pytest.skip(f"{session.name} does not declare {request.param.name}")
    return request.param


def test_storage_keeps_every_value(session, dtype):
    values = _values(dtype)
    moved = ms.Tensor(values).move_to(session.name)
    _same(moved, dtype, values)
    _same(moved.reshape(2, -1), dtype, values.reshape(2, -1))
    _same(moved.reshape(2, -1).T, dtype, values.reshape(2, -1).T)
    _same(moved.copy(), dtype, values)


@pytest.mark.parametrize("level", ["eager", "O0", "O1"])
def test_storage_casts_agree(session, dtype, level):
    def cast(array, target):
        function = (lambda x: x.astype(target)) if level == "eager" else None
        function = function or ms.jit(lambda x: x.astype(target), jit_level=level)
        return function(ms.Tensor(array))

    values = _values(dtype)
    for wide in session.dtypes:
        if wide.is_floating:
            as_wide = values.astype(np.float32).astype(wide.np)
            _same(cast(values, wide), wide, as_wide)
            _same(cast(as_wide, dtype), dtype, values)
    given = np.linspace(-7, 7, 113, dtype=np.float32)
    _same(cast(given, dtype), dtype, given.astype(dtype.np))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (257,)], ids=str)
def test_storage_shapes(session, dtype, shape):
    given = np.ones(shape, np.float32)
    _same(ms.Tensor(given).astype(dtype).astype(ms.float32), ms.float32, given)
