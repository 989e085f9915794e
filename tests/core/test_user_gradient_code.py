"""Gradient code of users: hooks of Tensors, and `bprop`, which may write in place.

A hook belongs to a value and runs once per gradient of it. What user code writes to the Tensors it
gets changes no other value and no later backward pass.
"""

import threading

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, grad, jit, nn, ops, vjp

X = [1.0, 2.0]
WAIT = 120  # seconds


def logging(log, name, result=None):
    def hook(g):
        log.append(name)
        return result

    return hook


def square(x):
    return (x * x).sum()


def one_function_twice(log):
    x, f, g = Tensor(X), logging(log, "f"), logging(log, "g")
    handles = [x.register_hook(h) for h in (f, g, f)]
    handles[2].remove()
    grad(square)(x)


def removed_twice(log):
    x, f = Tensor(X), logging(log, "f")
    first, _ = x.register_hook(f), x.register_hook(f)
    first.remove()
    first.remove()
    grad(square)(x)


def removed_in_a_hook(log):
    x = Tensor(X)

    def once(g):
        log.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(logging(log, "f"))
    grad(square)(x)
    grad(square)(x)


def on_an_argument_in_the_function(log):
    x = Tensor(X)

    def f(x):
        x.register_hook(logging(log, "f"))
        return square(x)

    grad(f)(x)
    log.append("|")
    grad(f)(x)


def on_an_argument_outside_and_in_the_function(log):
    x = Tensor(X)
    x.register_hook(logging(log, "g"))

    def f(x):
        x.register_hook(logging(log, "f"))
        return square(x)

    grad(f)(x)
    log.append("|")
    grad(f)(x)


def on_a_parameter_in_the_function(log):
    p = Parameter(Tensor(X), name="p")

    def f():
        p.register_hook(logging(log, "f"))
        return square(p)

    grad(f, None, p)()
    log.append("|")
    p.register_hook(logging(log, "g"))
    grad(lambda: square(p), None, p)()


def on_a_parameter_after_a_write(log):
    p = Parameter(Tensor(X), name="p")

    def f(x):
        p.set_data(x * 3)
        p.register_hook(logging(log, "of the value"))
        return square(p)

    grad(f)(Tensor(X))
    grad(lambda: square(p), None, p)()


def on_a_value_of_an_ended_derivative(log):
    kept = []

    def f(x):
        kept.append(x * 2)
        return square(kept[0])

    _, pull = vjp(f, Tensor(X))
    kept[0].register_hook(logging(log, "f"))
    pull(Tensor(1.0))
    log.append("|")
    grad(square)(kept[0])


def of_a_weight_of_an_outer_derivative(log):
    p = Parameter(Tensor(X), name="p")
    p.register_hook(logging(log, "p"))
    pulls = []

    def outer():
        value, pull = vjp(lambda x: (x * p).sum(), Tensor(X))
        pulls.append(pull)
        pull(Tensor(1.0))
        log.append("|")
        return value

    grad(outer, None, p)()
    log.append("|")
    pulls[0](Tensor(1.0))


def of_a_weight_of_another_thread(log):
    p = Parameter(Tensor(X), name="p")
    p.register_hook(logging(log, "p"))
    inside, go = threading.Event(), threading.Event()

    def f():
        inside.set()
        assert go.wait(WAIT)
        return square(p)

    other = threading.Thread(target=grad(f, None, p))

    def g(x):
        other.start()
        assert inside.wait(WAIT)
        return (x * p).sum()

    assert grad(g)(Tensor(X)).asnumpy().tolist() == X
    log.append("|")
    go.set()
    other.join(WAIT)


ROWS = {
    one_function_twice: "f g",
    removed_twice: "f",
    removed_in_a_hook: "once f f",
    on_an_argument_in_the_function: "f | f f",
    on_an_argument_outside_and_in_the_function: "g f | g f f",
    on_a_parameter_in_the_function: "f | f g",
    on_a_parameter_after_a_write: "of the value",
    on_a_value_of_an_ended_derivative: "f | f",
    of_a_weight_of_an_outer_derivative: "| p |",
    of_a_weight_of_another_thread: "| p",
}


@pytest.mark.parametrize("program", ROWS)
def test_hooks_that_run(program):
    log = []
    program(log)
    assert " ".join(log) == ROWS[program]


class Sigmoid(nn.Cell):
    def construct(self, x):
        return ops.sigmoid(x)

    def bprop(self, x, out, dout):
        return (dout * out * (1 - out),)


class SigmoidAndDouble(nn.Cell):
    def construct(self, x):
        return ops.sigmoid(x), x * 2

    def bprop(self, x, out, dout):
        return (dout[0] * out[0] * (1 - out[0]) + dout[1] * 2,)


class OfResultAndInput(nn.Cell):
    """The sigmoid, with a gradient of both `x` and `out`."""

    def construct(self, x):
        return ops.sigmoid(x)

    def bprop(self, x, out, dout):
        return (dout * (out - out * ops.sigmoid(x)),)


def derivative(f, order):
    for _ in range(order):
        f = (lambda g: lambda x: grad(g)(x).sum())(f)
    return f


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("layer", [Sigmoid, SigmoidAndDouble, OfResultAndInput])
@pytest.mark.parametrize("compiled", ["nothing", "function", "derivative"])
def test_a_bprop_that_uses_its_result_is_differentiated(layer, order, compiled):
    cell = layer()

    def f(x):
        y = cell(x)
        return (y[0] if isinstance(y, tuple) else y).sum()

    x = Tensor([0.3, -1.2])
    s = 1 / (1 + np.exp(-x.asnumpy().astype(np.float64)))
    d = s * (1 - s)
    wanted = {1: d, 2: d * (1 - 2 * s), 3: d * (1 - 6 * d)}[order]
    f = derivative(jit(f) if compiled == "function" else f, order - 1)
    program = jit(grad(f)) if compiled == "derivative" else grad(f)
    np.testing.assert_allclose(program(x).asnumpy(), wanted, rtol=1e-4)


def one_result(x):
    return Sigmoid()(x)


def two_results(x):
    return SigmoidAndDouble()(x)[0]


def primitive_of_two(x):
    return ops.qr(x.reshape(2, 1))[1].reshape(1)  # Q and R, whose gradient uses both


def primitive_alone(x):
    return -ops.sqrt((x * x).sum()).reshape(1)


@pytest.mark.parametrize("pair", [(one_result, two_results), (primitive_alone, primitive_of_two)])
def test_a_hook_gets_the_whole_gradient_of_one_of_several_results(pair):
    """The second derivative uses the result twice: in the program, and in its own gradient."""

    def outcome(layer):
        seen = []

        def f(x):
            y = layer(x)

            def hook(g):
                seen.append(g.asnumpy().copy())
                return g * 3

            y.register_hook(hook)
            return (y * y).sum()

        found = grad(lambda x: (grad(f)(x) ** 2).sum())(Tensor([0.6, -0.8]))
        return [*seen, found.asnumpy()]

    alone, among = outcome(pair[0]), outcome(pair[1])
    assert len(alone) == len(among)
    for a, b in zip(alone, among, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


class WritesItsGradient(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        dout.mul_(10)
        return (dout * 2,)


class WritesItsOperands(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        x.add_(1)
        out.add_(1)
        return (dout * x * out,)


def hooked(x):
    y = x * 1

    def hook(g):
        g.mul_(10)

    y.register_hook(hook)
    return y


WRITERS = [
    (WritesItsGradient(), lambda x: 20 + 0 * x),
    (WritesItsOperands(), lambda x: (x + 1) * (2 * x + 1)),
    (hooked, lambda x: 10 + 0 * x),
]


@pytest.mark.parametrize(("writer", "wanted"), WRITERS)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("nested", [False, True])
def test_writes_of_gradient_code_stay_its_own(writer, wanted, first, nested):
    """Both terms of a sum get the same cotangent tensor, to which a hook or `bprop` may write.

    A write by the code of one term must not change the gradient of the other.
    """
    seen = []

    def f(x):
        y, z = (writer(x), x * 1) if first else (x * 1, writer(x))[::-1]
        return (y + z).sum()

    def outer(x):
        _, pull = vjp(f, x)
        for _ in range(2):
            seen.append(pull(Tensor(1.0))[0].asnumpy().copy())
        return x.sum()

    (grad(outer) if nested else outer)(Tensor(X))
    for got in seen:
        np.testing.assert_array_equal(got, wanted(np.float32(X)) + 1)


def test_a_result_written_before_the_backward_pass():
    def f(x):
        y = Sigmoid()(x)
        z = y * 1
        y.zero_()
        return z.sum() + y.sum()

    x = ms.Tensor(X)
    s = 1 / (1 + np.exp(-np.float32(X)))
    np.testing.assert_allclose(grad(f)(x).asnumpy(), s * (1 - s), rtol=1e-5)
