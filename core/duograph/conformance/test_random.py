"""Tests that random numbers are those of the generator Philox 4x32-10 on every device.

pytest runs them with the conformance suite. Every random op must advance the random stream by one
position, whatever its result's size.
"""

from __future__ import annotations

import numpy as np
import pytest

import duograph as ms
from duograph import ops

from .oracle import on_oracle

# Known answers of Philox 4x32-10 from the authors' Random123 distribution (kat_vectors): counter,
# key -> words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
]


@pytest.mark.parametrize("counter,key,words", KNOWN)
def test_known_answers(counter, key, words):
    state = ms.Tensor(np.array([*key, counter[2], counter[3]], np.uint32))
    found = ops.random_bits(state, (4,)).asnumpy()
    assert tuple(int(w) for w in found) == words


def _reference_philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> list[int]:
    """Compute the ten rounds of Philox on Python ints, as in the paper (Salmon et al., 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [
            (p1 >> 32) ^ c[1] ^ k[0],
            p1 & 0xFFFFFFFF,
            (p0 >> 32) ^ c[3] ^ k[1],
            p0 & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (5,), (7, 11), (0,), (2, 0, 3), (1031,)])
def test_bits_follow_the_counter(shape):
    key, offset = (0xA4093822, 0x299F31D0), (0x13198A2E, 0x03707344)
    state = ms.Tensor(np.array([*key, *offset], np.uint32))
    found = ops.random_bits(state, shape).asnumpy()
    assert found.shape == shape
    assert found.dtype == np.uint32
    flat = found.reshape(-1)
    blocks = -(-flat.size // 4)
    want = [w for i in range(blocks) for w in _reference_philox(key, (i, 0, *offset))]
    assert [int(w) for w in flat] == want[: flat.size]


DRAWS = {
    "rand": lambda: ops.rand(3, 5),
    "randn": lambda: ops.randn(3, 5),
    "randint": lambda: ops.randint(0, 100, (3, 5)),
    "standard_normal": lambda: ops.standard_normal((7,)),
    "uniform": lambda: ops.uniform((7,), ms.Tensor(1.0), ms.Tensor(3.0)),
    "dropout": lambda: ops.dropout(ms.Tensor(np.ones((4, 9), np.float32)), 0.5),
    "bernoulli": lambda: ops.bernoulli(ms.Tensor(np.full((4, 9), 0.3, np.float32))),
    "randperm": lambda: ops.randperm(11),
}


def _draw(name: str) -> list[np.ndarray]:
    ms.set_seed(42)
    return [DRAWS[name]().asnumpy() for _ in range(3)]


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers_everywhere(name):
    first, again = _draw(name), _draw(name)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((first[0] != other).any() for other in first[1:]), "the state did not advance"
    with on_oracle():
        right = _draw(name)
    for got, want in zip(first, right, strict=True):
        if got.dtype.kind == "f":  # equal bits, but logarithm and cosine round as the device does
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(got, want)


def test_every_draw_takes_one_position():
    """Test that each random op advances the stream by one position, whatever its result's size."""
    ms.set_seed(9)
    ops.rand(2)
    third_after_small = [ops.rand(2).asnumpy() for _ in range(2)]
    ms.set_seed(9)
    ops.rand(1000, 3)
    third_after_large = [ops.rand(2).asnumpy() for _ in range(2)]
    np.testing.assert_array_equal(third_after_small, third_after_large)


def test_state_saved_and_restored():
    ms.set_seed(1)
    ops.rand(3)
    state = ms.get_rng_state()
    a = ops.randn(5).asnumpy()
    ms.set_rng_state(state)
    np.testing.assert_array_equal(a, ops.randn(5).asnumpy())


def test_the_distribution_is_right():
    ms.set_seed(0)
    normal = ops.standard_normal((20_000,)).asnumpy().astype(np.float64)
    uniform = ops.rand(20_000).asnumpy().astype(np.float64)
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    assert uniform.min() >= 0.0
    assert uniform.max() < 1.0
    assert abs(uniform.mean() - 0.5) < 0.01
