"""Python numbers that nothing reads: computing them raises in compiled code as in eager code."""

import math

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


@pytest.mark.parametrize(("expression", "value", "error"), RAISING)
@pytest.mark.parametrize("place", ["body", "loop"])
def test_a_number_that_nothing_reads_still_raises(expression, value, error, place, load):
    start = {"body": "if True:", "loop": "for _ in range(2):"}[place]
    space = load(f"""
import math

def f(x):
    {start}
        n = {expression}
    return x + 1

j = ms.jit(f)
""")
    for function in (space["f"], space["j"], space["j"]):
        with pytest.raises(error):
            function(Tensor(value, float32))
        assert function(Tensor(2.0, float32)).item() == 3.0


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
