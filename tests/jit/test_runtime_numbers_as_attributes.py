"""Numbers known only at run time, passed where ops want attributes: LAX agrees with eager mode.

A number comes as one that the graph computes, or as what a function of Python returned. Our own
functions ask what they were given before they use it, and what they would refuse there is not the
user's mistake.
"""

from __future__ import annotations

import json
import warnings

import duograph as ms
import numpy as np
import pytest
from duograph import nn, ops
from duograph.errors import DuographError

X = np.arange(12, dtype=np.float32).reshape(3, 4)

MAKERS = {
    "computed": lambda x: int(x[0, 1]),
    "returned": lambda x: json.loads(repr([int(x[0, 1])]))[0],
}

# Each takes x and the number 1.
CALLS = {
    "arange": lambda x, n: ops.arange(n, n + 4),
    "argmax": lambda x, n: ops.argmax(x, n),
    "avg_pool2d": lambda x, n: ops.avg_pool2d(x.reshape(1, 1, 3, 4), n * 2),
    "broadcast_to": lambda x, n: ops.broadcast_to(x, (n + 1, 3, 4)),
    "cast": lambda x, n: x.astype(ms.int32)[n],
    "clamp": lambda x, n: ops.clamp(x, n, n + 1),
    "concat": lambda x, n: ops.concat([x, x], n - 1),
    "conv2d": lambda x, n: ops.conv2d(x.reshape(1, 1, 3, 4), ops.ones((1, 1, 2, 2)), stride=(n, n)),
    "cumsum": lambda x, n: ops.cumsum(x, n),
    "Dense": lambda x, n: ops.zeros(nn.Dense(4, n + 1)(x).shape),
    "elu": lambda x, n: ops.elu(x, n * 1.0),
    "eye": lambda x, n: ops.eye(n + 1),
    "flip": lambda x, n: ops.flip(x, n),
    "full": lambda x, n: ops.full((n,), 1.0),
    "gather": lambda x, n: ops.gather(x, ms.Tensor([n]), 0),
    "interpolate": lambda x, n: ops.interpolate(x.reshape(1, 1, 3, 4), size=(n, n + 1)),
    "leaky_relu": lambda x, n: ops.leaky_relu(x - 3, n / 2),
    "linspace": lambda x, n: ops.linspace(0.0, 1.0, n + 2),
    "mean": lambda x, n: x.mean(n),
    "narrow": lambda x, n: ops.narrow(x, 0, 0, n),
    "one_hot": lambda x, n: ops.one_hot(ms.Tensor([1]), n + 1),
    "pad": lambda x, n: ops.pad(x, (n, 1)),
    "pow": lambda x, n: ops.pow(x, n),
    "range": lambda x, n: [x * i for i in range(0, 4, n)],
    "repeat_interleave": lambda x, n: ops.repeat_interleave(x, n + 1, 0),
    "reshape": lambda x, n: ops.reshape(x, (n + 1, -1)),
    "roll": lambda x, n: ops.roll(x, n, 0),
    "softmax": lambda x, n: ops.softmax(x, n),
    "split": lambda x, n: ops.split(x, n, 1),
    "strided_slice": lambda x, n: ops.strided_slice(x, (0, 0), (n, 2), (1, 1)),
    "sum": lambda x, n: ops.sum(x, n),
    "tile": lambda x, n: ops.tile(x, (n, 2)),
    "tile by a number": lambda x, n: ops.tile(x, n),
    "topk": lambda x, n: ops.topk(x, n)[0],
    "transpose": lambda x, n: ops.transpose(x, (n, 0)),
    "unsqueeze": lambda x, n: ops.unsqueeze(x, n),
    "view": lambda x, n: x.view(n, 12),
    "zeros": lambda x, n: ops.zeros((n, 2)),
}


def arrays(value):
    return [a.asnumpy() for a in (value if isinstance(value, (list, tuple)) else [value])]


@pytest.mark.filterwarnings("ignore:.*runs line by line:RuntimeWarning")
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("name", CALLS)
def test_runtime_number_as_attribute_agrees_with_eager_mode(name, maker):
    call, make = CALLS[name], MAKERS[maker]

    def program(x):
        return call(x, make(x))

    compiled = ms.jit(program)
    for _ in range(2):
        for got, want in zip(
            arrays(compiled(ms.Tensor(X))), arrays(program(ms.Tensor(X))), strict=True
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", CALLS)
def test_strict_raises_a_duograph_error(name):
    call = CALLS[name]
    compiled = ms.jit(lambda x: call(x, int(x[0, 1])), fullgraph=True)
    try:
        compiled(ms.Tensor(X))
    except DuographError as error:
        assert (
            "known only when" in str(error) or "Cannot join" in str(error) or "STRICT" in str(error)
        )


def test_internal_tables_are_not_captured():
    compiled = ms.jit(lambda x: ops.concat([x, x], json.loads(repr([int(x[0, 1])]))[0]))
    for columns in (2, 3, 4):
        x = ms.Tensor(np.ones((2, columns), np.float32))
        compiled(x)
        ops.concat([x, x], 1)  # a new entry in the table of prepared calls
        compiled(x)
    assert "_joined" not in str(compiled.explain(x))


def test_messages_name_no_internal_class():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ms.jit(lambda x: ops.tile(x, json.loads(repr([int(x[0, 1])]))))(ms.Tensor(X))
    assert len(found) == 1
    assert "Graph" not in str(found[0].message)
