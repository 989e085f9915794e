"""Which Tensor is which: `is`, `is not` and `id` on Tensors that a function copies or chooses.

Each program must answer compiled as it does line by line; where a condition on a Tensor decides
the answer, the compiled function runs line by line, and STRICT refuses it.
"""

from __future__ import annotations

import copy
import types

import duograph as ms
import duograph.numpy as mnp
import pytest
from duograph import Parameter, Tensor, mint
from duograph.errors import UnsupportedSyntaxError

# Expressions in a Tensor x: some return x itself, most return another Tensor.
EXPRESSIONS = """
x; +x; x + 0; x * 1; -(-x); x[:]; x[...]; x[None][0]; abs(x); sum([x]); max([x], key=len)
list(x)[0]; Tensor(x); Tensor(x, ms.float32); Tensor(x, shape=(2,)); Tensor(input_data=x)
Tensor([x])[0]; Tensor(x, device="CPU"); ms.tensor(x); ms.tensor(x, ms.float32); Parameter(x)
x.copy(); copy.copy(x); copy.deepcopy(x); copy.copy([x])[0]; copy.deepcopy([x])[0]
x.astype(x.dtype); x.astype(ms.float16); x.to(x.dtype); x.float(); x.type_as(x); x.move_to("CPU")
x.reshape(x.shape); x.view(2); x.flatten(); x.ravel(); x.squeeze(); x.T; x.transpose()
x.swapaxes(0, 0); x.broadcast_to((2,)); x.expand_as(x); x.contiguous(); x.clone(); x.value()
x.real; x.add_(0); x.zero_(); x.copy_(y); y.copy_(x); x.asnumpy(); ops.identity(x)
ops.Identity()(x); ops.stop_gradient(x); ops.cast(x, x.dtype); ops.Cast()(x, x.dtype)
ops.reshape(x, (2,)); ops.squeeze(x); ops.tile(x, (1,)); ops.concat((x,)); ops.addn([x])
ops.depend(x, y); ops.flip(x, (0,)); ops.dropout(x, 0.5, training=False); ops.atleast_1d(x)
ops.chunk(x, 1)[0]; ops.where(x > -9, x, x); ops.sum(x, ()); nn.Identity()(x)
nn.SequentialCell()(x); mint.clone(x); mnp.array(x); mnp.asarray(x); mnp.copy(x); mnp.ravel(x)
mint.cat([x]); mint.squeeze(x, 0); [x][0]; {"a": x}["a"]; (lambda v: v)(x); next(iter([x]))
x if len(x) > 1 else y; x if x.sum() > 0 else y; y if x.sum() > 0 else x
x if x.sum() > 99 else x * 2
"""

TENSOR = """
def f(x, y):
    x = {tensor}
    z = {expression}
    return {question}
"""
QUESTIONS = ("z is x, z is not x, x is z, z is y, z is z", "id(z) == id(x), id(y) == id(y)")
TENSORS = {"argument": "x", "made inside": "x * 2", "from outside": "held"}


def names():
    """Return what the programs can see."""
    return {
        "Tensor": Tensor, "Parameter": Parameter, "copy": copy, "mnp": mnp, "mint": mint,
        "held": Tensor([1.0, 2.0]), "world": types.SimpleNamespace(v=None),
    }  # fmt: skip


def plain(found):
    if isinstance(found, (tuple, list)):
        return [plain(v) for v in found]
    return found.asnumpy().tolist() if isinstance(found, Tensor) else found


def answer(load, source, jit):
    f = load(source, **names())["f"]
    return plain(jit(f)(Tensor([1.0, 2.0]), Tensor([5.0, 6.0])))


def strict(f):
    return ms.jit(f, jit_syntax_level="STRICT")


def check(load, source):
    want = answer(load, source, lambda f: f)
    assert answer(load, source, ms.jit) == want
    try:
        found = answer(load, source, strict)
    except UnsupportedSyntaxError:
        return
    assert found == want


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("line", EXPRESSIONS.strip().splitlines())
def test_a_tensor_and_what_is_made_of_it(load, warned, line, tensor):
    for expression in line.split("; "):
        for question in QUESTIONS:
            parts = {"tensor": TENSORS[tensor], "expression": expression, "question": question}
            check(load, TENSOR.format(**parts))


PROGRAMS = {
    "both branches": """
        if x.sum() > 0:
            z = x
        else:
            z = x
        return z is x""",
    "one of two": """
        z = x
        if x.sum() > 0:
            z = y
        return z is x, z is y""",
    "new ones": """
        if x.sum() > 0:
            z = x * 2
        else:
            z = x * 3
        return z is x, z is y, z is z""",
    "one new Tensor twice": """
        if x.sum() > 0:
            t = x * 2
            z, w = t, t
        else:
            z, w = x, y
        return z is w, z is x, w is y""",
    "two that were one before": """
        z = x * 2
        z.copy_(y)
        u = z if x.sum() > 0 else y
        return u is z, u is y, z is y""",
    "an early return": """
        if x.sum() > 99:
            return True
        z = x
        return z is x""",
    "a function that returns one of two": """
        def g(v):
            if v.sum() > 0:
                return v
            return y
        z = g(x)
        return z is x, z is y""",
    "a recursive function": """
        def g(v, n):
            if n > 0:
                return g(v, n - 1)
            return v
        z = g(x, x.sum())
        return z is x, z is y""",
    "a loop": """
        z, i = y, x.sum()
        while i > 0:
            z = x
            i = i - 1
        return z is x, z is y""",
    "a loop over a range": """
        z = y
        for i in range(int(x.sum())):
            z = x
        return z is x, z is y""",
    "asked inside a loop": """
        z, i, k = y, x.sum(), x.sum() * 0
        while i > 0:
            if z is x:
                k = k + 1
            z = x
            i = i - 1
        return k""",
    "one new Tensor twice in a loop": """
        z, w, i, k = y, x, x.sum(), x.sum() * 0
        while i > 0:
            if z is w:
                k = k + 1
            t = x * i
            z, w = t, t
            i = i - 1
        return k, z is w""",
    "names that change places in a loop": """
        z, w, v, first, i, k = x, y, x + y, y, x.sum(), x.sum() * 0
        first = v
        while i > 0:
            if z is first:
                k = k + 1
            z, w, v = w, v, z
            i = i - 1
        return k, z is first""",
    "an item of a list": """
        a = [x, y]
        if x.sum() > 0:
            a[0] = y
        return a[0] is x, a[0] is y, a[0] is a[1]""",
    "a value of a dict": """
        a = {"k": x}
        if x.sum() > 0:
            a = {"k": y}
        return a["k"] is x, a["k"] is y""",
    "an attribute from outside": """
        world.v = x
        if x.sum() > 0:
            world.v = y
        return world.v is x, world.v is y""",
    "a write in a branch": """
        z = x
        if x.sum() > 0:
            z.add_(1)
        return z is x, z is y""",
    "a new Tensor and None": """
        z = x if x.sum() > 0 else y
        return z is None, z is not None""",
    "keys": """
        a, b = x * 2, x * 2
        return len({id(a), id(b), id(x)}), id(a) in {id(a): 1}""",
    "the id of one of two": """
        z = x if x.sum() > 0 else y
        return id(z) == id(x), id(z) == id(y)""",
    "a constant": """
        a = Tensor(3)
        b = Tensor(a)
        return a is b, int(b), x[: int(b)]""",
    "a Tensor twice in a copied list": """
        a = copy.deepcopy([x, x, y])
        return a[0] is a[1], a[0] is a[2], a[0] is x""",
    "a write to a copy": """
        z, w, v = Tensor(x), ms.tensor(held), Tensor([x, y])
        z.add_(1)
        w[0] = 9.0
        v[0] = 7.0
        return x, z, held, w, y, v""",
    "a gradient through a copy": """
        return ms.grad(lambda v: (Tensor(v) * v).sum())(x)""",
    "a write to what a loop chose": """
        z, i = x * 2, x.sum()
        while i > 0:
            z[0] = i
            z = y
            i = i - 1
        return x, y, z""",
    "a write to one new Tensor with two names": """
        if x.sum() > 0:
            t = x * 2
            z, w = t, t
        else:
            z, w = x, y
        z.add_(1)
        return z, w, x""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_tensors_chosen_by_the_graph(load, warned, name):
    check(load, "def f(x, y):" + PROGRAMS[name])


def test_what_is_known_stays_compiled(load, warned):
    """A comparison that no condition decides does not make the function run line by line."""
    for program in ("both branches", "new ones", "a write in a branch", "a new Tensor and None"):
        answer(load, "def f(x, y):" + PROGRAMS[program], strict)


ERRORS = {
    "Tensor(x, shape=(3,))": "got shape=\\(3,\\) and data of shape \\(2,\\)",
    "Tensor(x.sum().item(), shape=(1,))": "got shape=\\(1,\\) and data of shape \\(\\)",
    "Tensor(x, init=3)": "got both input_data and init",
    "ms.tensor(held, shape=(3,))": "got shape=\\(3,\\) and data of shape \\(2,\\)",
    "Tensor(x, size=3)": "unexpected keyword argument 'size'",
}


@pytest.mark.parametrize("expression", ERRORS)
@pytest.mark.parametrize("jit", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_wrong_options_of_a_tensor(load, expression, jit):
    with pytest.raises((ValueError, TypeError), match=ERRORS[expression]):
        answer(load, f"def f(x, y):\n    return {expression}", jit)
