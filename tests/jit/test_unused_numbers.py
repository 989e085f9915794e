"""Tests of unused Python numbers: code that raises in eager code raises in compiled code too.

Also of Tensors that are written under a condition and stored outside.
"""

import math
import textwrap

import duograph as ms
import pytest
from duograph import Tensor, float32

# expression of a 0-d Tensor `x`, a value of `x` for which it raises, the error
RAISING = [
    ("int(x)", math.nan, ValueError),
    ("int(x)", math.inf, OverflowError),
    ("int(x.item())", math.nan, ValueError),
    ("round(float(x))", math.nan, ValueError),
    ("round(float(x))", math.inf, OverflowError),
    ("math.floor(float(x))", math.inf, OverflowError),
    ("math.trunc(float(x))", math.nan, ValueError),
    ("1 / float(x)", 0.0, ZeroDivisionError),
    ("1 // int(x)", 0.0, ZeroDivisionError),
    ("divmod(1, int(x))", 0.0, ZeroDivisionError),
    ("float(x) ** -1", 0.0, ZeroDivisionError),
    ("1 << int(x)", -1.0, ValueError),
    ("math.sqrt(float(x))", -1.0, ValueError),
]


# where the expression stands, in a function of `x` that returns x + 1
PLACES = {
    "body": "n = {}",
    "loop": "for _ in range(2):\n    n = {}",
    "while": "i = 0\nwhile i < 2 and x.sum() != 5:\n    i = i + 1\n    n = {}",
    "branch": "if x.sum() != 5:\n    n = {}",
    "else": "if x.sum() == 5:\n    pass\nelse:\n    n = {}",
    "nested branch": "if x.sum() != 5:\n    if x.sum() != 6:\n        n = {}",
    "branch in a loop": "for _ in range(2):\n    if x.sum() != 5:\n        n = {}",
    "conditional expression": "n = {} if x.sum() != 5 else 0",
    "helper": "def h(x):\n    if x.sum() != 5:\n        return {}\n    return 0\nh(x)",
    "comprehension": "n = [{} for _ in range(2)]",
    "gradient": "ms.grad(lambda x: ({}, (x * x).sum())[1])(x)",
}


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("expression", "value", "error"), RAISING)
def test_a_number_that_nothing_reads_still_raises(expression, value, error, place, level, load):
    body = textwrap.indent(PLACES[place].format(expression), "    ")
    space = load(f"import math\n\ndef f(x):\n{body}\n    return x + 1\n")
    compiled = ms.jit(space["f"], jit_level=level)
    for function in (space["f"], compiled, compiled):
        with pytest.raises(error):
            function(Tensor(value, float32))
        assert function(Tensor(2.0, float32)).item() == 3.0


def test_a_branch_that_is_not_taken_does_not_raise(load):
    space = load("""
def f(x):
    if x.sum() != 0:
        n = 1 // int(x)
    n = 1 // int(x) if x.sum() != 0 else 0
    return x + 1
""")
    for function in (space["f"], ms.jit(space["f"])):
        assert function(Tensor(0.0, float32)).item() == 1.0


def test_an_unused_number_that_raises_reaches_the_handler(load, warned):
    # the compiled function runs line by line, with a warning: the error depends on a Tensor
    space = load("""
def f(x):
    r = 1
    try:
        if x.sum() != 5:
            n = 1 // int(x)
    except ZeroDivisionError:
        r = 7
    return x + r
""")
    for function in (space["f"], ms.jit(space["f"])):
        assert [function(Tensor(v, float32)).item() for v in (0.0, 2.0, 5.0)] == [7.0, 3.0, 6.0]


def test_an_unused_recursive_call_still_raises(load):
    space = load("""
def h(t):
    if t.sum() > 3:
        return t
    z = 1 // int(t)
    return h(t + 1)

def f(x):
    h(x)
    return x + 1
""")
    for function in (space["f"], ms.jit(space["f"])):
        assert function(Tensor(1.0, float32)).item() == 2.0
        with pytest.raises(ZeroDivisionError):
            function(Tensor(-1.0, float32))


def test_a_gradient_in_code_whose_globals_have_no_name():
    space = {"ms": ms}
    exec("def f(x):\n    return ms.grad(lambda t: (t * t).sum())(x)", space)
    space.pop("__name__", None)
    assert space["f"](Tensor(2.0, float32)).item() == 4.0


# where a Tensor made inside, and written under a condition, is stored outside
STORED = ["KEPT['t'] = t", "KEPT.setdefault('t', t)", "LIST.append(t)", "BOX.value = t"]


@pytest.mark.parametrize("store", STORED)
def test_a_tensor_written_under_a_condition_is_stored_outside_without_a_fallback(
    store, load, warned
):
    space = load(f"""
class Box:
    value = None

KEPT, LIST, BOX = {{}}, [], Box()

def f(x):
    t = ms.Tensor([1.0, 2.0, 3.0])
    if x.sum() > 0.25:
        t[0] = x.sum()
    {store}
    return x + x

j = ms.jit(f)
""")
    kept, items, box = space["KEPT"], space["LIST"], space["BOX"]
    for value, first in ((0.5, 0.5), (-0.5, 1.0)):
        for function in (space["f"], space["j"]):
            kept.clear()
            items.clear()
            box.value = None
            function(Tensor(value, float32))
            stored = kept.get("t") if kept else items[0] if items else box.value
            assert stored.asnumpy().tolist() == [first, 2.0, 3.0]
    assert not warned
