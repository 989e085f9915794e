"""LAX: NumPy arrays and tensor data in compiled code agree with eager mode at every call.

13.1 to 13.7 of the list of accepted syntax
"""

from __future__ import annotations

import random

import duograph as ms
import numpy as np
import pytest
from duograph import Tensor, ops
from jit.calls import as_line_by_line, table

CASES, case = table()


@case
def scipy_like(x):
    return Tensor(np.linalg.inv(np.outer(x.asnumpy(), [1, 2, 3]) + np.eye(3)).astype(np.float32))


@case
def np_array_setitem(x):
    a = x.asnumpy().copy()
    a[0] = 9
    return Tensor(a) + x


@case
def np_shape(x):
    a = np.arange(4.0)
    a.shape = (2, 2)
    return a


@case
def npcond(x):
    if np.array(1) <= 1:
        return x
    return x * 2


@case
def tolist_sum(x):
    return sum(x.tolist())


@case
def item(x):
    return x[0].item() + 1


@case
def mixed(x):
    a = x.asnumpy().sum()
    return x * float(a)


@case
def tensor_of_np(x):
    return Tensor(np.sin(x.asnumpy())) + x


@case
def npfunc_in_branch(x):
    if x.sum() > 0:
        y = np.sum(x.asnumpy())
    else:
        y = np.float32(0)
    return y


@case
def np_in_loop(x):
    total = 0.0
    for i in range(3):
        total += float(np.sum(x.asnumpy())) * i
    return total


@case
def np_carry(x):
    acc = np.zeros(3, np.float32)
    for _ in range(3):
        acc += x.asnumpy()
    return acc


@case
def np_tensor_loop(x):
    acc = np.zeros(3, np.float32)
    while x.sum() < 30:
        acc = acc + x.asnumpy()
        x = x * 2
    return acc, x


@case
def npr(x):
    r = np.random.RandomState(3)
    return x * float(r.rand())


@case
def anyt(x):
    return Tensor(x.asnumpy()[0]).dtype


@case
def f64(x):
    return Tensor(x.asnumpy().astype(np.float64)) * 2


@case
def npmixed(x):
    return x + x.asnumpy()


@case
def npmul(x):
    return x.asnumpy() * x


@case
def nprev(x):
    return np.ones(3, np.float32) - x


@case
def npufunc(x):
    return np.exp(x.asnumpy())


@case
def npufunc_t(x):
    return np.asarray(x) * 2


@case
def idx_from_np(x):
    return x[int(np.argmax(x.asnumpy()))]


@case
def np_int(x):
    return x * np.int32(3) + np.float64(2)


@case
def carry(x):
    acc = np.zeros(3, np.float32)
    acc += x.asnumpy()
    return acc


@case
def setitem(x):
    acc = np.zeros(3, np.float32)
    acc[0] = x.asnumpy()[0] + acc[1]
    acc[1] = acc[0] + 1
    return acc


@case
def setitem_const_then(x):
    acc = np.zeros(3, np.float32)
    acc[0] = 5
    acc[1] += x.asnumpy()[0]
    return acc


@case
def out(x):
    acc = np.zeros(3, np.float32)
    np.add(acc, x.asnumpy(), out=acc)
    return acc


@case
def rng(x):
    r = random.Random(3)
    items = x.asnumpy().tolist()
    r.shuffle(items)
    return items


@case
def rng2(x):
    r = np.random.RandomState(3)
    return r.permutation(x.asnumpy()), r.rand()


@case
def fill(x):
    a = np.zeros(2)
    a.fill(x.asnumpy()[0])
    return a


@case
def loopcarry(x):
    acc = np.zeros(3, np.float32)
    while x.sum() < 30:
        acc += x.asnumpy()
        x = x * 2
    return acc


@case
def branch(x):
    acc = np.zeros(3, np.float32)
    if x.sum() > 3:
        acc += x.asnumpy()
    return acc


@case
def ret_const_array(x):
    a = np.zeros(3)
    return a, x


@case
def view(x):
    a = np.zeros((2, 3), np.float32)
    b = a[0]
    b += x.asnumpy()
    return a


@case
def passed(x):
    def put(a, v):
        a[0] = v

    a = np.zeros(3)
    put(a, x.asnumpy()[1])
    return a.sum()


@case
def putmask(x):
    a = np.zeros(3)
    np.copyto(a, x.asnumpy())
    return a


@case
def sortin(x):
    a = x.asnumpy().copy()
    a.sort()
    return a


@case
def arr_attr(x):
    a = np.zeros(6)
    a.shape = (2, 3)
    a += x.asnumpy()
    return a


@case
def setval(x):
    s = {1}
    s.add(float(x.asnumpy()[0]))
    return s


@case
def objarr(x):
    a = np.empty(2, object)
    a[0] = x
    a[1] = 3
    return a[0]


@case
def rs(x):
    r = np.random.RandomState(0)
    return r.rand(2), x


@case
def rs2(x):
    r = np.random.default_rng(0)
    a = r.random(2)
    return a, r.random(2) * x.asnumpy()[0]


@case
def nestcopy(x):
    a = np.arange(3.0)
    items = [a, a]
    items[0][1] = 9
    return items


@case
def alias(x):
    a = np.zeros(3)
    b = a
    return [a, b]


@case
def later(x):
    acc = np.zeros(3)
    y = float(np.sum(x.asnumpy() + acc))
    acc[0] = 5
    return y, float(np.sum(x.asnumpy() + acc))


@case
def for_host(x):
    t = 0
    for v in x.asnumpy():
        t += v
    return t


@case
def host_unpack(x):
    a, b, c = x.asnumpy().tolist()
    return a + b * c


@case
def host_cmp(x):
    return max(x.asnumpy().tolist()), min(3, x.asnumpy()[0]), sorted([x.asnumpy()[1], 0])


@case
def host_index(x):
    return [10, 20, 30][int(x.asnumpy()[1])]


@case
def host_slice(x):
    return x[: int(x.asnumpy()[1])]


@case
def host_range(x):
    return [i for i in range(int(x.asnumpy()[2]))]


@case
def host_shape(x):
    return ops.ones((int(x.asnumpy()[1]), 2), ms.float32)


@case
def host_str(x):
    return "v" * int(x.asnumpy()[2])


@case
def host_fmt(x):
    return "%d %s" % (x.asnumpy()[0], x.asnumpy())  # noqa: UP031


@case
def host_div(x):
    return 7 / float(x.asnumpy()[0]), 7 // int(x.asnumpy()[1]), divmod(7, int(x.asnumpy()[1]))


@case
def host_neg(x):
    return -x.asnumpy(), ~np.array([True]), abs(x.asnumpy())


@case
def host_tern(x):
    return "a" if x.asnumpy()[0] > 0 else "b"


@case
def host_and(x):
    return (x.asnumpy()[0] > 0 and "yes") or "no"


@case
def host_call_cb(x):
    f = {"a": lambda v: v * 2, "b": lambda v: v * 3}["a" if x.asnumpy()[0] > 0 else "b"]
    return f(x)


@pytest.mark.parametrize("name", CASES)
def test_python_in_compiled_code(name, warned):
    as_line_by_line(CASES[name], warned)
