"""Tests that an index out of range raises IndexError on every device and in every mode.

The message names op, index, axis and size. An asynchronous device raises when a value is read or at
`synchronize`; under `pynative_synchronize` the call raises. Other results are not affected.
"""

import re

import duograph as ms
import numpy as np
import pytest
from devices import device  # noqa: F401 (a fixture)
from duograph import ops
from duograph.ops.gather_scatter import scatter_add_by, scatter_elements_add_by, scatter_set_by


def f32(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# function, name of the op in messages, arrays, shape of the index, axis and its size; the test
# passes the index as the second argument
TABLE = [
    (lambda x, i: ops.gather(x, i, 0), "gather", [f32(5, 3)], (2,), 0, 5),
    (lambda x, i: ops.gather(x, i, 1), "gather", [f32(2, 5, 3)], (2,), 1, 5),
    (lambda x, i: ops.gather(x, i, 1), "gather", [f32(2, 5, 3).astype(np.float16)], (2,), 1, 5),
    (lambda x, i: ops.gather_elements(x, 1, i), "gather_elements", [f32(4, 5)], (4, 3), 1, 5),
    (lambda x, i, u: scatter_set_by(x, i, u, 0), "scatter_set", [f32(5, 3), f32(2, 3)], (2,), 0, 5),
    (lambda x, i, u: scatter_set_by(x, i, u, 1), "scatter_set", [f32(3, 5), f32(3, 2)], (2,), 1, 5),
    (lambda x, i, u: scatter_add_by(x, i, u, 0), "scatter_add", [f32(5, 3), f32(2, 3)], (2,), 0, 5),
    (lambda x, i, u: scatter_add_by(x, i, u, 0), "scatter_add",
     [f32(5, 3).astype(np.int64), f32(2, 3).astype(np.int64)], (2,), 0, 5),
    (lambda x, i, u: scatter_elements_add_by(x, i, u, 1), "scatter_elements_add",
     [f32(4, 5), f32(4, 3)], (4, 3), 1, 5),
]  # fmt: skip
LEVELS = [None, "O0", "O1", "O2"]
IDS = [f"{k}-{row[1]}" for k, row in enumerate(TABLE)]


def call_of(function, level):
    return function if level is None else ms.jit(function, jit_level=level)


def message_of(name, index, axis, size):
    """Return a pattern for the message of the core, or of a kernel."""
    return (
        rf"{name}: (got )?index {re.escape(str(index))} (is out of range )?for axis {axis} of "
        rf"size {size}; "
        rf"wanted -{size} to {size - 1}"
    )


@pytest.mark.parametrize("function, name, arrays, shape, axis, size", TABLE, ids=IDS)
# how a kernel reads an index depends on its source, so not every level is tested with int32
@pytest.mark.parametrize(
    "level, kind",
    [*((level, np.int64) for level in LEVELS), (None, np.int32), ("O2", np.int32)],
    ids=lambda v: "eager" if v is None else getattr(v, "__name__", v),
)
def test_wrong_indices(device, level, kind, function, name, arrays, shape, axis, size):
    run = call_of(function, level)
    x, *updates = [ms.Tensor(a) for a in arrays]
    good = np.arange(np.prod(shape), dtype=kind).reshape(shape) % size
    want = run(x, ms.Tensor(good), *updates).asnumpy()
    kept = x + x
    for wrong in (size, -size - 1, 2**31 - 1, -(2**31)):
        bad = good.copy()
        bad.flat[-1] = wrong
        with pytest.raises(IndexError, match=message_of(name, wrong, axis, size)):
            run(x, ms.Tensor(bad), *updates).asnumpy()
    # said once; nothing that is not the call's own was written
    np.testing.assert_array_equal(kept.asnumpy(), arrays[0] + arrays[0])
    np.testing.assert_array_equal(run(x, ms.Tensor(good), *updates).asnumpy(), want)


@pytest.mark.parametrize("level", LEVELS, ids=["eager", "O0", "O1", "O2"])
def test_synchronize_raises_for_a_wrong_index(device, level):
    run = call_of(lambda x, i: ops.gather(x, i, 0) * 2.0, level)
    x = ms.Tensor(f32(5, 3))
    with pytest.raises(IndexError, match=message_of("gather", 7, 0, 5)):
        run(x, ms.Tensor(np.array([1, 7])))  # the CPU raises here
        ms.synchronize()
    ms.synchronize()


def test_synchronous_call_raises_at_once(device):
    x = ms.Tensor(f32(5, 3))
    ms.set_context(pynative_synchronize=True)
    try:
        with pytest.raises(
            IndexError, match=r"index: got index 6 for axis 0 of size 5; wanted -5 to 4(\n|$)"
        ):
            x[ms.Tensor(np.array([1, 6]))]
        with pytest.raises(
            IndexError, match=r"gather_nd: got index 3 for axis 1 of size 3; wanted -3 to 2(\n|$)"
        ):
            ops.gather_nd(x, ms.Tensor(np.array([[1, 3]])))
    finally:
        ms.set_context(pynative_synchronize=False)


def test_the_first_of_several_wrong_indices_is_named(device):
    x = ms.Tensor(f32(5, 3))
    with pytest.raises(IndexError, match=message_of("gather", 5, 0, 5)):
        first = ops.gather(x, ms.Tensor(np.array([5])), 0)
        second = ops.gather(x, ms.Tensor(np.array([6])), 1)
        (first + second[:1, :1]).asnumpy()


def test_gather_from_an_empty_axis(device):
    with pytest.raises(IndexError, match=r"index 0 .*for axis 0 of size 0"):
        ops.gather(ms.Tensor(np.zeros((0, 3), np.float32)), ms.Tensor(np.array([0])), 0).asnumpy()
