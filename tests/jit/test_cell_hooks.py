"""Hooks of Cells inside compiled code: forward ones are compiled, others run line by line."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, errors, nn
from duograph.conformance.compare import printed_words, same_words

SEEN = [0]


class Inner(nn.Cell):
    """A Cell with a Parameter, whose hooks are tested."""

    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(Tensor([0.5, -1.0]), name="w")
        self.calls = 0

    def construct(self, x, scale=1.0):
        return x * self.w * scale


class Outer(nn.Cell):
    """Calls the Cell with hooks twice, once in a branch."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def construct(self, x):
        y = self.inner(x, scale=2.0)
        if y.sum() > 0:
            y = self.inner(y)
        return y


def _count(cell, args):
    cell.calls += 1


def _remember(cell, args, output):
    SEEN[0] += cell.calls + output.shape[0] * args[0].ndim


def _print(cell, args, output):
    print("output", output)


def _when_negative(cell, args, output):
    if output.sum() < 0:
        output = -output
    return output


# methods that register hooks
HOOKS = {
    "output": lambda c: c.register_forward_hook(lambda cell, args, out: out * 10),
    "nothing": lambda c: c.register_forward_hook(lambda cell, args, out: None),
    "input": lambda c: c.register_forward_pre_hook(lambda cell, args: (args[0] + 1,)),
    "input, no tuple": lambda c: c.register_forward_pre_hook(lambda cell, args: args[0] - 1),
    "keywords": lambda c: c.register_forward_pre_hook(
        lambda cell, args, kwargs: (args, {"scale": kwargs.get("scale", 1.0) * 3}),
        with_kwargs=True,
    ),
    "keywords and output": lambda c: c.register_forward_hook(
        lambda cell, args, kwargs, out: out * kwargs.get("scale", 5.0), with_kwargs=True
    ),
    "condition": lambda c: c.register_forward_hook(_when_negative),
    "attribute": lambda c: c.register_forward_pre_hook(_count),
    "list outside": lambda c: c.register_forward_hook(_remember),
    "print": lambda c: c.register_forward_hook(_print),
    "Parameter": lambda c: c.register_forward_hook(lambda cell, args, out: out + cell.w),
    "write": lambda c: c.register_forward_hook(lambda cell, args, out: cell.w.set_data(out)),
    "two in order": lambda c: (
        c.register_forward_hook(lambda cell, args, out: out + 1),
        c.register_forward_hook(lambda cell, args, out: out * 2, prepend=True),
    ),
    "both sides": lambda c: (
        c.register_forward_pre_hook(lambda cell, args: (args[0] * 2,)),
        c.register_forward_hook(lambda cell, args, out: out + args[0]),
    ),
}
BACKWARD = {
    "backward": lambda c: c.register_backward_hook(lambda cell, gi, go: (gi[0] * 10,)),
    "backward pre": lambda c: c.register_backward_pre_hook(lambda cell, go: (go[0] * 10,)),
    "always called": lambda c: c.register_forward_hook(
        lambda cell, args, out: out * 3, always_call=True
    ),
}
FORMS = {
    "function": lambda net: ms.jit(lambda x: net(x)),
    "Cell": lambda net: net,
    "SequentialCell": lambda net: nn.SequentialCell(net),
    "list": lambda net: (lambda nets: ms.jit(lambda x: nets[0](x)))(nn.CellList([net])),
}


def ran(register, form, compiled, capsys):
    """Return what calls and gradients of a network with hooks computed and did."""
    SEEN[0] = 0
    inner = Inner()
    register(inner)
    net = Outer(inner)
    found: list[object] = []
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE if compiled else ms.PYNATIVE_MODE, jit=compiled)
    try:
        run = FORMS[form](net)
        for x in ([1.0, 2.0], [1.0, 2.0], [4.0, -3.0]):
            found.append(run(Tensor(x)).asnumpy().tolist())
            value, (grads, (weight,)) = ms.value_and_grad(lambda x: run(x).sum(), 0, [inner.w])(
                Tensor(x)
            )
            found += [float(value), grads.asnumpy().tolist(), weight.asnumpy().tolist()]
            found += [inner.calls, inner.w.asnumpy().tolist(), list(SEEN)]
    finally:
        ms.set_context(mode=before, jit=True)
    return found, printed_words(capsys.readouterr().out)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HOOKS)
def test_forward_hooks_are_compiled(name, form, capsys, warned):
    want, words = ran(HOOKS[name], form, False, capsys)
    got, printed = ran(HOOKS[name], form, True, capsys)
    assert got == want and same_words(printed, words)
    assert not [w for w in warned if "line by line" in str(w.message)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BACKWARD)
def test_other_hooks_run_line_by_line(name, form, capsys, warned):
    want, _ = ran(BACKWARD[name], form, False, capsys)
    got, _ = ran(BACKWARD[name], form, True, capsys)
    assert got == want
    assert any("these hooks" in str(w.message) for w in warned)


@pytest.mark.parametrize("name", BACKWARD)
def test_other_hooks_are_refused_at_strict(name):
    inner = Inner()
    BACKWARD[name](inner)
    run = ms.jit(Outer(inner).construct, fullgraph=True)
    with pytest.raises(errors.UnsupportedSyntaxError, match="hooks"):
        run(Tensor([1.0, 2.0]))


def test_registering_and_removing_compiles_again():
    inner = Inner()
    net = ms.jit(lambda x: inner(x))
    x = Tensor([1.0, 2.0])
    assert net(x).asnumpy().tolist() == [0.5, -2.0]
    first = inner.register_forward_hook(lambda cell, args, out: out * 10)
    assert net(x).asnumpy().tolist() == [5.0, -20.0]
    second = inner.register_forward_pre_hook(lambda cell, args: (args[0] + 1,))
    assert net(x).asnumpy().tolist() == [10.0, -30.0]
    first.remove()
    assert net(x).asnumpy().tolist() == [1.0, -3.0]
    second.remove()
    assert net(x).asnumpy().tolist() == [0.5, -2.0]


def test_a_child_of_a_layer_of_ours_keeps_its_hooks():
    """Layers of duograph run as they are, and call their children."""
    net = nn.SequentialCell(nn.ReLU(), nn.SequentialCell(nn.Tanh()))
    net[1][0].register_forward_hook(lambda cell, inputs, output: output * 10)
    x = Tensor(np.array([-1.0, 2.0], np.float32))
    want = net(x).asnumpy()
    assert ms.jit(lambda x: net(x))(x).asnumpy().tolist() == want.tolist()
    ms.set_context(mode=ms.GRAPH_MODE)
    assert net(x).asnumpy().tolist() == want.tolist()
