"""Parameters as weights of several derivatives: one inside another, in threads, and written.

A Parameter is one object for all derivatives and threads. Each row is a program whose gradients are
known by hand.
"""

import threading

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, grad, ops, value_and_grad, vjp

WAIT = 120  # seconds


def parameter(value=2.0):
    return Parameter(Tensor(value), name="p")


def twice():
    p = parameter()
    return grad(lambda: p * p, None, [p, p])(), [4, 4]


def twice_inside():
    p = parameter()

    def outer():
        a, b = grad(lambda: p * p * p, None, [p, p])()
        return a + 10 * b  # 33 p^2

    return grad(outer, None, [p, p])(), [132, 132]


def twice_and_as_argument():
    p = parameter()
    return grad(lambda x: x * p * p, 0, [p, p])(p), [4, [8, 8]]


def twice_after_a_write():
    p = parameter()

    def outer(x):
        p.set_data(x * x)
        a, b = grad(lambda: p * p * p, None, [p, p])()  # 3 x^4
        return a + b

    return grad(outer)(Tensor(2.0)), 192


def a_written_weight_is_a_new_value():
    p = parameter()

    def outer():
        p.set_data(Tensor(7.0))
        return grad(lambda: p * p * p, None, p)()

    return value_and_grad(outer, None, p)(), [147, 0]


def a_value_that_an_inner_derivative_writes():
    p = parameter()

    def outer(x):
        def inner(z):
            p.set_data(x * 3)
            return z * p * p

        of_z, of_p = grad(inner, 0, p)(Tensor(5.0))
        return p * 1.0 + of_z + of_p  # 3 x + 9 x^2 + 0: `inner` writes over its weight

    return value_and_grad(outer, 0, p)(Tensor(2.0)), [42, [39, 0]]


def a_copy_is_no_weight():
    p = parameter()

    def outer():
        x = Tensor(0.0)
        x.copy_(p)
        return grad(lambda: x * p, None, p)() * p  # p^2

    return grad(outer, None, p)(), 4


def two_levels_of_weights():
    p, q = parameter(), parameter(3.0)

    def outer(x):
        of_p, of_q = grad(lambda: x * p * p * q * q, None, [p, q])()
        return of_p * of_q  # 4 x^2 p^3 q^3

    return grad(outer, 0, [p, q])(Tensor(1.0)), [1728, [1296, 864]]


def a_pullback_after_another_derivative():
    p = parameter()
    _, pull = vjp(lambda x: x * p * p, Tensor(3.0), weights=p)
    first = pull(Tensor(1.0))
    grad(lambda: grad(lambda: p * p, None, p)(), None, p)()
    p.set_data(Tensor(9.0))
    return [first, pull(Tensor(1.0))], [[[4], 12], [[4], 12]]


PROGRAMS = [
    twice, twice_inside, twice_and_as_argument, twice_after_a_write,
    a_written_weight_is_a_new_value, a_value_that_an_inner_derivative_writes, a_copy_is_no_weight,
    two_levels_of_weights, a_pullback_after_another_derivative,
]  # fmt: skip


def numbers(value):
    if isinstance(value, Tensor):
        return float(value.asnumpy())
    return [numbers(v) for v in value]


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_weights(program):
    got, wanted = program()
    assert numbers(got) == wanted


def test_a_failed_derivative_leaves_the_weights_as_they_were():
    p = parameter()

    def fails(x):
        p.set_data(x * p)
        raise KeyError("mine")

    for f in (fails, lambda x: grad(fails, 0, p)(x)[0]):
        with pytest.raises(KeyError, match="mine"):
            grad(f, 0, p)(Tensor(3.0))
        p.set_data(Tensor(2.0))
        assert (p * p)._type.level == 0
        assert numbers(grad(lambda x: x * p, 0, p)(Tensor(3.0))) == [2, 3]


class Other:
    """A thread that differentiates x * p by both, and waits between `enter` and `leave`."""

    def __init__(self, p):
        self.p, self.result = p, None
        self.inside, self.go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        def f(x):
            self.inside.set()
            assert self.go.wait(WAIT)
            return x * self.p

        self.result = grad(f, 0, self.p)(Tensor(3.0))

    def enter(self):
        self.thread.start()
        assert self.inside.wait(WAIT)

    def leave(self):
        self.go.set()
        self.thread.join(WAIT)


def nothing():
    pass


# Where the other thread enters and leaves its derivative: before the outer derivative of this
# thread, in it, before the first use of p in the inner one, after it, and at the end.
SPANS = [(a, b) for a in range(5) for b in range(a, 5)]


@pytest.mark.parametrize(("enter", "leave"), SPANS)
@pytest.mark.parametrize("outer_weights", [False, True])
def test_another_thread_differentiates_by_the_same_parameter(enter, leave, outer_weights):
    p = parameter()
    other = Other(p)

    def at(point):
        (other.enter if point == enter else nothing)()
        (other.leave if point == leave else nothing)()

    def inner(z):
        at(2)
        cube = p * p * p
        at(3)
        return z * cube * p  # z p^4

    def outer(z):
        at(1)
        of_z, of_p = grad(inner, 0, p)(z)
        return of_z * of_p  # 4 z p^7

    at(0)
    got = numbers(grad(outer, 0, p if outer_weights else None)(Tensor(3.0)))
    at(4)
    assert got == ([512, 5376] if outer_weights else 512)
    assert numbers(other.result) == [2, 3]
    assert (p * p)._type.level == 0


def test_threads_with_one_net():
    rng = np.random.default_rng(3)
    ws = [Parameter(Tensor(rng.normal(size=(3, 3)), ms.float32), name=f"w{i}") for i in range(2)]
    x = Tensor(rng.normal(size=(2, 3)), ms.float32)

    def net(x):
        for w in ws:
            x = ops.tanh(x @ w)
        return x.sum()

    def penalty():
        return sum((g * g).sum() for g in grad(net, None, ws)(x))

    programs = [
        lambda: grad(net, None, ws)(x),
        lambda: grad(penalty, None, ws)(),
        lambda: (grad(lambda z: (grad(net)(z) ** 2).sum())(x),),
        lambda: grad(lambda z: grad(net)(z).sum(), None, ws)(x),
    ]
    wanted = [[g.asnumpy() for g in program()] for program in programs]
    wrong = []

    def work(seed):
        for k in np.random.default_rng(seed).integers(len(programs), size=25):
            got = [g.asnumpy() for g in programs[k]()]
            if not all(map(np.array_equal, got, wanted[k])):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
