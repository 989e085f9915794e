"""Functions that rebuild nested arguments keep the class of a namedtuple."""

import collections

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, amp, nn, ops
from duograph.compat import private_training

Pair = collections.namedtuple("Pair", "a b")
PAIR = Pair(Tensor([1.0, 2.0]), Tensor([3, 4]))


class Sum(nn.Cell):
    def construct(self, pair):
        assert pair.a.dtype == ms.float16
        assert pair.b.dtype == ms.int64
        return Pair(pair.a + 1, pair.b)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_to_float(mode):
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        got = Sum().to_float(ms.float16)(PAIR)
    finally:
        ms.set_context(mode=before)
    assert type(got) is Pair
    np.testing.assert_array_equal(got.a.asnumpy(), [2.0, 3.0])


def halves(pair):
    return Pair(pair.a.astype(ms.float16), pair.b)


class Half(nn.Cell):
    def construct(self, pair):
        return halves(pair)


CASES = {
    "loss scaler": lambda: amp.StaticLossScaler(2.0).scale(Pair(PAIR.a, PAIR.a)),
    "mixed_precision_cast": lambda: private_training.mixed_precision_cast(ms.float16, PAIR),
    "amp output": lambda: amp.precision._to_32(halves(PAIR)),
    "vmap": lambda: ms.vmap(lambda p: p.a * p.b)(PAIR),
    "mutable": lambda: ms.jit(lambda x: ms.mutable(Pair(2.0, 3)).a * x)(PAIR.a),
    "clip_by_norm": lambda: ops.clip_by_norm(Pair(PAIR.a, PAIR.a), 1.0),
}


@pytest.mark.parametrize("call", CASES.values(), ids=CASES)
def test_rebuilt_arguments(call):
    got = call()
    assert type(got) in (Pair, Tensor)
    first = got.a if type(got) is Pair else got
    assert first.shape == (2,)
