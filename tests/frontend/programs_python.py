# ruff: noqa
"""Programs that mix in plain Python: NumPy, modules, user classes, mutable, jit_class (sections
1.6, 13 and 14).
"""

import collections
import dataclasses
import math
import os

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import Plain, b, case, f, i

CALLS = {"n": 0}


@case("13.1", "L", [(f(1, 2), 3), (f(3, 4), 5)])
def math_on_constants(x, n):
    return x * math.sqrt(n) + math.pi, math.floor(2.7), math.log(n), os.path.join("a", "b")


@case("13.1", "L", [(f(1, 2),), (f(3, 4),)])
def numpy_on_constants(x):
    table = np.arange(2, dtype=np.float32) + 1
    table[0] = 5
    return x * Tensor(table), np.prod(x.shape), table.sum(), table.shape


@case("13.1", "L", [(Plain(np.array([1.0, 2.0])), f(1)), (Plain(np.array([3.0, 4.0])), f(2))])
def numpy_argument(a, x):
    return np.sum(a * 2), a.mean(), x + float(a[0]), a[::-1]


@case("13.2", "L", [(f(1, 2),), (f(3, 4),)])
def tensor_to_numpy_and_back(x):
    a = np.sqrt(x.asnumpy())
    y = Tensor(a * 2)
    return y + x, a


@case("13.2", "L", [(f(1, 2),), (f(-3, 4),)])
def branch_on_numpy_of_tensor(x):
    a = x.asnumpy()
    if a.min() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


class Point:
    """A user's class."""

    size = 2

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def norm(self):
        return self.x * self.x + self.y * self.y

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)

    @property
    def first(self):
        return self.x


@case("13.3", "L", [(f(1),), (f(2),)])
def user_class_inside(x):
    p = Point(x, 3)
    q = p + Point(1, x)
    q.x = q.x * 2
    return p.norm(), q.norm(), q.first, Point.size


@case.factory("13.3", "L", [(f(1),), (f(2),)])
def user_object_from_outside():
    p = Point(2.0, 5)

    def scale(x):
        return x * p.x + p.norm() * p.size

    return scale


@dataclasses.dataclass
class Config:
    """Options as a dataclass."""

    width: int = 3
    act: str = "relu"
    extra: list = dataclasses.field(default_factory=list)


Pair = collections.namedtuple("Pair", ["left", "right"])


@case("13.3", "L", [(f(1), Config()), (f(1), Config(5, "none"))])
def dataclass_argument(x, config):
    y = x * config.width
    return ops.relu(y) if config.act == "relu" else y


@case("13.3", "L", [(f(1),), (f(2),)])
def namedtuple_inside(x):
    p = Pair(x, right=x * 2)
    left, right = p
    return p.left + p.right, left, p[1], right


@case.factory("13.3", "L", [(f(1),), (f(2),)])
def user_class_calls_a_jitted_function():
    @ms.jit
    def inner(v):
        return v * 2

    class Model:
        def run(self, x):
            return inner(x) + 1

    model = Model()

    def outer(x):
        return model.run(x) * 3

    return outer


@case("13.4", "L", [(3,), (5,)])
def operators_on_other_types(n):
    a = np.arange(4).reshape(2, 2)
    return a @ a, a[0] * n, a == 1, -a, np.float32(1.5) + n, {1} <= {1, n}


@case("13.5", "L", [([1], {"a": 1}, None, f(1)), ([2], {}, None, f(2))])
def containers_and_none_in_and_out(l, d, nothing, x):
    l.append(x)
    d["new"] = x * 2
    return l, d, nothing


@case.factory("13.5", "L", [(f(1),), (f(2),)], recompiles=True)
def captured_containers_change():
    history, table = [], {"n": 0}

    def log(x):
        history.append(x * 2)
        table["n"] = table["n"] + 1
        return x

    return log, (history, table)


@case.factory("13.5", "L", [(f(1),), (f(-2),), (f(3),)])
def captured_list_changes_under_condition():
    history = [Tensor(0.0, ms.float32)]

    def log(x):
        if x > 0:
            history[0] = x
        return x * 2

    return log, history


@case("13.6", "L", [(f(1),), (f(2),)])
def control_flow_over_arrays(x):
    limit = np.array(1)
    if limit <= 1:
        x = x * 2
    n = np.array(0)
    while n < 3:
        n = n + 1
    for v in np.array([1.0, 2.0]):
        x = x + float(v)
    return x, n


@case.factory("13.7", "L", [(f(1),), (f(2),)])
def attributes_of_nested_objects():
    class State:
        def __init__(self):
            self.inner = Point(1.0, 2.0)
            self.log = []

    state = State()

    def step(x):
        state.inner.x = x
        state.inner.y = state.inner.y + 1
        state.log.append(state.inner.y)
        return x * state.inner.y

    return step, state


@case("13.3", "L", [(f(1), 2), (f(3), 4)], line_by_line=True)
def generator_function_inside(x, n):
    def count(m):
        for k in range(m):
            yield k * 2

    total = x
    for v in count(n):
        total = total + v
    return total


@case("13.3", "L", [(f(1),), (f(2),)], line_by_line=True)
def class_defined_inside(x):
    class Local:
        k = 3

        def apply(self, v):
            return v * self.k

    return Local().apply(x)


@case.factory("13.1", "L", [(f(1),), (f(2),)])
def cached_helper_on_constants():
    import functools

    @functools.lru_cache
    def table(n):
        return sum(range(n))

    def scale(x):
        return x * table(5) + table(5)

    return scale


@case.factory("13.1", "S", [(f(1, 2),), (f(3, 4),)])
def constexpr_helper():
    @ops.constexpr
    def half_of(shape):
        return tuple(n // 2 for n in shape)

    def first_half(x):
        return x[: half_of(x.shape)[0]]

    return first_half


@case("1.6", "S", [(f(1),), (f(2),)])
def mutable_inside(x):
    n = ms.mutable(3)
    t = ms.mutable((x, 2))
    if n > 2:
        x = x * n
    return x + t[0], n + 1


@case("1.6", "S", [lambda: (ms.mutable(1), ms.mutable(2)), lambda: (ms.mutable(5), ms.mutable(7))])
def mutable_numbers(a, c):
    return a + c


@case(
    "1.6",
    "S",
    [
        lambda: (ms.mutable((f_tensor(1), f_tensor(2))),),
        lambda: (ms.mutable((f_tensor(3), f_tensor(4))),),
    ],
)
def mutable_tuple_of_tensors(t):
    return t[0] * t[1]


@case("1.6", "S", [lambda: (ms.mutable(3), f_tensor(1)), lambda: (ms.mutable(-3), f_tensor(1))])
def mutable_number_decides(n, x):
    if n > 0:
        return x * n
    return x - n


@case(
    "1.6",
    "S",
    [lambda: (ms.mutable([1, 2, 3]), f_tensor(1)), lambda: (ms.mutable([4, 5, 6]), f_tensor(1))],
)
def mutable_list_of_numbers(l, x):
    total = 0
    for v in l:
        total = total + v
    return x * total, l[0]


@case(
    "1.6",
    "S",
    [
        lambda: (ms.mutable({"a": 1, "b": f_tensor(2)}),),
        lambda: (ms.mutable({"a": 3, "b": f_tensor(4)}),),
    ],
)
def mutable_dict(d):
    return d["a"] * d["b"]


def f_tensor(*values):
    return Tensor(np.array(values[0] if len(values) == 1 else values, np.float32))


@case.factory("14.5", "S", [(f(1),), (f(2),)])
def jit_class_object():
    @ms.jit_class
    class Scale:
        kind = "scale"

        def __init__(self, k):
            self.k = k

        def apply(self, x):
            return x * self.k

        def __call__(self, x, n=1):
            return self.apply(x) + n

    scale = Scale(4)

    def run(x):
        return scale(x) + scale.apply(x) * scale.k, Scale.kind

    return run


@case.factory("14.5", "S", [(f(1),), (f(2),)])
def jit_class_made_inside():
    @ms.jit_class
    class Scale:
        def __init__(self, k):
            self.k = k

        def apply(self, x):
            return x * self.k

    class Shifted(Scale):
        def apply(self, x):
            return super().apply(x) + 100

    def run(x):
        return Scale(3).apply(x), Shifted(2).apply(x)

    return run


@case.factory("14.5", "S", [(f(1),), (f(2),)])
def ms_class_with_context():
    @ms.ms_class
    class Scope:
        def __init__(self, k):
            self.k = k

        def __enter__(self):
            return self.k * 2

        def __exit__(self, exc_type, exc_value, trace):
            return None

    scope = Scope(3)

    def run(x):
        with scope as k:
            x = x * k
        return x

    return run


@case.factory("14.5", "L", [(f(1),), (f(2),)])
def jit_class_attribute_set():
    @ms.jit_class
    class Counter:
        def __init__(self):
            self.n = 0

        def step(self, x):
            self.n = self.n + 1
            return x * self.n

    counter = Counter()

    def run(x):
        return counter.step(x) + counter.step(x)

    return run, vars(counter)


class Interval:
    """A user's class with most operators, some of which branch on Tensors."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __add__(self, other):
        if isinstance(other, Interval):
            return Interval(self.low + other.low, self.high + other.high)
        return Interval(self.low + other, self.high + other)

    __radd__ = __add__

    def __neg__(self):
        return Interval(-self.high, -self.low)

    def __sub__(self, other):
        return NotImplemented

    def __iadd__(self, other):
        self.low = self.low + other
        return self

    def __contains__(self, x):
        return self.low <= x and x <= self.high

    def __lt__(self, other):
        return self.high < other.low

    def __eq__(self, other):
        return self.low == other.low

    def __bool__(self):
        return bool(self.low < self.high)

    def __len__(self):
        return 2

    def __getitem__(self, n):
        if n == 0:
            return self.low
        if n == 1:
            return self.high
        raise IndexError(n)

    def __iter__(self):
        return iter((self.low, self.high))

    def __call__(self, x):
        if x < self.low:
            return self.low
        return x


@case("13.3", "L", [(f(1), f(3)), (f(-1), f(-3))])
def operators_of_a_user_class(x, y):
    p = Interval(x, y)
    q = -(p + Interval(1.0, 2.0)) + 2.0
    r = 5.0 + q
    r += 3.0
    a, c = r
    return q.low, q.high, a, c, r[0], len(r), p < r, p == q, [v for v in q], q(y)


@case("13.3", "L", [(f(1), f(3)), (f(-1), f(-3))])
def truth_of_a_user_class(x, y):
    p = Interval(x, y)
    if p:
        x = x + 10
    if 2.0 in p and not (9.0 in p):
        x = x + 100
    while p:
        p += 1.0
    return x, p.low


@case("13.3", "L", [(f(1), f(3))], raises=TypeError)
def operator_that_a_user_class_lacks(x, y):
    return Interval(x, y) - 1


@case("13.1", "L", [(f(1),), (f(-1),)], line_by_line=True)
def array_written_under_a_condition(x):
    table = np.zeros(2, np.float32)
    if x > 0:
        table[0] = 5
    return x * Tensor(table)


@case("13.1", "L", [(f(1, 2),), (f(-1, 3),)], line_by_line=True)
def array_written_with_a_variable(x):
    table = np.zeros(2)
    table[1] = float(x[0])
    return table.sum(), table


@case("13.1", "L", [(f(1, 2),), (f(-1, 3),)])
def arrays_computed_and_changed(x):
    grid = np.linspace(0, 1, 3)
    grid[1:] *= 2
    view = grid[1:]
    view[0] = 7
    grid += 1
    mask = grid > 1
    return x + float(grid[0]), grid, mask.any(), grid.reshape(3, 1).shape, np.where(mask, grid, 0)


@case("13.1", "L", [(f(1, 2),), (f(-1, 3),)])
def arrays_in_a_loop(x):
    weights = np.zeros(3, np.float32)
    for n in range(3):
        weights[n] = n * 0.5
    return ops.concat([x, Tensor(weights)])


@case(
    "13.1",
    "L",
    [(Plain(np.array([1.0, 2.0])), f(1)), (Plain(np.array([3.0, 4.0])), f(2))],
    line_by_line=True,
)
def array_argument_written(a, x):
    a[0] = 9
    a += 1
    a.sort()
    return x + float(a[0]), a.sum()


@case.factory("13.1", "L", [(f(1),), (f(2),)], line_by_line=True)
def captured_array_written():
    log = np.zeros(3)

    def note(x):
        log[1:] += 1
        return x * log.sum()

    return note, log
