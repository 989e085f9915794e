"""A network whose packed weights and other values are cached, for the tests of cached values."""

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

X = np.random.default_rng(0).standard_normal((16, 96)).astype(np.float32)


class Net(nn.Cell):
    """A product whose weights are packed, and a scale and a shift that follow from Parameters
    alone.
    """

    def __init__(self, n=80):
        super().__init__()
        rng = np.random.default_rng(1)
        self.w = Parameter(Tensor(rng.standard_normal((96, n)).astype(np.float32)), name="w")
        self.gamma = Parameter(Tensor(rng.standard_normal(n).astype(np.float32)), name="gamma")
        self.variance = Parameter(
            Tensor(rng.random(n).astype(np.float32)), name="variance", requires_grad=False
        )

    def construct(self, x):
        return ops.matmul(x, self.w) * (self.gamma * ops.rsqrt(self.variance + 1e-5))


def numpy_of(net, x=X):
    """Return the network's result computed in NumPy, from copies that share no memory."""
    w, gamma, variance = (
        np.array(p.value().copy().asnumpy()) for p in (net.w, net.gamma, net.variance)
    )
    return x @ w * (gamma / np.sqrt(variance + 1e-5))


def compiled(net, level="O2"):
    return ms.jit(lambda x: net(x), jit_level=level)


def kept(function):
    """Return how many values the programs of a compiled function have in their caches."""
    watches = [p._cached._watch for p in function.programs() if p._cached is not None]
    return sum(len(w.values) for w in watches if w is not None and w.values is not None)


def check(function, net):
    np.testing.assert_allclose(function(Tensor(X)).asnumpy(), numpy_of(net), rtol=2e-4, atol=1e-4)


def by_set_data(net):
    net.w.set_data(Tensor(np.float32(net.w.asnumpy() * 2)))
