"""Compiled code writes attributes, globals, outer variables and arguments as line by line."""

from __future__ import annotations

import duograph as ms
import numpy as np
import pytest

X = np.array([1.0, 2.0, 3.0], np.float32)
Y = np.array([4.0, 5.0, 6.0], np.float32)
BOTH = ("jit", "graph mode")


# ---- attributes, globals, nonlocals
# -----------------------------------------------------------------

STATE = """
import types

total = 0
log = []
table = {{"n": 0}}
space = types.SimpleNamespace(n=0)

class Counter:
    def __init__(self):
        self.n = 0

counter = Counter()

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.items = [1, 2]
        self.table = {{"n": 0}}
        self.last = Tensor([0.0, 0.0, 0.0])

    @jit
    def construct(self, x):
{body}

net = f = Net()
WATCH = ("net.count", "net.items", "net.table", "net.last", "total", "log", "table", "space.n",
         "counter.n", "getattr(net, 'new', None)")
"""
WRITES = {
    "attribute, number": "self.count = 5\nreturn x",
    "attribute, counts": "self.count = self.count + 1\nreturn x * self.count",
    "attribute, augmented": "self.count += 2\nreturn x + self.count",
    "attribute, new": "self.new = 7\nreturn x * self.new",
    "attribute, tensor": "self.last = x * 2\nreturn self.last + 1",
    "attribute, tensor read first": "old = self.last\nself.last = x\nreturn old + x",
    "attribute, new tensor": "self.new = x * 3\nreturn self.new",
    "attribute under a tensor condition": (
        "if x.sum() > 5:\n    self.count = self.count + 10\nelse:\n    self.count = -1\nreturn x"
    ),
    "attribute in one branch": "if x.sum() > 500:\n    self.count = 1\nreturn x",
    "attribute, tensor under a condition": "if x.sum() > 5:\n    self.last = x * 2\n"
    "return self.last * 1",
    "attribute in a loop": "for i in range(3):\n    self.count += i\nreturn x",
    "attribute in a tensor loop": (
        "i = Tensor(0)\nwhile i < 3:\n    self.last = self.last + x\n"
        "    i = i + 1\nreturn self.last"
    ),
    "number in a tensor loop": (
        "i = Tensor(0)\nwhile i < 3:\n    self.count = self.count + 1\n    i = i + 1\nreturn x"
    ),
    "attribute of an object": "counter.n = counter.n + 3\nreturn x + counter.n",
    "attribute of a namespace": "space.n += 1\nreturn x * space.n",
    "setattr": "setattr(self, 'new', 4)\nreturn x",
    "global": "global total\ntotal = total + 1\nreturn x + total",
    "global, tensor": "global total\ntotal = x.sum()\nreturn x",
    "global under a condition": "global total\nif x.sum() > 5:\n    total = total + 1\nreturn x",
    "global in a tensor loop": (
        "global total\ni = Tensor(0)\nwhile i < 4:\n    total = total + 2\n    i = i + 1\nreturn x"
    ),
    "local of the same name": "total = 9\nreturn x + total",
    "list append": "log.append(3)\nreturn x",
    "list append, tensor": "log.append(x * 2)\nreturn x",
    "list on self": "self.items.append(3)\nreturn x * len(self.items)",
    "list item": "self.items[0] = self.items[0] + 5\nreturn x * self.items[0]",
    "list methods": (
        "self.items.insert(0, 9)\nself.items.reverse()\n"
        "self.items.extend([4, 5])\nself.items.remove(4)\nreturn x"
    ),
    "list pop": "n = self.items.pop()\nself.items.append(n + 1)\nreturn x * n",
    "list sorted": "self.items.append(0)\nself.items.sort()\nreturn x * self.items[0]",
    "list cleared": "self.items.clear()\nself.items.append(1)\nreturn x",
    "list slice": "self.items[:] = [7, 8, 9]\nreturn x",
    "list del": "self.items.append(1)\ndel self.items[0]\nreturn x",
    "list augmented": "self.items += [1]\nreturn x",
    "list alias": "a = self.items\na.append(5)\nreturn x * len(self.items)",
    "dict item": "self.table['n'] = self.table['n'] + 1\nreturn x * self.table['n']",
    "dict new key": "table['k'] = 5\nreturn x * table['k']",
    "dict update": "table.update(n=4)\nreturn x * table['n']",
    "dict tensor": "table['x'] = x * 2\nreturn table['x'] + 1",
    "dict pop": "table['a'] = 1\nv = table.pop('a')\nreturn x * v",
    "dict setdefault": "table.setdefault('n', 8)\ntable.setdefault('m', 8)\nreturn x",
    "dict del": "table['a'] = 1\ndel table['a']\nreturn x",
    "tensor in place": "self.last[0] = x[1]\nreturn self.last + x",
    "tensor in place, alias": "a = self.last\na[1] = 5.0\nreturn self.last * 2",
    "tensor rebound, not in place": "a = self.last\na += x\nreturn a",
    "closure list": "def note(v):\n    log.append(v)\nnote(1)\nnote(2)\nreturn x",
    "print between": "self.count = 1\nprint('n', self.count)\nself.count = 2\n"
    "print('n', self.count)\nreturn x",
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_outside_objects(name, agree):
    """D21, D20: real writes take effect, in branches and loops as well; locals change nothing
    outside.
    """
    body = "\n".join(" " * 8 + line for line in WRITES[name].splitlines())
    agree(STATE.format(body=body), X, modes=BOTH, calls=3)


def test_list_changed_under_a_tensor_condition_runs_line_by_line(load):
    """A list of another length in each branch has no place in a graph."""
    space = load("""
        log = []

        @ms.jit
        def f(x):
            if x.sum() > 5:
                log.append(1)
            return x
    """)
    with pytest.warns(RuntimeWarning, match="runs line by line.*list"):
        space["f"](ms.Tensor(X))
    assert space["log"] == [1]
    space["f"](ms.Tensor(X * 0))
    assert space["log"] == [1]


NONLOCALS = {
    "number": "n = 0\n{inner}        n = n + 1\n        return x * n",
    "tensor": "n = Tensor([0.0])\n{inner}        n = n + x\n        return n * 2",
    "condition": "n = 0\n{inner}        if x.sum() > 5:\n            n = n + 1\n        return x",
}


@pytest.mark.parametrize("name", NONLOCALS)
def test_nonlocal_variables(name, agree):
    inner = "    @jit\n    def inner(x):\n        nonlocal n\n"
    body = NONLOCALS[name].format(inner=inner)
    source = (
        f"def make():\n    {body}\n    def now():\n        return n\n    return inner, now\n"
        "f, now = make()\nWATCH = ('now()',)\n"
    )
    agree(source, X, calls=3)


def test_nonlocal_of_an_inner_function(agree):
    agree(
        """
        @jit
        def f(x):
            n = 0

            def bump(v):
                nonlocal n, x
                n = n + 1
                x = x + v
                return x * n

            a = bump(1.0)
            b = bump(x)
            return a, b, x * n
        """,
        X,
        grad=(0,),
    )


# ---- arguments
# --------------------------------------------------------------------------------------

ARGUMENTS = {
    "item": "x[0] = 9.0\nreturn x * 2",
    "slice": "x[1:] = y[:2]\nreturn x + y",
    "item from itself": "x[0] = x[1] + x[2]\nx[1] = x[0]\nreturn x",
    "mask": "x[x > 1.5] = 0.0\nreturn x",
    "augmented item": "x[0] += y[0]\nreturn x",
    "read before and after": "a = x * 1\nx[0] = 9.0\nreturn a, x * 1",
    "both": "x[0] = y[0]\ny[1] = x[0]\nreturn x * y",
    "under a condition": "if y.sum() > 0:\n    x[0] = 9.0\nreturn x * 2",
    "not taken": "if y.sum() < 0:\n    x[0] = 9.0\nreturn x * 2",
    "in a loop": "for i in range(3):\n    x[i] = y[2 - i] * i\nreturn x",
    "in a tensor loop": "i = Tensor(0)\nwhile i < 3:\n    x[0] = x[0] * 2\n    i = i + 1\nreturn x",
    "rebound name": "x = x + y\nreturn x",
    "augmented name": "x += y\nreturn x",
    "alias": "z = x\nz[0] = 9.0\nreturn x * 2",
    "copy": "z = x * 1\nz[0] = 9.0\nreturn z + x",
    "in a helper": "def put(t, v):\n    t[1] = v\nput(x, y[0])\nreturn x",
    "set_data": "ops.assign(w, x)\nx[0] = 7.0\nreturn w + x",
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_tensor_arguments_changed_inside(name, agree):
    body = "\n".join("    " + line for line in ARGUMENTS[name].splitlines())
    source = f"w = Parameter(Tensor([0.0, 0.0, 0.0]), name='w')\n\n@jit\ndef f(x, y):\n{body}\n"
    agree(source, X, Y)


@pytest.mark.parametrize("name", [n for n in ARGUMENTS if n not in ("both", "mask")])
def test_gradients_of_functions_that_change_a_copy(name, agree):
    """The same statements on a local Tensor: the gradient is of the values that were used."""
    body = "\n".join("    " + line for line in ARGUMENTS[name].splitlines())
    source = (
        "w = Parameter(Tensor([0.0, 0.0, 0.0]), name='w')\n\n"
        f"@jit\ndef f(x, y):\n    x = x * 1.5\n    y = y * 0.5\n{body}\n"
    )
    agree(source, X, Y, grad=(0, 1))


CONTAINERS = {
    "list append": "items.append(3)\nreturn x * len(items)",
    "list item": "items[0] = 10\nreturn x * items[0]",
    "list of tensors": "items.append(x)\nreturn x",
    "dict item": "table['n'] = 5\nreturn x * table['n']",
    "dict tensor": "table['t'] = x + 1\nreturn table['t']",
    "nothing": "return x * items[0] + table['n']",
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_arguments_changed_inside(name, agree):
    """D47: Function arguments changed inside behave as in Python or are refused."""
    body = "\n".join("    " + line for line in CONTAINERS[name].splitlines())
    agree(f"@jit\ndef f(x, items, table):\n{body}\n", X, [1, 2], {"n": 2})


def test_a_tensor_inside_a_list_argument_is_changed(agree):
    agree("@jit\ndef f(items):\n    items[0][1] = 5.0\n    return items[0] + items[1]\n", [X, Y])
