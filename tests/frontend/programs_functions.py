# ruff: noqa
"""Programs about functions: inner ones, lambdas, closures, recursion, partial, comprehensions,
decorators (section 8).
"""

import functools

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import b, case, f, i


def square(x):
    return x * x


def affine(x, scale=2, shift=1):
    return x * scale + shift


def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


def halve_until_small(x):
    if x < 1:
        return x
    return halve_until_small(x / 2)


def is_even(n):
    if n == 0:
        return n * 0 + 1
    return is_odd(n - 1)


def is_odd(n):
    if n == 0:
        return n * 0
    return is_even(n - 1)


@case("8.13", "S", [(f(1),), (f(2),)])
def inner_function_forms(x):
    def g(a, c=2, *rest, k=5, **more):
        total = a * c + k
        for r in rest:
            total = total + r
        for name in more:
            total = total * more[name]
        return total

    return (
        g(x),
        g(x, 3),
        g(x, 3, 4, x),
        g(x, k=1),
        g(x, z=2, y=3),
        g(*[x, 1, 2], **{"k": 3, "w": x}),
    )


@case("8.13", "S", [(f(1), f(2)), (f(3), f(4))])
def keyword_only_and_positional_only(x, y):
    def g(a, /, c, *, d=None):
        return a - c if d is None else a - c * d

    return g(x, y), g(x, c=y), g(x, y, d=3)


@case("8.13", "S", [(f(1),), (f(2),)])
def defaults_are_evaluated_once(x):
    n = 3

    def g(a, k=n):
        return a * k

    n = 100
    return g(x) + n


@case("8.13", "S", [(f(1),)], raises=TypeError)
def missing_argument(x):
    def g(a, c):
        return a + c

    return g(x)


@case("8.13", "S", [(f(1), f(2), 3), (f(4), f(5), 6)])
def top_varargs(*args):
    total = args[0]
    for a in args[1:]:
        total = total * a
    return total, len(args)


@case("8.13", "S", [(f(1), 2), (f(3),)])
def top_defaults(x, n=5, *, scale=2.0):
    return x * n * scale


@case.factory("8.14", "S", [(f(1), f(2)), (f(3), f(4))])
def construct_with_varargs():
    class Net(nn.Cell):
        def construct(self, *args, **kwargs):
            total = args[0]
            for a in args[1:]:
                total = total - a * 2
            return total * kwargs.get("scale", 3), len(kwargs)

    return Net()


@case("8.15", "S", [(f(1, 2),), (f(3, 4),)])
def lambdas(x):
    double = lambda v: v * 2
    add = lambda a, c=3, *r: a + c + len(r)
    return double(x), add(x), add(x, 1, 2, 3), (lambda: x)(), [g(x) for g in (double, add)]


@case("8.15", "S", [(f(1),), (f(-1),)])
def lambda_with_ternary_in_branch(x):
    pick = lambda v: v * 10 if v > 0 else v * 100
    return pick(x) + pick(-x)


@case("8.16", "S", [(f(1),), (f(2),)])
def functions_of_the_module(x):
    return affine(square(x), shift=3) + affine(x)


@case("8.16", "S", [(f(1),), (f(2),)])
def functions_as_values(x):
    def twice(g, v):
        return g(g(v))

    table = {"square": square, "inc": lambda v: v + 1}
    y = x
    for name in ("square", "inc"):
        y = twice(table[name], y)
    return y


@case("8.16", "S", [(f(1),), (f(2),)])
def function_returned(x):
    def make(n):
        def scale(v):
            return v * n

        return scale

    triple = make(3)
    return triple(x) + make(5)(x)


@case("8.16", "S", [(f(1),), (f(2),)])
def closure_sees_later_assignment(x):
    k = 1

    def g(v):
        return v * k

    a = g(x)
    k = 10
    return a, g(x)


@case("8.16", "S", [(f(1),), (f(2),)])
def closures_made_in_a_loop(x):
    late = [lambda v: v * n for n in range(3)]
    early = [lambda v, n=n: v * n for n in range(3)]
    return [g(x) for g in late], [g(x) for g in early]


@case("8.16", "S", [(f(1), 5), (f(2), 0)])
def recursion_on_constant(x, n):
    return x * factorial(n)


@case("8.16", "S", [(f(2), 5), (f(3), 2)], grad=0)
def recursive_power(x, n):
    def power(v, k):
        if k == 0:
            return 1
        half = power(v, k // 2)
        return half * half * v if k % 2 else half * half

    return power(x, n)


@case("8.16", "S", [(f(10),), (f(0.5),)])
def recursion_on_tensor(x):
    return halve_until_small(x)


@case("8.16", "S", [(i(5),), (i(1),), (i(8),)])
def factorial_of_tensor(n):
    def fact(k):
        if k <= 1:
            return k * 0 + 1
        return k * fact(k - 1)

    return fact(n)


@case("8.16", "S", [(i(7),), (i(2),)])
def fibonacci_of_tensor(n):
    def fib(k):
        if k < 2:
            return k
        return fib(k - 1) + fib(k - 2)

    return fib(n)


@case("8.16", "S", [(i(5),), (i(4),)])
def mutual_recursion_on_tensor(n):
    return is_even(n) * 10 + is_odd(n)


@case("8.16", "S", [(f(20), 3), (f(3), 2)])
def recursion_on_tensor_with_extra_values(x, step):
    def walk(v, total, depth):
        if v < 0:
            return total, depth
        return walk(v - step, total + v * step, depth + 1)

    return walk(x, x * 0, 0)


@case("8.16", "S", [(f(1),), (f(-1),)])
def helper_with_early_return(x):
    def clip(v, low=0.0):
        if v < low:
            return v * 0
        return v

    return clip(x) + clip(x * 2, low=-5.0)


@case("8.16", "S", [(f(1),), (f(-1),)])
def chosen_function_called_later(x):
    def up(v):
        return v + 1

    def down(v):
        return v - 1

    step = up if x > 0 else down
    y = x
    for _ in range(3):
        y = step(y)
    return y


@case.factory("8.16", "S", [(f(1),), (f(-2),)])
def methods_as_values():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.k = 3

        def up(self, x):
            return x * self.k

        def down(self, x):
            return x - self.k

        def construct(self, x):
            steps = [self.up, self.down, self.up]
            for s in steps:
                x = s(x)
            return x

    return Net()


@case.factory("8.16", "S", [(f(1),), (f(-2),)])
def static_and_class_helpers():
    class Net(nn.Cell):
        @staticmethod
        def scale(x, k):
            return x * k

        @property
        def factor(self):
            return 4

        def construct(self, x):
            return self.scale(x, self.factor) + Net.scale(x, 2)

    return Net()


@case("8.17", "S", [(f(1),), (f(2),)])
def partials(x):
    g = functools.partial(affine, scale=5)
    h = ops.partial(affine, x, 2)
    k = functools.partial(g, shift=0)
    return g(x), h(), h(shift=7), k(x)


@case("8.18", "S", [(f(1), [1, 2, 3]), (f(2), [4])])
def list_comprehensions(x, l):
    a = [x * n for n in l]
    c = [n + 1 for n in l if n > 1 if n < 3]
    d = [(n, v) for n, v in enumerate(a)]
    return a, c, d, [n for n in range(4) if n % 2 == 0]


@case("8.18", "S", [(f(1, 2, 3),), (f(4, 5, 6),)])
def comprehension_over_tensor(x):
    return sum([v * v for v in x]), [v if v > 2 else -v for v in x]


@case("8.18", "S", [(f(1),), (f(4),)])
def comprehension_variable_is_local(x):
    n = 100
    l = [n * 2 for n in range(3)]
    return x * n, l


@case("8.19", "L", [(f(1),), (f(2),)])
def dict_comprehension(x):
    d = {"k" + str(n): x * n for n in range(3) if n}
    return d, {v: k for k, v in {"a": 1}.items()}


@case("8.19", "S", [(f(1),), (f(2),)])
def dict_comprehension_used_inside(x):
    d = {n: x + n for n in range(3)}
    return d[0] * d[2]


@case("8.20", "S", [(f(1), [1, 2, 3]), (f(2), [4, 5, 6])])
def generator_expressions(x, l):
    return sum(x * n for n in l), tuple(n + 1 for n in l), max(n for n in l), all(n > 3 for n in l)


@case("8.22", "S", [(f(1),), (f(2),)])
def decorators_on_inner_functions(x):
    def doubled(g):
        def wrapper(*args, **kwargs):
            return g(*args, **kwargs) * 2

        return wrapper

    def plus(n):
        def decorate(g):
            return lambda v: g(v) + n

        return decorate

    @plus(3)
    @doubled
    def h(v):
        return v * v

    return h(x)


def traced(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs) + 1

    return wrapper


@traced
def decorated_cube(x):
    return x * x * x


@case("8.22", "S", [(f(1),), (f(2),)])
def decorated_function_of_the_module(x):
    return decorated_cube(x) * 2


COUNT = 0


@case("8.23", "L", [(f(1),), (f(2),)])
def global_written(x):
    global COUNT
    before = COUNT
    COUNT = 5
    after = COUNT
    COUNT = 0
    return x, before, after


@case("8.23", "S", [(f(1),), (f(2),)])
def local_shadows_a_global(x):
    COUNT = 7
    COUNT += 1
    return x * COUNT


@case.factory("15.5", "S", [(f(1),), (f(2),)])
def nonlocal_of_an_inner_function():
    def outer(x):
        total = 0
        calls = 0

        def add(v):
            nonlocal total, calls
            total = total + v
            calls += 1
            return total

        add(x)
        add(x * 2)
        return total, calls

    return outer


@case.factory("15.5", "L", [(f(1),), (f(2),)])
def nonlocal_of_the_surroundings():
    calls = 0

    def count(x):
        nonlocal calls
        calls = calls + 1
        return x * 2

    def seen():
        return calls

    class View:
        @property
        def __dict__(self):
            return {"calls": seen()}

    return count, [View()]


@case("15.5", "S", [(f(1),), (f(-1),)])
def nonlocal_under_condition(x):
    y = x

    def push(v):
        nonlocal y
        if v > 0:
            y = y + v

    push(x)
    push(-x)
    return y


@case("15.2", "S", [([[1, 2], [3]], f(1)), ([[4], [5, 6]], f(2))])
def nested_comprehensions(l, x):
    flat = [v * x for row in l for v in row if v != 2]
    table = [[a * c for a in range(2)] for c in range(3)]
    d = {(a, c): a + c for a in range(2) for c in range(2) if a != c}
    return flat, table, len(d), sum(a * c for a in (1, 2) for c in (3, 4))


@case("15.3", "L", [(f(1, 2, 3), 3), (f(1, 2, 3), 9)])
def walrus(x, n):
    if (k := len(x.shape)) == 1 and (m := n) > 4:
        return x * m
    l = [y for v in range(4) if (y := v * 2) > 2]
    return x * k, l, y


@case("15.3", "L", [(f(1),), (f(-1),)])
def walrus_of_tensor(x):
    if (y := x * 2) > 0:
        return y + 1
    return y - 1


@case("15.4", "L", [(f(1),), (f(2),)])
def del_of_a_local(x):
    tmp = x * 2
    y = tmp + 1
    del tmp
    d = {"a": 1, "b": x}
    del d["a"]
    return y, len(d)


@case("15.4", "L", [(f(1),)], raises=UnboundLocalError)
def del_then_use(x):
    tmp = x * 2
    del tmp
    return tmp


@case("15.6", "L", [(f(1), 2), (f(1), 5)])
def sets_of_constants(x, n):
    allowed = {1, 2, 3}
    if n in allowed:
        x = x + len(allowed)
    return x, len({n % 2 for n in range(5)}), allowed | {9}


@case("15.9", "L", [(f(1),), (f(2),)])
def import_inside(x):
    import math
    from duograph import ops as operations

    return operations.exp(x) * math.floor(2.7)


@case.factory("15.11", "S", [(f(1),), (f(2),)])
def inline_lambda():
    return lambda x: x * 2 + 1


@case.factory("15.11", "S", [(f(1),), (f(-2),)])
def one_of_two_lambdas_on_a_line():
    pair = (lambda x: x * 2, lambda x: x * 3 if x > 0 else x - 1)
    return pair[1]


@case.factory("15.11", "S", [(f(1),), (f(-2),)])
def source_from_exec():
    import linecache

    source = "def typed(x):\n    if x > 0:\n        return x * 2\n    return x - 1\n"
    linecache.cache["<console 1>"] = (len(source), None, source.splitlines(True), "<console 1>")
    names = {}
    exec(compile(source, "<console 1>", "exec"), names)
    return names["typed"]


@case.factory("15.11", "L", [(f(1),), (f(-2),)], line_by_line=True)
def source_unknown():
    names = {}
    exec("def typed(x):\n    return x * 2 if x > 0 else x - 1\n", names)
    return names["typed"]


@case.factory("15.11", "S", [(f(1), 2), (f(3), 2)])
def callable_object():
    class Scale:
        def __init__(self):
            self.k = 3

        def apply(self, x, n):
            return x * self.k + n

    return Scale().apply
