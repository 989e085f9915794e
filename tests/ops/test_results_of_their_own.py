"""Functions that rearrange or convert a Tensor return a Tensor of their own.

This holds also where nothing is to be done, such as `x.squeeze()` without an axis of size 1: what
is written to the result in place must not change the operand, as in MindSpore.
"""

from __future__ import annotations

from collections.abc import Callable

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, mint, ops

CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "squeeze": lambda x: x.squeeze(),
    "squeeze(0)": lambda x: ops.squeeze(x, 0),
    "Squeeze": lambda x: ops.Squeeze()(x),
    "mint.squeeze": lambda x: mint.squeeze(x, 0),
    "to": lambda x: x.to(ms.float32),
    "to device": lambda x: x.to(x.device),
    "to, no copy": lambda x: x.to(ms.float32, copy=False),
    "float": lambda x: x.float(),
    "type": lambda x: x.type(ms.float32),
    "astype": lambda x: x.astype(ms.float32),
    "reshape": lambda x: x.reshape(x.shape),
    "view": lambda x: x.view(x.shape),
    "ravel": lambda x: x.ravel(),
    "broadcast_to": lambda x: x.broadcast_to(x.shape),
    "BroadcastTo": lambda x: ops.BroadcastTo(x.shape)(x),
    "expand": lambda x: x.expand(x.shape),
    "expand_as": lambda x: x.expand_as(x),
    "permute": lambda x: x.permute((0, 1)),
    "transpose": lambda x: x.transpose((0, 1)),
    "Transpose": lambda x: ops.Transpose()(x, (0, 1)),
    "moveaxis": lambda x: x.moveaxis(0, 0),
    "tile": lambda x: x.tile((1, 1)),
    "tile(1)": lambda x: ops.tile(x, (1,)),
    "split": lambda x: x.split(2)[0],
    "chunk": lambda x: x.chunk(1)[0],
    "tensor_split": lambda x: x.tensor_split(1)[0],
    "narrow": lambda x: x.narrow(0, 0, 2),
    "flip": lambda x: ops.flip(x, ()),
    "all": lambda x: x[:],
    "clone": lambda x: x.clone(),
    "stop_gradient": ops.stop_gradient,
    "ReduceSum": lambda x: ops.ReduceSum(skip_mode=True)(x, ()),
    "numpy.squeeze": ms.numpy.squeeze,
    "numpy.ravel": ms.numpy.ravel,
    "numpy.atleast_2d": ms.numpy.atleast_2d,
    "numpy.broadcast_to": lambda x: ms.numpy.broadcast_to(x, x.shape),
    "numpy.broadcast_arrays": lambda x: ms.numpy.broadcast_arrays(x, x)[0],
}


def _set_item(y: Tensor) -> None:
    y[0] = 7.0


def _add(y: Tensor) -> None:
    y.add_(Tensor(7.0))


WRITES = {"item": _set_item, "add_": _add}


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", CALLS)
def test_a_write_to_the_result_does_not_change_the_operand(
    name: str, write: str, mode: str
) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = CALLS[name](x)
        WRITES[write](y)
        return x, y

    before = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = Tensor(before)
    same, changed = (function if mode == "eager" else ms.jit(function))(x)
    np.testing.assert_array_equal(same.asnumpy(), before)
    np.testing.assert_array_equal(x.asnumpy(), before)
    assert changed.asnumpy().reshape(-1)[0] == 7.0


@pytest.mark.parametrize("name", CALLS)
def test_the_gradient_passes(name: str) -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    found = ms.grad(lambda t: (CALLS[name](t) * 2.0).sum())(x)
    wanted = 0.0 if name == "stop_gradient" else 2.0
    np.testing.assert_array_equal(found.asnumpy(), np.full((2, 3), wanted, np.float32))
