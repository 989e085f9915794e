"""Minimal programs from fuzzing that once differed from eager mode when compiled."""

from __future__ import annotations

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

# body of f
PROGRAMS = {
    "a loop's condition computed by branches": """
        k = 0
        while k < 3 and x.sum() < 40:
            k = k + 1
            x = x * 2 + y
        return x
    """,
    "both sides of `and` are tensors": """
        k = Tensor(0)
        while k < 2 and y.sum() < 400:
            k = k + 1
            y = y + x
        return x + y
    """,
    "`or` and `not` in a condition": """
        if not x.sum() > 100 or y.sum() < 0:
            x = x * y
        return x + y
    """,
    "rebound in an inner branch": """
        if y.mean() > x.mean():
            if not y.sum() < 0:
                x = ops.sigmoid(x)
        return x + y
    """,
    "a raise in a loop in a branch": """
        if y.mean() > x.mean():
            for t in (x, y):
                if t.sum() > 50:
                    raise KeyError("large", t)
            x = ops.sigmoid(x) * 0.5
        return x + y
    """,
    "a loop gives a new name to an old value": """
        k = Tensor(0)
        while k < 2:
            k = k + 1
            v = x
        return v + y
    """,
    "two names change places": """
        k = Tensor(0)
        while k < 3:
            k = k + 1
            x, y = y, x
        return x - y * 2
    """,
    "a name follows another by one turn": """
        k = Tensor(0)
        v = x
        while k < 2:
            k = k + 1
            v = y
            y = y + x
        return v + y
    """,
    "a number counted in a tensor loop": """
        k = Tensor(0)
        while k < 3:
            k = k + 1
            net.n = net.n + 1
        return x * net.n + y
    """,
    "a number counted in a branch of a loop": """
        k = Tensor(0)
        while k < 4:
            k = k + 1
            if k % 2 == 0:
                net.n += 2
            print("n", net.n)
        return x * net.n
    """,
    "a tensor attribute set in a branch": """
        if x.sum() > 0:
            net.last = x * 2
        return net.last * y
    """,
    "a dict of a branch": """
        if x.sum() > 0:
            c = {"a": x}
            c["b"] = y * 2
            x = c.pop("b") + c["a"]
        return x
    """,
    "a list of a turn that may break": """
        for t in (x, y):
            if y.max() > 50:
                break
            c = [t]
            c.append(y)
            x = x + c[1]
        return x
    """,
    "a return in a tensor loop": """
        k = Tensor(0)
        while k < 3:
            k = k + 1
            if k > 1:
                return x * k
            x = x + y
        return y
    """,
    "break and continue": """
        k = Tensor(0)
        while k < 5:
            k = k + 1
            if k == 2:
                continue
            if k == 4:
                break
            x = x + y * k
        return x
    """,
    "else of a loop": """
        for t in (x, y):
            if y.max() > 50:
                break
            x = x + t
        else:
            x = x * 2
        return x
    """,
    "a Parameter's value between writes": """
        a = net.w.value()
        net.w.set_data(x)
        b = net.w.value()
        net.w[0] = 7.0
        print(a, b, net.w.value())
        return a + b * y
    """,
    "an element written in a loop": """
        k = Tensor(0)
        e = x * 1
        while k < 3:
            k = k + 1
            e[0] = e[1] + y[2]
            e[1:] = e[:2] * 0.5
        return e * y
    """,
    "a helper that writes and returns early": """
        def helper(a, b):
            net.w.set_data(ops.tanh(a))
            if a.sum() > b.sum():
                return b
            return a * net.w

        return helper(x, y) + helper(y, x)
    """,
    "a loop that may bind a name, beside a return": """
        if x.sum() > 100:
            v = x
        elif x.sum() > 50:
            return x
        else:
            k = Tensor(0)
            while k < 1:
                k = k + 1
                v = x * 3
        return x + y
    """,
    "nested loops with a counter of each": """
        i = Tensor(0)
        while i < 2:
            i = i + 1
            j = Tensor(0)
            while j < i:
                j = j + 1
                x = x + y * 0.5
                net.n = net.n + 1
        return x * net.n
    """,
    "an object made in a turn": """
        k = Tensor(0)
        while k < 2:
            k = k + 1
            o = Box()
            o.value = x * 2
            x = x + o.value
        return x
    """,
    "an object made in every turn, the first of which is unrolled": """
        n = 0
        while n < 3:
            n = n + 1
            k = Tensor(0)
            while k < 1 and x.sum() > 100:
                k = k + 1
                return y
            o = Box()
            o.value = x * n
            x = o.value + 1
        return x
    """,
    "a function made in every turn, the first of which is unrolled": """
        n = 0
        while n < 3:
            n = n + 1
            if x.sum() > 30:
                break

            def g(t):
                return t * n + x

            x = g(x)
        return x
    """,
    "an object changed in a loop": """
        o = Box()
        o.value = x
        k = Tensor(0)
        while k < 2:
            k = k + 1
            o.value = o.value * y
            if o.value.sum() > 30:
                o.value[0] = 1
        return o.value
    """,
    "a return from a third loop": """
        n = 0
        while n < 3 and x.sum() < 50:
            n = n + 1
            m = 0
            while True:
                m = m + 1
                if m > 3:
                    break
                k = Tensor(0)
                while k < 4 and x.sum() > 20:
                    k = k + 1
                    return y * k
                print(m)
            x = x * 2
        return x + y
    """,
    "the gradient of the largest of integers": """
        n = (x * 3).astype(ms.int32).max().item()
        return x * n + y
    """,
    "a function made before and in turns of a loop": """
        k = Tensor(0)
        while True:
            k = k + 1
            g = lambda t, s=0.5: t * s + x
            if k > 2:
                break
            x = g(x)
        return g(x)
    """,
    "one tensor under two names, rebound by a branch that returns": """
        a, b = x, x
        if (a > 100).any():
            a = a - 1
            return a
        elif (b > 50).any():
            a[1:] = 3.0
        b[0] = 7.0
        return b - a + y
    """,
    "a tensor gets a second name in the branch that goes on": """
        a = y
        if (x > 100).any():
            return x
        else:
            a = x
            if (x > 0).any():
                x[1:] = 3.0
        x[0] = 7.0
        return x - a * 2
    """,
    "a list gets a tensor in the branch that goes on": """
        c = [y]
        if (x > 100).any():
            return x
        else:
            c = [y, x]
            x[1:] = 3.0
        x[0] = 7.0
        return x - c[1] * 2
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_regression(name, agree):
    body = "\n".join(line[4:] for line in PROGRAMS[name].strip("\n").splitlines())
    agree(HEAD + body, X, Y, grad=(0, 1), weights="[net.w]", calls=2)


def test_a_gradient_of_a_result_that_is_written_in_place(agree):
    """The pullback is of the value that the name has at the end."""
    agree(
        """
        def inner(v):
            out = v + 0
            out[0] = 5.0
            return out

        @jit
        def f(x, y):
            value, pull = ms.vjp(inner, x)
            return value, pull(y)[0]
        """,
        X,
        Y,
    )


def test_captured_list_in_a_loop(load):
    """A list that is only looped over is captured with its length."""
    import duograph as ms

    ms.set_context(stale_captures="recompile")
    space = load("""
        numbers = [1.0, 2.0]

        @ms.jit
        def f(x):
            total = x
            for n in numbers:
                total = total + n
            return total
    """)
    assert space["f"](ms.Tensor([0.0])).asnumpy().tolist() == [3]
    space["numbers"].append(4.0)
    assert space["f"](ms.Tensor([0.0])).asnumpy().tolist() == [7]


def test_masked_write(agree):
    """How many elements a mask picks is known only at run time: Python writes them, into the value
    of the name.
    """
    agree(
        """
        @jit
        def f(x, y):
            x = x * 1
            x[y > 4] = y[:2] * 3
            return x * 2
        """,
        X,
        Y,
    )


def test_gradient_through_host_calls(load, warned):
    """It is that of eager mode: under a derivative such a function runs line by line, and says so
    once.
    """
    import duograph as ms

    space = load("""
        def plain(x, m):
            return (x[m] * 2).sum()

        f = ms.jit(plain)
    """)
    x, m = ms.Tensor(X), ms.Tensor([True, False, True])
    assert float(space["f"](x, m)) == float(space["plain"](x, m)) == 8
    for _ in range(3):
        assert ms.grad(space["f"])(x, m).asnumpy().tolist() == [2, 0, 2]
    assert space["f"].cache_info().fallbacks == 3
    (said,) = warned
    assert "plain runs line by line under a derivative: " in str(said.message)


def test_compiled_gradient_through_host_calls(load, warned):
    """The function that takes it runs line by line, and says so."""
    import duograph as ms

    space = load("""
        @ms.jit
        def f(x, m):
            return ms.grad(lambda t: (t[m] * 2).sum())(x)

        @ms.jit(fullgraph=True)
        def strict(x, m):
            return ms.grad(lambda t: (t[m] * 2).sum())(x)
    """)
    x, m = ms.Tensor(X), ms.Tensor([True, False, True])
    assert space["f"](x, m).asnumpy().tolist() == [2, 0, 2]
    assert len(warned) == 1 and "line by line" in str(warned[0].message)
    with pytest.raises(RuntimeError):
        space["strict"](x, m)


# body of f
