"""Side effects of compiled code happen in source order, once per call, or are refused.

D30, D32, D47, D50, O09: memory and IO effects keep source order; reads before a later write see the
    old value
"""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest
from duograph import errors

X = np.array([1.0, 2.0, 3.0], np.float32)
BOTH = ("jit", "graph mode")


def value(observation):
    """Return the numbers of an observed Tensor as nested lists."""
    return observation[1].tolist()


# ---- parameters
# -------------------------------------------------------------------------------------

NET = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0, 2.0, 2.0]), name="w")
        self.b = Parameter(Tensor([1.0]), name="b")

    @jit
    def construct(self, x{more}):
{body}

net = f = Net()
WATCH = ("net.w", "net.b")
"""

# body of construct -> values of w and b after two calls with x = [1, 2, 3]
ASSIGNMENTS = {
    "assign": ("ops.assign(self.w, x)\nreturn self.w * 2", [1, 2, 3], [1]),
    "assign, method": ("self.w.set_data(x)\nreturn self.w * 2", [1, 2, 3], [1]),
    "attribute": ("self.w = x\nreturn self.w * 2", [1, 2, 3], [1]),
    "assign_add": ("ops.assign_add(self.w, x)\nreturn self.w * 2", [4, 6, 8], [1]),
    "assign_sub": ("ops.assign_sub(self.w, x)\nreturn x", [0, -2, -4], [1]),
    "item": ("self.w[1] = 9.0\nreturn self.w + x", [2, 9, 2], [1]),
    "slice": ("self.w[1:] = x[:2]\nreturn self.w + x", [2, 1, 2], [1]),
    "augmented item": ("self.w[0] += x[2]\nreturn self.w", [8, 2, 2], [1]),
    "read, write, read": (
        "before = self.w * 1\nops.assign(self.w, before + x)\nreturn before, self.w * 1",
        [4, 6, 8],
        [1],
    ),
    "two parameters": (
        "ops.assign_add(self.b, self.b)\nops.assign(self.w, x + self.b)\nreturn self.w, self.b",
        [5, 6, 7],
        [4],
    ),
    "swap through a read": (
        "old = self.w + 0\nops.assign(self.w, x * self.b)\nops.assign(self.b, old[:1])\nreturn old",
        [2, 4, 6],
        [1],
    ),
    "under a tensor condition": (
        "if x.sum() > 5:\n    ops.assign_add(self.w, x)\nelse:\n    ops.assign_sub(self.w, "
        "x)\nreturn self.w * 1",
        [4, 6, 8],
        [1],
    ),
    "one branch only": (
        "if x.sum() > 100:\n    ops.assign(self.w, x)\nreturn self.w + x",
        [2, 2, 2],
        [1],
    ),
    "in a constant loop": (
        "for i in range(3):\n    ops.assign_add(self.w, x * i)\nreturn self.w * 1",
        [8, 14, 20],
        [1],
    ),
    "in a tensor loop": (
        "i = Tensor(0)\nwhile i < 3:\n    ops.assign_add(self.w, x)\n    i = i + 1\nreturn self.w "
        "* 1",
        [8, 14, 20],
        [1],
    ),
    "in a loop that never runs": (
        "i = Tensor(9)\nwhile i < 3:\n    ops.assign_add(self.w, x)\n    i = i + 1\nreturn self.w "
        "* 1",
        [2, 2, 2],
        [1],
    ),
    "branch in a loop": (
        "i = Tensor(0)\nwhile i < 4:\n    if i % 2 == 0:\n        ops.assign_add(self.w, x)\n"
        "    else:\n        ops.assign_add(self.b, self.b)\n    i = i + 1\nreturn self.w + self.b",
        [6, 10, 14],
        [16],
    ),
    "early return": (
        "ops.assign_add(self.b, self.b)\nif x.sum() > 5:\n    return x\nops.assign(self.w, "
        "x)\nreturn self.w",
        [2, 2, 2],
        [4],
    ),
    "in a helper": (
        "def bump(v):\n    ops.assign_add(self.w, v)\n    return self.w * 1\nreturn bump(x) + "
        "bump(x)",
        [6, 10, 14],
        [1],
    ),
    "unused by the result": ("ops.assign(self.w, x * 3)\nreturn x", [3, 6, 9], [1]),
    "shape kept, value of the argument": ("self.w.set_data(x * self.w)\nreturn x", [2, 8, 18], [1]),
}


def _net(body: str, more: str = "") -> str:
    return NET.format(more=more, body="\n".join(" " * 8 + line for line in body.splitlines()))


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_parameters_are_assigned(name, agree):
    body, w, b = ASSIGNMENTS[name]
    seen = agree(_net(body), X, modes=BOTH)
    assert value(seen[-1].state["net.w"]) == w
    assert value(seen[-1].state["net.b"]) == b


@pytest.mark.parametrize("name", [n for n in ASSIGNMENTS if n != "unused by the result"])
def test_gradients_beside_assignments(name, agree):
    """The gradient uses the value at that point of the program, whatever is assigned later."""
    agree(_net(ASSIGNMENTS[name][0]), X, grad=(0,), weights="[net.w]")


def test_the_documented_loop_has_gradient_three(agree):
    """C30: In-place change of a value needed by backward is caught or saved: 3 where MindSpore's
    eager mode says 6.

    D32: Reads before a later write see the old value.
    """
    source = """
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.out = Parameter(Tensor([0.0]), name="out")

        @jit
        def construct(self, x):
            total = Tensor([0.0])
            i = Tensor(0)
            while i < 3:
                ops.assign(self.out, x * 1)
                total = total + self.out * 0 + x
                ops.assign(self.out, self.out * 2)
                i = i + 1
            return total

    net = f = Net()
    WATCH = ("net.out",)
    """
    seen = agree(source, np.array([1.0], np.float32), grad=(0,))
    assert value(seen[-1].result[1][0]) == [3.0]


def test_gradient_with_a_growing_parameter(agree):
    """A documented example: the gradient of x * (w as it grows) is the sum of the values that were
    used.
    """
    source = """
    w = Parameter(Tensor([1.0]), name="w")

    @jit
    def f(x):
        out = x * w
        for _ in range(2):
            ops.assign_add(w, Tensor([1.0]))
            out = out + x * w
        return out

    WATCH = ("w",)
    """
    seen = agree(source, np.array([1.0], np.float32), grad=(0,))
    first = next(s for s in seen if s.label.startswith("gradient"))
    assert value(first.result[1][0]) == [1.0 + 2.0 + 3.0]


def test_writes_before_a_raise_stand(agree):
    seen = agree(
        _net("ops.assign(self.w, x)\nif x.sum() > 5:\n    raise ValueError('stop')\nreturn x"), X
    )
    assert seen[0].error[0] is ValueError
    assert value(seen[0].state["net.w"]) == [1, 2, 3]


# ---- random numbers
# ---------------------------------------------------------------------------------

RANDOM = {
    "dropout": "return ops.dropout(x, 0.5)",
    "two draws": "return ops.dropout(x, 0.5), ops.dropout(x, 0.5)",
    "unused draw": "ops.dropout(x, 0.5)\nreturn ops.dropout(x, 0.5)",
    "standard_normal": "return x + ops.standard_normal((3,))",
    "in a tensor loop": "i = Tensor(0)\nwhile i < 3:\n    x = x + ops.standard_normal((3,))\n"
    "    i = i + 1\nreturn x",
    "in a branch": "if x.sum() > 0:\n    x = x + ops.standard_normal((3,))\n"
    "return x, ops.standard_normal((3,))",
    "in the other branch": (
        "if x.sum() < 0:\n    x = x + ops.standard_normal((3,))\nreturn x, "
        "ops.standard_normal((3,))"
    ),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_those_of_eager_mode(name, agree):
    """One seed, the same numbers; every random op, dead or not, advances the state by one."""
    body = "\n".join("    " + line for line in RANDOM[name].splitlines())
    seen = agree(f"@jit\ndef f(x):\n{body}\n", np.arange(1, 4, dtype=np.float32), grad=(0,))
    assert str(seen[0].result) != str(seen[1].result)  # the state moved on


def test_dropout_layers_and_eager_draws_share_one_state(agree):
    agree(
        """
        drop = nn.Dropout(p=0.4)
        drop.set_train()

        @jit
        def inner(x):
            return drop(x) + drop(x)

        def f(x):
            return ops.dropout(x, 0.5), inner(x), ops.dropout(x, 0.5)
        """,
        np.ones((4, 5), np.float32),
        grad=(0,),
    )


# ---- raise and assert
# -------------------------------------------------------------------------------

RAISES = {
    "tensor condition": "if x.sum() > 0:\n    raise ValueError('x is', x)\nreturn x",
    "not taken": "if x.sum() < 0:\n    raise ValueError('x is', x)\nreturn x",
    "else": "if x.sum() < 0:\n    y = x\nelse:\n    raise KeyError('no', 3)\nreturn y",
    "in a loop": "i = Tensor(0)\nwhile i < 5:\n    if i == 3:\n        raise IndexError(i)\n"
    "    i = i + 1\nreturn i",
    "after prints": (
        "print('one', x)\nif x[0] > 0:\n    print('two')\n"
        "    raise RuntimeError('three')\nprint('four')\nreturn x"
    ),
    "no arguments": "if x.sum() > 0:\n    raise StopIteration\nreturn x",
    "assert": "assert x.sum() < 0, 'positive'\nreturn x",
    "assert holds": "assert x.sum() > 0, 'negative'\nreturn x",
    "assert with values": "assert (x < 0).all(), ('not all', 3)\nreturn x",
    "constant": "raise TypeError(f'wanted {x.shape}')",
    "constant assert": "assert x.shape == (4,), x.shape\nreturn x",
    "own class": "if x.sum() > 0:\n    raise Mine(7, 'seven')\nreturn x",
    "in a helper": (
        "def check(v):\n    if v.sum() > 0:\n"
        "        raise ValueError('checked')\n    return v\nreturn check(x) * 2"
    ),
    "division by zero": "return x * (1 // (x.shape[0] - 3))",
    "index": "return x[5]",
    "nested conditions": (
        "if x.sum() > 0:\n    if x[0] > 5:\n        raise ValueError('big')\n    elif x[1] > 1:\n"
        "        raise KeyError('second')\nreturn x"
    ),
}


@pytest.mark.parametrize("name", RAISES)
def test_exceptions(name, agree):
    """D46: raise and assert with a tensor condition work at run time: same class, same arguments,
    and at once.
    """
    body = "\n".join("    " + line for line in RAISES[name].splitlines())
    source = f"class Mine(Exception):\n    pass\n\n@jit\ndef f(x):\n{body}\n"
    seen = agree(source, X, grad=(0,))
    raises = name not in ("not taken", "assert holds")
    assert all((s.error is not None) == raises for s in seen)


def test_a_raise_keeps_the_tensor(load):
    f = load("""
        @ms.jit
        def f(x):
            if x.sum() > 0:
                raise ValueError("x is", x)
            return x
    """)["f"]
    with pytest.raises(ValueError) as caught:
        f(ms.Tensor(X))
    assert caught.value.args[0] == "x is"
    assert caught.value.args[1].asnumpy().tolist() == [1, 2, 3]


def test_after_an_exception_the_function_still_works(load):
    f = load("""
        @ms.jit
        def f(x):
            if x.sum() > 10:
                raise ValueError("large")
            return x * 2
    """)["f"]
    assert f(ms.Tensor(X)).asnumpy().tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="large"):
        f(ms.Tensor(X * 10))
    assert f(ms.Tensor(X)).asnumpy().tolist() == [2, 4, 6]


def test_bce_loss_outside_its_range(agree):
    """D10: BCELoss on a value outside [0, 1] raises, naming op and value, in both modes."""
    source = """
    loss = nn.BCELoss()

    @jit
    def f(x, y):
        return loss(x, y)
    """
    seen = agree(
        source, np.array([0.5, 2.0], np.float32), np.array([0.0, 1.0], np.float32), grad=(0,)
    )
    assert seen[0].error[0] is errors.ProbabilityError
    assert "binary_cross_entropy" in str(seen[0].error[2]) and "2" in str(seen[0].error[2])
    agree(source, np.array([0.5, 0.2], np.float32), np.array([0.0, 1.0], np.float32), grad=(0,))


# ---- order of everything
# ----------------------------------------------------------------------------


def test_effects_keep_source_order(agree):
    """D30: prints, assignments, host values and random numbers in one function, in the order of the
    source.
    """
    agree(
        """
        w = Parameter(Tensor([1.0, 1.0, 1.0]), name="w")
        log = []

        @jit
        def f(x):
            print("start", x)
            ops.assign_add(w, x)
            print("w", w.value())
            noise = ops.standard_normal((3,))
            log.append(1)
            if noise.sum() > 0:
                print("positive")
                ops.assign(w, w + noise)
            else:
                print("negative", noise)
                ops.assign(w, w - noise)
            i = Tensor(0)
            while i < 2:
                print("turn", i)
                ops.assign_add(w, w)
                i = i + 1
            print("end", w.value())
            return w * 1

        WATCH = ("w", "log")
        """,
        X,
        calls=4,
    )


def test_print_runs_at_each_call_and_iteration(load, capsys):
    """Print in a graph shows values each time the graph runs, never while compiling."""
    f = load("""
        @ms.jit
        def f(x):
            i = ms.Tensor(0)
            while i < x.sum():
                print("turn")
                i = i + 1
            return i
    """)["f"]
    for total in (3, 2, 0, 4):
        f(ms.Tensor([float(total)]))
        assert capsys.readouterr().out == "turn\n" * total


def test_a_branch_that_is_not_taken_prints_nothing(load, capsys):
    f = load("""
        @ms.jit
        def f(x):
            if x.sum() > 0:
                print("positive")
            else:
                print("not")
            return x
    """)["f"]
    f(ms.Tensor([1.0]))
    f(ms.Tensor([-1.0]))
    assert capsys.readouterr().out == "positive\nnot\n"


def test_dead_code_without_effects_goes(load):
    """D29: Statements that do not reach the return value are removed unless they have effects."""
    space = load("""
        @ms.jit
        def f(x):
            y = x * 2
            z = ops.exp(y) + y
            return x + 1
    """)
    assert space["f"](ms.Tensor(X)).asnumpy().tolist() == [2, 3, 4]


def test_depend_orders(agree):
    """D31: `Depend(value, expr)` forces an order by hand."""
    agree(
        """
        w = Parameter(Tensor([1.0, 1.0, 1.0]), name="w")

        @jit
        def f(x):
            written = ops.assign(w, x)
            return ops.depend(w * 2, written)

        WATCH = ("w",)
        """,
        X,
    )


def through_arguments(a, b, c):
    b[0] = a[1]
    c[2] = 7.0
    PARAMETERS[0][3] = c[0]
    return a + b + c + PARAMETERS[0] * PARAMETERS[1], a


PARAMETERS = [ms.Parameter(ms.Tensor([1.0, 2.0, 3.0, 4.0]), name=name) for name in "pr"]


@pytest.mark.filterwarnings("ignore:.* is compiled for the 9th time:RuntimeWarning")
@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_aliased_arguments_and_state(level):
    """D47: what is written in place to one argument is seen in all that are the same object."""
    first = np.arange(4, dtype=np.float32)
    compiled = ms.jit(through_arguments, jit_config=ms.JitConfig(jit_level=level))
    patterns = (
        "qqq",
        "qtu",
        "qpt",
        "ppp",
        "rrr",
        "qtq",
        "pqp",
        "qqp",
        "prp",
        "rpr",
        "qqq",
        "qtu",
        "prr",
    )
    for pattern in patterns:
        found = []
        for run in (through_arguments, compiled):
            for k, parameter in enumerate(PARAMETERS):
                parameter.set_data(ms.Tensor(first * 2 + k))
            tensors = {k: ms.Tensor(first + i) for i, k in enumerate("qtu")}
            tensors |= dict(zip("pr", PARAMETERS, strict=True))
            out, same = run(*[tensors[k] for k in pattern])
            assert same is tensors[pattern[0]]
            found.append(
                [out.asnumpy().tolist(), *[v.asnumpy().tolist() for v in tensors.values()]]
            )
        assert found[0] == found[1], pattern
    calls = compiled.cache_info()
    compiled(*[ms.Tensor(first)] * 3)
    compiled(*[ms.Tensor(first) for _ in range(3)])
    classes = {tuple(k in "pr" for k in p) for p in patterns}  # Parameter or Tensor
    assert compiled.cache_info().misses == calls.misses <= len(set(patterns)) + len(classes)
