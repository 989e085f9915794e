"""Minimal programs from fuzzing that write Tensors in place, and once differed when compiled."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest

X = np.array([1.0, 2.0, 3.0], np.float32)
Y = np.array([4.0, 5.0, 6.0], np.float32)
HEAD = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n = 1
        self.w = Parameter(Tensor([1.0, 1.0, 1.0]), name="w")
        self.last = Tensor([0.0, 0.0, 0.0])
        self.log = []
        self.items = [Tensor([0.5, 0.5, -1.0]), Tensor([1.0, 0.0, 0.25])]

class Box:
    pass

net = Net()
WATCH = ("net.n", "net.w", "net.last", "net.log", "net.items")

@jit
def f(x, y):
"""


WRITTEN_IN_PLACE = {
    "an argument before an error": """
        x[2] = 2
        if y.sum() > 0:
            y[0] = 7
            assert x.sum() > 50, "small"
        return x
    """,
    "an argument that a loop wrote before an error": """
        k = Tensor(0)
        while k < 5:
            k = k + 1
            x[0] = x[0] + 1
            y[1] = x.sum()
            if k > 3:
                raise KeyError("late", x)
        return x + y
    """,
    "an argument that an attribute holds": """
        net.last = x
        x[1] = 0
        return x * y
    """,
    "a tensor that an attribute holds": """
        v = x * 2
        net.last = v
        v[0] = 1
        net.log.append(v)
        v[1] = 5
        return v
    """,
    "what an attribute held before": """
        a = net.last
        net.last = x * 2
        a[0] = 3.0
        return a + net.last
    """,
    "a constant that an attribute holds": """
        net.last = Tensor([1.0, 2.0, 3.0])
        net.last[0] = net.last[0] + x[0]
        return net.last * y
    """,
    "one that only its name shows, after a branch": """
        acc = x * 0
        if x.sum() > 0:
            acc = acc + 1
        acc[0] = 5
        return acc * y
    """,
    "one that only its name shows, in a loop": """
        k = Tensor(0)
        acc = x * 0
        while k < 3:
            k = k + 1
            acc = acc * 2 + x
            acc[0] = k * 1.0
        acc[1] = 3
        return acc * y
    """,
    "an argument, returned in a list by one branch": """
        if y[1] > 2:
            x[1] += 2
            return [x, 0]
        return [y, 0]
    """,
    "numbers that are not known": """
        e = x * 1
        e[0] = net.n
        net.n += 1
        e[1] = net.n
        n = int(y.sum())
        e[2] = n
        return e
    """,
    "an item of a list whose items changed places": """
        net.items[0], net.items[1] = net.items[1], net.items[0]
        net.items[0][1] = x[1]
        return x * net.items[0] + y
    """,
    "an item that becomes another item": """
        net.items[0] = net.items[1]
        net.items[0][1] = x[1]
        return x * net.items[0] + y
    """,
    "an item, where the other branch raises": """
        if x.sum() > 0:
            net.items.reverse()
            net.items[0][1] = x[1]
        else:
            raise ValueError("small")
        return x * net.items[0] + y
    """,
    "an argument in a list, where the other branch returns": """
        c = [y, y]
        if x.sum() < 0:
            return y
        else:
            c = [x, y]
            x[1] = y[0] * 2
        return x * c[0] + c[1]
    """,
    "an argument, before its text is made": """
        x[0] = x.sum()
        print(f"{x}")
        return x * y
    """,
}


@pytest.mark.parametrize("name", WRITTEN_IN_PLACE)
def test_in_place_write(name, agree):
    body = "\n".join(line[4:] for line in WRITTEN_IN_PLACE[name].strip("\n").splitlines())
    agree(HEAD + body, X, Y, grad=(0, 1), calls=2)


def test_masked_multiply(agree):
    agree(HEAD + "    x = x * 1\n    x[y > 4] *= 0.5\n    return x", X, Y)


# body of f: which tensor is written in place depends on one
CHOSEN = {
    "by an expression": """
        v = x if y.sum() > 0 else y
        v[0] = 1
        return x + y + v
    """,
    "by a branch": """
        if x.sum() > 100:
            x = x * 2
        x[0] = 1
        return x
    """,
    "by a branch, where the other one returns": """
        if x.sum() > 1:
            if y.sum() > 100:
                x = x * 2
        else:
            return y
        x[0] = 1
        return x
    """,
    "by a branch, where the other one raises": """
        if x.sum() > 1:
            if y.sum() > 100:
                x = x * 2
        else:
            raise ValueError("small")
        x[0] = 1
        return x
    """,
    "by a branch in a branch": """
        if x.sum() > 1:
            if y.sum() > 100:
                x = x * 2
        else:
            x = x * 3
        x[0] = 1
        return x
    """,
    "by an expression in a list of a branch": """
        c = [y * 2]
        if x.sum() > 1:
            c[0] = x if y.sum() > 0 else y
        else:
            raise ValueError("small")
        c[0][0] = 1
        return x + c[0]
    """,
    "by a branch of a differentiated function": """
        c = [y * 2]

        def inner(t):
            c[0] = x if y.sum() > 0 else y
            return (t * t).sum()

        g = ms.grad(inner)(y)
        c[0][0] = 1
        return x + g + c[0]
    """,
    "by a branch that binds an attribute": """
        if y.sum() > x.sum():
            net.last = x * 2
        net.last[1] = 4
        return net.last * y
    """,
    "by the number of turns": """
        k = Tensor(0)
        while k < 3:
            k = k + 1
            x, y = y, x
        x[0] = 3
        return x
    """,
    "by the turn": """
        k = Tensor(0)
        while k < 3:
            k = k + 1
            x[0] = 1
            x = x * 2
        return x
    """,
    "in a helper": """
        def helper(a):
            if a.sum() > 100:
                a = a * 2
            a[0] = 5
            return a

        return helper(x) + x
    """,
    "by a recursion": """
        def helper(a):
            if a.sum() > 10:
                return helper(a * 0.5)
            return a

        v = helper(x)
        x[0] = 9
        return v + x
    """,
    "by a recursion that returns an attribute": """
        def helper(a):
            if a.sum() > 3:
                return helper(a * 0.5)
            return net.last

        v = helper(x)
        net.last[0] = 9
        return v + x
    """,
    "by a recursion, and the result is written": """
        def helper(a):
            if a.sum() > 3:
                return helper(a * 0.5)
            return net.last

        v = helper(x)
        v[0] = 9
        return net.last + x
    """,
    "by a recursion that returns a variable": """
        t = y * 2

        def helper(a):
            if a.sum() > 3:
                return helper(a * 0.5)
            return t

        v = helper(x)
        t[0] = 9
        return v + x
    """,
    "and the other one is written": """
        v = x * 1
        w = v
        if x.sum() > 100:
            w = x * 2
        v[0] = 1
        return w + v
    """,
}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_write_to_a_chosen_tensor_is_refused(name, load, warned):
    """What Python would change is known only when the function runs; the function runs line by
    line.
    """
    import duograph as ms

    body = "\n".join(line[4:] for line in CHOSEN[name].strip("\n").splitlines())
    head = HEAD.replace("@jit\n", "").replace("(nn.Cell)", "(ms.nn.Cell)")
    names = {"Tensor": ms.Tensor, "Parameter": ms.Parameter}
    want, got = load(head + body, **names), load(head + body, **names)
    compiled = ms.jit(got["f"])
    one, two = [ms.Tensor(X), ms.Tensor(Y)], [ms.Tensor(X), ms.Tensor(Y)]
    assert compiled(*two).asnumpy().tolist() == want["f"](*one).asnumpy().tolist()
    assert [t.asnumpy().tolist() for t in two] == [t.asnumpy().tolist() for t in one]
    assert got["net"].last.asnumpy().tolist() == want["net"].last.asnumpy().tolist()
    assert compiled.cache_info().fallbacks == 1 and "to one of several Tensors" in str(
        warned[0].message
    )


def test_unused_objects_made_in_a_branch_need_no_join(load):
    """An object created in each branch needs no join if nobody reads the name afterwards."""
    import duograph as ms

    names = {"Tensor": ms.Tensor}
    source = """
    class Box:
        def __init__(self):
            self.value = 1

    def f(x):
        for i in range(2):
            if x.sum() > i:
                box = Box()
                if x.sum() > 5:
                    return x * box.value
            else:
                box = Box()
        return x * 2

    def g(x):
        if x.sum() > 0:
            box = Box()
        else:
            box = Box()
        return x * box.value
    """
    space = load(source, **names)
    for scale in (1, 3, -1):
        x = ms.Tensor([1.0, 1.0, 1.0]) * scale
        assert (
            ms.jit(space["f"], fullgraph=True)(x).asnumpy().tolist()
            == space["f"](x).asnumpy().tolist()
        )
    with pytest.raises(ms.errors.UnsupportedSyntaxError, match="after the branches: it is a Box"):
        ms.jit(space["g"], fullgraph=True)(x)


def _kept(a):
    return a


def _added(a, b):
    return a + b


def _pulled(x):
    return ms.vjp(_kept, x)[1](x)[0]


def _pulled_twice(x):
    return ms.vjp(_added, x, x)[1](x)[1]


def _pushed(x):
    return ms.jvp(_kept, x, x)[1]


def _given(x):
    return ms.grad(_kept, sens_param=True)(x, x)


class _Same(ms.nn.Cell):
    def construct(self, a):
        return a * 2

    def bprop(self, a, out, dout):
        return (dout,)


_same = _Same()


def _through_bprop(x):
    return ms.vjp(_same, x)[1](x)[0]


def _written_afterwards(derivative, written):
    """Return a function that writes to a cotangent or a gradient after the derivative was taken."""

    def f(x):
        gradient = derivative(x)
        if written == "cotangent":
            x[0] = x.sum()
        else:
            gradient[0] = 9.0
        return x * x + gradient * 3, gradient

    return f


@pytest.mark.parametrize("outer", [lambda f: f, lambda f: ms.value_and_grad(f, has_aux=True)])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("written", ["cotangent", "gradient"])
@pytest.mark.parametrize(
    "derivative",
    [_pulled, _pulled_twice, _pushed, _given, _through_bprop],
    ids=lambda f: f.__name__,
)
def test_a_gradient_is_a_tensor_of_its_own(derivative, written, compiled, outer):
    """Inside another derivative, a rule handed on the caller's own tensor as the gradient."""
    f = _written_afterwards(derivative, written)
    x = ms.Tensor([0.5, 0.5, 0.5])
    found = outer(ms.jit(f) if compiled else f)(x)
    (value, gradient), *slope = found if isinstance(found[0], tuple) else (found,)
    left = [1.5, 0.5, 0.5] if written == "cotangent" else [0.5] * 3
    own = [0.5] * 3 if written == "cotangent" else [9.0, 0.5, 0.5]
    if not slope:  # a derivative differentiates a copy of its argument
        assert x.asnumpy().tolist() == left
    assert gradient.asnumpy().tolist() == own
    assert value.asnumpy().tolist() == [a * a + b * 3 for a, b in zip(left, own)]
    if slope:  # of x * x + 3 * gradient, where x[0] is the sum or the gradient's is constant
        want = [6.0, 7.0, 7.0] if written == "cotangent" else [1.0, 4.0, 4.0]
        assert slope[0].asnumpy().tolist() == want


# Statements of f that keep a tensor in an attribute of an object from outside, in a loop.
KEPT = {
    "an argument that was written": """
    x[0] = 7.0
    while k < 1:
        k = k + 1
        box.value = x
    """,
    "after a host call": """
    x[0] = 7.0
    n = int(x.sum())
    while k < 1:
        k = k + 1
        box.value = x
    """,
    "a new tensor that was written": """
    t = x * 2
    t[0] = x.sum()
    while k < 2:
        k = k + 1
        box.value = t
    """,
    "a constant that was written": """
    t = Tensor([0.0, 0.0, 0.0])
    t[0] = x.sum()
    while k < 2:
        k = k + 1
        box.value = t
    """,
    "written before and in the loop": """
    t = x * 2
    t[0] = 3.0
    while k < 2:
        t[1] = 7.0
        k = k + 1
        box.value = t
        t[2] = 8.0
    """,
    "in two loops": """
    t = x * 3
    t[1] = x.sum()
    while k < 2:
        k = k + 1
        if x.sum() > 0:
            j = Tensor(0)
            while j < 2:
                j = j + 1
                box.value = t
    """,
    "in a branch": """
    x[1] = 2.0
    if x.sum() > 0:
        x[0] = x.sum()
        while k < 1:
            k = k + 1
            box.value = x
    """,
}


@pytest.mark.parametrize("name", KEPT)
def test_an_object_keeps_the_written_value(name, agree):
    """A write before the loop was lost where the loop's body was traced more than once."""
    source = f"""
class Box:
    pass

box = Box()
box.value = Tensor([1.0, -1.0, 0.5])
WATCH = ("box.value",)

@jit
def f(x, y):
    k = Tensor(0)
{KEPT[name]}
    return x * y + box.value
"""
    if name == "written before and in the loop":
        # from the second iteration on, the write also changes what `box.value` holds
        with pytest.raises(AssertionError, match=r"runs line by line.* one of several Tensors"):
            agree(source, X, Y, grad=(0, 1))
        return
    agree(source, X, Y, grad=(0, 1))
