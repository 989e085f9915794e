"""`check_parity` finds a difference, names the op and line, and leaves no trace."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import errors, nn, ops
from duograph.runtime_state import staged_builder

X = np.array([1.0, -2.0, 3.0], np.float32)


def compiling() -> bool:
    """Return whether the compiler is evaluating this call; tests use it to fake a compiler bug."""
    return staged_builder() is not None


def t(array=X):
    return ms.Tensor(array)


def test_agreement():
    """O02: `check_parity(fn, *args)` runs both modes and reports the first op that differs."""

    def f(x, *, k=2):
        i = ms.Tensor(0)
        while i < k:
            x = ops.tanh(x) + 1
            i = i + 1
        return {"x": x, "y": (x.sum(), k)}

    found = ms.check_parity(f, t(), k=3)
    assert found and found.agrees and found.identical
    assert str(found) == "compiled and line by line agree, bit for bit"


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.SequentialCell(nn.Dense(3, 2), nn.ReLU()),
        lambda: ms.jit(lambda x: x * 2 + 1),
        lambda: ms.grad(lambda x: (x * x).sum()),
        lambda: nn.Dense(3, 2).construct,
        lambda: ms.jit(nn.Dense(3, 2)),
        lambda: ms.value_and_grad(nn.Dense(3, 2), 0),
    ],
    ids=["Cell", "jit", "grad", "method", "jit of a Cell", "value_and_grad"],
)
def test_what_can_be_checked(make):
    assert ms.check_parity(make(), t(X.reshape(1, 3)))


def test_the_first_op_that_differs_is_named():
    def f(x):
        y = x * 2
        z = ops.sin(y) if compiling() else ops.cos(y)
        return z + 1

    found = ms.check_parity(f, t())
    assert not found and not found.identical
    assert found.op in ("sin", "cos")
    assert "test_parity.py:" in found.place
    text = str(found)
    assert "z = ops.sin(y) if compiling() else ops.cos(y)" in text and "^" in text
    assert "line by line" in text and "compiled" in text


def test_a_difference_in_a_loop():
    def f(x):
        for i in range(3):
            x = x + (1 if compiling() and i == 2 else 2)
        return x * 1

    found = ms.check_parity(f, t())
    assert not found
    assert found.op == "add"


def test_another_branch_is_a_difference():
    def f(x):
        if x.sum() > (0 if compiling() else 5):
            x = ops.exp(x)
        else:
            x = ops.tanh(x)
        return x * 1

    found = ms.check_parity(f, t())
    assert not found
    assert found.op


def test_differences_other_than_values():
    def dtype(x):
        return (x * 2).astype(ms.float16 if compiling() else ms.float32)

    def structure(x):
        return [x * 1] if compiling() else (x * 1,)

    def printed(x):
        print("compiled" if compiling() else "eager")
        return x * 1

    def raised(x):
        if compiling():
            raise ValueError("mine")
        return x * 1

    for f, word in (
        (dtype, "float16"),
        (structure, "list"),
        (printed, "prints"),
        (raised, "ValueError"),
    ):
        if f is raised:
            with pytest.raises(ValueError, match="mine"):
                ms.check_parity(f, t())
            continue
        found = ms.check_parity(f, t())
        assert not found and word in str(found)


def test_exceptions_that_agree():
    def f(x):
        if x.sum() > 0:
            raise ValueError("positive", x)
        return x

    assert ms.check_parity(f, t())


def test_runs_leave_no_trace(capsys):
    weight = ms.Parameter(t(np.ones(3, np.float32)), name="weight")
    x = t()

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.n = 0
            self.weight = weight

        def construct(self, x):
            self.n = self.n + 1
            ops.assign_add(self.weight, x)
            x[0] = 9.0
            print("seen", x)
            return ops.dropout(x, 0.5) * self.n

    net = Net()
    ms.set_seed(3)
    before = ms.get_rng_state().asnumpy().tolist()
    assert ms.check_parity(net, x)
    assert weight.asnumpy().tolist() == [1, 1, 1]
    assert x.asnumpy().tolist() == X.tolist()
    assert net.n == 0
    assert ms.get_rng_state().asnumpy().tolist() == before
    assert capsys.readouterr().out == ""


def test_written_tensors_are_compared():
    weight = ms.Parameter(t(np.ones(3, np.float32)), name="weight")

    def f(x):
        ops.assign(weight, x * (2 if compiling() else 3))
        return x * 1

    found = ms.check_parity(f, t())
    assert not found
    assert "weight" in str(found) or found.op == "mul"


def test_uncompilable_function_is_reported():
    def f(x):
        yield x

    with pytest.raises(errors.UnsupportedSyntaxError):
        ms.check_parity(f, t())


def test_settings_are_restored():
    ms.set_context(mode=ms.GRAPH_MODE)
    assert ms.check_parity(nn.ReLU(), t())
    assert ms.get_context("mode") == ms.GRAPH_MODE
    assert ms.get_context("jit") is True
