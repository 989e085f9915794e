"""Code that only Python can run: refused at STRICT with its location, run by Python at LAX."""

from __future__ import annotations

import math
import random
import time

import duograph as ms
import numpy as np
from duograph import nn, ops
from frontend.wrong_programs import F, I, right, wrong

STRICT = ("STRICT",)
LAX = ("LAX",)


@wrong(AttributeError, r"In JIT strict mode.*asnumpy", F(2), levels=STRICT, eager=False)
def asnumpy(x):
    return ms.Tensor(x.asnumpy() * 2)  # <- here: x.asnumpy


@wrong(AttributeError, r"In JIT strict mode.*tolist", F(2), levels=STRICT, eager=False)
def tolist(x):
    return x.tolist()  # <- here: x.tolist


@wrong(AttributeError, r"In JIT strict mode.*item", F(2), levels=STRICT, eager=False)
def item(x):
    return x.sum().item()  # <- here: x.sum().item


@wrong(AttributeError, r"In JIT strict mode.*asnumpy", F(2), levels=STRICT, eager=False, made=True)
def asnumpy_in_a_helper():
    def helper(a):
        b = a + 1
        return ms.Tensor(b.asnumpy())  # <- here: b.asnumpy

    def program(x):
        return helper(x) * 2  # <- called here

    return program


@wrong(AttributeError, r"In JIT strict mode.*asnumpy", F(2), levels=STRICT, eager=False, made=True)
def asnumpy_in_construct():
    class Net(nn.Cell):
        def construct(self, x):
            if x.asnumpy()[0] > 0:  # <- here: x.asnumpy
                return x
            return -x

    return Net()


@wrong(RuntimeError, r"(?i)numpy.*sin|sin.*numpy", F(2), levels=STRICT, eager=False)
def numpy_function_of_a_tensor(x):
    return np.sin(x)  # <- here: np.sin(x)


@wrong(RuntimeError, r"(?i)numpy|rand", F(2), levels=STRICT, eager=False)
def numpy_random_numbers(x):
    return x * np.random.rand()  # <- here: np.random.rand()


@wrong(RuntimeError, r"(?i)random", F(2), levels=STRICT, eager=False)
def python_random_numbers(x):
    return x * random.random()  # <- here: random.random()


@wrong(RuntimeError, r"(?i)time", F(2), levels=STRICT, eager=False)
def time_of_day(x):
    start = time.time()  # <- here: time.time()
    return x * start


@wrong(RuntimeError, r"(?i)math|sin", F(2), levels=STRICT, eager=False)
def math_of_a_tensor(x):
    return math.sin(x.sum())  # <- here: math.sin(x.sum())


# ---- what must be known while compiling ---------------------------------------------------------

UNKNOWN = (TypeError, RuntimeError)


@wrong(UNKNOWN, r"known only when", F(6), I(), levels=STRICT, eager=False)
def shape_from_a_tensor(x, n):
    return ops.zeros(int(n))  # <- here


@wrong(UNKNOWN, r"known only when", F(6), I(), levels=STRICT, eager=False)
def slice_up_to_a_tensor(x, n):
    return x[: int(n)]  # <- here


@wrong(UNKNOWN, r"known only when", F(6), I(), levels=STRICT, eager=False)
def comprehension_over_a_tensor_range(x, n):
    return [x * i for i in range(n)]  # <- here


@wrong(UNKNOWN, r"length of the result would be unknown", F(6), levels=STRICT, eager=False)
def comprehension_filtered_by_a_tensor(x):
    return [x * i for i in range(3) if x.sum() > i]  # <- here


@wrong(UNKNOWN, r"length of the result would be unknown", F(6), levels=STRICT, eager=False)
def filter_by_a_tensor(x):
    return list(filter(lambda i: x.sum() > i, [1, 2, 3]))  # <- here


@wrong(UNKNOWN, r"(?i)text is known only when|known only when", F(2), levels=STRICT, eager=False)
def text_of_a_tensor(x):
    return str(x)  # <- here: str(x)


@wrong(KeyError, r"3.0", F(2))
def key_of_a_tensor(x):
    return {1.0: x, 2.0: -x}[float(x.sum())]  # <- here


# ---- writing what is not a Parameter ------------------------------------------------------------


SETATTR = r"setattr: got an assignment to the attribute '{}' of {}"


@wrong(RuntimeError, SETATTR.format("count", "Net"), F(2), levels=STRICT, eager=False, made=True)
def attribute_of_self():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = 0

        def construct(self, x):
            self.count = self.count + 1  # <- here
            return x * self.count

    return Net()


@wrong(RuntimeError, SETATTR.format("last", "Box"), F(2), levels=STRICT, eager=False, made=True)
def attribute_of_a_global_object():
    class Box:
        last = None

    box = Box()

    def program(x):
        box.last = x  # <- here
        return x

    return program


@wrong(ValueError, r"'w'", F(2), made=True)
def two_parameters_of_one_name():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = ms.Parameter(F(2), name="w")
            self.b = ms.Parameter(F(2), name="w")

        def construct(self, x):
            return x * self.a * self.b

    return Net()


# ---- at LAX, Python runs it; what goes wrong there still leads to the line ----------------------


@wrong(np.linalg.LinAlgError, r"Singular matrix", np.ones((2, 2), np.float32), levels=LAX)
def numpy_that_fails(x):
    y = x + 1
    return ms.Tensor(np.linalg.inv(y.asnumpy()))  # <- here


@wrong(ValueError, r"could not broadcast|operands could not be broadcast", F(2), F(3), levels=LAX)
def arrays_that_do_not_broadcast(x, y):
    a = x.asnumpy()
    b = y.asnumpy()
    return ms.Tensor(a + b)  # <- here


@wrong(ZeroDivisionError, r"division", F(2), levels=LAX)
def division_by_an_item(x):
    n = (x * 0).tolist()[0]
    return 1.0 / n  # <- here


@wrong(ValueError, r"math domain error|expected a nonnegative input", -F(2), levels=LAX)
def math_outside_its_domain(x):
    return math.sqrt(x.sum())  # <- here: math.sqrt(x.sum())


@wrong(IndexError, r"out of (range|bounds)", F(2), levels=LAX)
def item_of_a_list_from_a_tensor(x):
    return x.tolist()[5]  # <- here


@wrong(AttributeError, r"'numpy.ndarray' object has no attribute 'no_such'", F(2), levels=LAX)
def attribute_of_an_array(x):
    return x.asnumpy().no_such  # <- here


@wrong(AttributeError, r"module 'numpy' has no attribute 'no_such'", F(2))
def missing_function_of_a_module(x):
    return np.no_such(x)  # <- here: np.no_such


@right(F(2), levels=LAX)
def numpy_that_works(x):
    return ms.Tensor(np.sin(x.asnumpy()))


@right(F(2), levels=LAX)
def items_as_numbers(x):
    return x * x.sum().item() + x.tolist()[0]


@right(F(6), I(), levels=LAX)
def number_from_a_key(x, n):
    return x * int(n) + {1: 2, 2: 3}[int(n)]


@right(F(2))
def constant_arrays_of_numpy(x):
    y = np.array([1.0, 2.0], np.float32)
    return x * ms.Tensor(y)


@right(F(2))
def constants_from_math(x):
    return x * math.pi


@right(F(2))
def numpy_constants(x):
    return x.astype(np.float32) + ops.ones((2,))
