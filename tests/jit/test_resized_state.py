"""Compiled code that gives a Parameter from outside another shape runs line by line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, nn, ops
from duograph.errors import UnsupportedSyntaxError

# Questions about a Parameter that the function has just given another shape.
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "shape": lambda p: p.shape,
    "len": len,
    "size": lambda p: (p.size, p.nbytes, p.numel()),
    "shape of ops": lambda p: ops.shape(p),
    "getattr": lambda p: getattr(p, "shape"),  # noqa: B009
    "text": lambda p: f"{p.shape}",
    "iteration": lambda p: [r.sum() for r in p],
    "split": lambda p: ops.split(p, 2),
    "unbind": lambda p: ops.unbind(p),
    "broadcast": lambda p: p[:1].broadcast_to(p.shape),
    "expand": lambda p: p[:1].expand_as(p),
    "gradient": lambda p: ms.grad(lambda t: (t[:1] * p).sum() / p.shape[0])(p * 1),
    "value": lambda p: p * 2,
}


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [v for item in value for v in leaves(item)]
    return [value.asnumpy().tolist() if isinstance(value, Tensor) else value]


class Cache(nn.Cell):
    """Appends rows to a Parameter by an assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = Parameter(ops.ones((2, 3)), name="rows")

    def construct(self, x: Tensor) -> Any:
        self.rows = ops.cat([self.rows, x])
        return self.rows.shape[0] * x, self.rows.sum(0)


@pytest.mark.filterwarnings("ignore:.*runs line by line:RuntimeWarning")
@pytest.mark.parametrize("dynamic", [0, 1])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_about_a_resized_parameter(name: str, dynamic: int) -> None:
    question = QUESTIONS[name]

    def results(decorated: Callable[[Any], Any]) -> list[Any]:
        p = Parameter(Tensor(np.ones((4, 3), np.float32)))

        def f(x: Tensor) -> Any:
            p.set_data(x * 2, slice_shape=True)
            return question(p)

        run = decorated(f)
        found = []
        for n in (4, 5, 4, 6, 7, 3, 4):
            x = Tensor(np.arange(3 * n, dtype=np.float32).reshape(n, 3))
            found += [*leaves(run(x)), p.asnumpy().tolist()]
        return found

    assert results(lambda f: ms.jit(f, dynamic=dynamic, jit_level="O0")) == results(lambda f: f)


@pytest.mark.filterwarnings("ignore:.*runs line by line:RuntimeWarning")
def test_a_cache_that_grows() -> None:
    compiled, plain = Cache(), Cache()
    run = ms.jit(compiled.construct)
    for n in (1, 2, 3, 2, 1):
        x = Tensor(np.full((n, 3), n, np.float32))
        assert leaves(run(x)) == leaves(plain.construct(x))
    assert compiled.rows.asnumpy().tolist() == plain.rows.asnumpy().tolist()


def test_strict_refuses_and_equal_shapes_are_compiled() -> None:
    p = Parameter(ops.ones((4, 3)))

    @ms.jit(fullgraph=True)
    def f(x: Tensor) -> Tensor:
        p.set_data(x, slice_shape=True)
        return p * p.shape[0]

    assert f(ops.ones((4, 3))).asnumpy().tolist() == [[4.0] * 3] * 4
    message = "set_data: got a value of shape (5, 3) for a Tensor of shape (4, 3)"
    with pytest.raises(UnsupportedSyntaxError, match=re.escape(message)):
        f(ops.ones((5, 3)))
    assert p.shape == (4, 3)
