# ruff: noqa
"""Programs about Python's built-in functions (section 9)."""

import functools

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import Plain, b, case, f, i


@case("9.1", "S", [("12", f(3.7)), ("77", f(-3.7))])
def int_of_everything(s, x):
    return int(s), int(s, 8), int(2.9), int(-2.9), int(True), int(x), int("-0x1f", 16), int()


@case("9.1", "S", [("12",), ("1x",)], raises=(None, ValueError))
def int_of_a_wrong_string(s):
    return int(s)


@case("9.2", "S", [("1.5", f(2)), ("-3e2", f(0.1))])
def float_of_everything(s, x):
    return float(s), float(3), float(True), float(x), float("inf"), float()


@case("9.3", "S", [(f(0), []), (f(2), [0])])
def bool_of_everything(x, l):
    return (
        bool(x),
        bool(l),
        bool(()),
        bool({"a": 1}),
        bool(""),
        bool(0.0),
        bool(-1),
        bool(None),
        bool(),
    )


@case("9.4", "S", [(3, [1, "a"]), (2.50, (1,))])
def str_of_constants(n, seq):
    return str(n), str(seq), str(True), str({"a": n}), str(None), "n" + str(len(seq))


@case("9.4", "L", [(f(1, 2),), (f(3, 4),)])
def str_of_tensor(x):
    return str(x.shape), str(x.dtype), len(str(x)) > 0


@case("9.5", "S", [(f(1, 2), {"a": 1, "b": 2}), (f(3, 4), {"c": 1})])
def tuple_and_list(x, d):
    return (
        tuple([x, 1]),
        list((x, 2)),
        list(x),
        tuple(x),
        list(d),
        tuple("ab"),
        list(range(3)),
        list(),
        tuple(),
    )


@case("9.5", "S", [([f(1), f(2)],), ([f(3), f(4)],)])
def list_copies(l):
    m = list(l)
    m.append(l[0])
    return len(l), m, m is l


@case("9.6", "S", [(f(1),), (f(2),)])
def dict_calls(x):
    d = dict([("a", x)], k=2)
    e = dict(d)
    e["a"] = 3
    return d["a"] * d["k"], e["a"]


@case.factory("9.7", "S", [(f(1),), (f(2),)])
def getattr_forms():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = 3
            self.relu = nn.ReLU()

        def construct(self, x):
            act = getattr(self, "relu")
            name = "scale"
            return (
                act(x) * getattr(self, name) + getattr(self, "shift", 7),
                getattr(x, "shape"),
                getattr(x, "sum")(),
            )

    return Net()


@case("9.7", "S", [(f(1),)], raises=AttributeError)
def getattr_of_nothing(x):
    return getattr(x, "no_such_method")(x)


@case("9.8", "S", [(f(1),), (f(2),)])
def hasattr_decides(x):
    if hasattr(x, "shape") and not hasattr(x, "no_such_thing"):
        return x * 2
    return x


@case("9.9", "S", [(f([[1, 2], [3, 4], [5, 6]]), [1, 2], "abc"), (f([[1], [2]]), [], "")])
def len_of_everything(x, l, s):
    return len(x), len(l), len(s), len((1,)), len({"a": 1}), len(range(5)), x * len(x[0])


@case(
    "9.10",
    "S",
    [(f(1), 1), (f(1), 1.5), (f(1), "s"), (f(1), (1,)), (f(1), f(2)), (f(1), True), (f(1), None)],
)
def isinstance_of_everything(x, v):
    if isinstance(v, bool):
        return 1
    if isinstance(v, (int, float)):
        return x * v
    if isinstance(v, (str, list)):
        return v
    if isinstance(v, Tensor):
        return x + v
    return (
        isinstance(v, tuple),
        isinstance(v, dict),
        isinstance(x, Parameter),
        isinstance(x, (Tensor, int)),
    )


@case("9.11", "S", [([1, 0], b(True, True)), ([], b(True, False)), ([2], b(False, False))])
def all_and_any(l, flags):
    return all(l), any(l), all(flags), any(flags), all(()), any({"a": 1})


@case("9.11", "S", [([f(1), f(2)],), ([f(1), f(-2)],)])
def all_of_tensor_conditions(l):
    if all([v > 0 for v in l]):
        return l[0] + l[1]
    return l[0] - l[1]


@case("9.12", "S", [(2.567, 3), (-2.5, 1)])
def round_numbers(v, n):
    return round(v), round(v, n), round(7), round(2.5), round(3.5), round(1234, -2)


@case("9.12", "S", [(f(2.567, -1.5),), (f(0.5, 3.4),)], want=[(f(3, -2),), (f(0, 3),)])
def round_a_tensor(x):
    return (round(x),)


@case("9.13", "S", [([3, 1, 2], f(4), f(2)), ([5], f(-4), f(2))])
def max_and_min(l, x, y):
    return (
        max(l),
        min(l),
        max(3, 1.5),
        min("b", "a"),
        max((1, 2), (1, 3)),
        max({"a": 2, "c": 1}),
        max(x, y),
        min(x, y),
    )


@case("9.13", "S", [(f(3, 1, 2),), (f(-3, -1, -2),)])
def max_of_tensor_elements(x):
    return max(x), min(x), max([v * 2 for v in x]), max(x[0], x[1] * 2)


@case("9.13", "S", [(["bb", "a", "ccc"],)])
def max_with_key_and_default(l):
    return max(l, key=len), min(l, key=lambda s: len(s)), max([], default=3)


@case("9.14", "S", [([1, 2.5], f(1, 2, 3)), ([], f(4, 5, 6))])
def sums(l, x):
    return sum(l), sum(x), sum(x, 10), sum([x, x * 2]), sum((1, 2), 3), sum([[1], [2]], [])


@case("9.14", "S", [(f([[1, 2], [3, 4]]),), (f([[5, 6], [7, 8]]),)])
def sum_of_rows(x):
    return sum(x)


@case("9.15", "S", [(f(-1, 2), -3), (f(3, -4), 2.5)])
def absolute_values(x, v):
    return abs(x), abs(v), abs(True)


@case("9.16", "S", [((f(1), f(2)), (f(3), f(4))), ((f(5), f(6)), (f(7), f(8)))])
def map_used_inside(a, c):
    first, second = map(lambda p, q: p * q, a, c)
    total = 0
    for v in map(lambda p: p + 1, a):
        total = total + v
    return first - second, total, list(map(str, [1, 2])), tuple(map(ops.square, c))


@case(
    "9.16",
    "S",
    [((f(1), f(2)),), ((f(3), f(4)),)],
    compiled=(
        lambda got: tuple(got),
        "an iterator cannot leave a graph: a map over a tuple becomes a tuple",
    ),
)
def map_over_tuple_returned(t):
    return map(lambda v: v * 2, t)


@case(
    "9.16",
    "S",
    [([f(1), f(2)],), ([f(3), f(4)],)],
    compiled=(
        lambda got: list(got),
        "an iterator cannot leave a graph: a map over a list becomes a list",
    ),
)
def map_over_list_returned(l):
    return map(lambda v: v * 2, l)


@case("9.17", "S", [([1, 2, 3, 4], f(1)), ([5, 6], f(2))])
def filter_used_inside(l, x):
    for n in filter(lambda v: v % 2 == 0, l):
        x = x * n
    return x, list(filter(None, [0, 1, "", "a"]))


@case(
    "9.17",
    "S",
    [([1, 2, 3],), ([4],)],
    compiled=(lambda got: list(got), "an iterator cannot leave a graph: a filter becomes a list"),
)
def filter_returned(l):
    return filter(lambda v: v > 1, l)


@case("9.18", "S", [([f(1), f(2)], (3, 4, 5)), ([f(6), f(7)], (8, 9))])
def zip_used_inside(l, t):
    pairs = list(zip(l, t))
    total = 0
    for v, n in zip(l, t):
        total = total + v * n
    left, right = zip(*pairs)
    return total, left, right, dict(zip("ab", t))["b"]


@case(
    "9.18",
    "S",
    [([f(1), f(2)], (3, 4, 5)), ([f(6), f(7)], (8, 9))],
    compiled=(
        lambda got: tuple(got),
        "an iterator cannot leave a graph: a zip becomes a tuple of tuples",
    ),
)
def zip_returned(l, t):
    return zip(l, t)


@case("9.19", "S", [(f(1), 4), (f(1), 2)])
def range_used_inside(x, n):
    r = range(1, n)
    return x * len(r), list(r), sum(range(n)), 3 in r, r[0], list(range(5, 0, -2))


@case(
    "9.19",
    "S",
    [(4,), (2,)],
    compiled=(lambda got: tuple(got), "a range leaves a graph as a tuple"),
)
def range_returned(n):
    return range(n)


@case("9.20", "S", [(f([[1, 2], [3, 4]]), ["a", "b"]), (f([[5, 6], [7, 8]]), [])])
def enumerate_used_inside(x, names):
    y = x[0] * 0
    for n, row in enumerate(x):
        y = y + row * n
    return y, [(n, s) for n, s in enumerate(names, start=5)]


@case(
    "9.20",
    "S",
    [((f(1), f(2)),), ((f(3), f(4)),)],
    compiled=(
        lambda got: tuple(got),
        "an iterator cannot leave a graph: an enumerate becomes a tuple of pairs",
    ),
)
def enumerate_returned(t):
    return enumerate(t)


class Base(nn.Cell):
    """Something to inherit from."""

    def __init__(self, k):
        super().__init__()
        self.k = k

    def scale(self, x):
        return x * self.k

    def construct(self, x):
        return self.scale(x) + 1


@case.factory("9.21", "S", [(f(1),), (f(2),)])
def super_calls():
    class Derived(Base):
        def __init__(self):
            super(Derived, self).__init__(5)

        def scale(self, x):
            return super().scale(x) * 10

        def construct(self, x):
            return super(Derived, self).construct(x) - super().construct(x * 2)

    return Derived()


@case("9.22", "S", [(f(2), 3), (f(3), 2)])
def powers(x, n):
    return pow(x, n), pow(n, 2), pow(2, x), pow(2, -1), pow(3, 4, 5)


@case("9.23", "S", [(f(1, 2), 3), (f(4, 5), 3)], prints=True)
def prints_in_order(x, n):
    print("start", n, x.shape)
    y = x * n
    print("y is", y)
    print(y.sum(), "and", n + 1)
    print()
    return y


@case("9.23", "S", [(f(1),), (f(-1),)], prints=True)
def prints_in_branches_and_loops(x):
    if x > 0:
        print("positive", x)
    else:
        print("negative")
    while x < 3:
        print("step", x)
        x = x + 1
    for n in range(2):
        print(n)
    return x


@case("9.23", "L", [(f(1),), (f(2),)], prints=True)
def prints_with_separator(x):
    print("a", "b", sep="-", end=" | ")
    print(f"n={x.ndim}", [1, "two"], {"k": 1})
    return x


@case("9.23", "S", [(f(1, 2),), (f(4, 5),)], prints=True)
def print_operator(x):
    ops.Print()("sum:", x.sum())
    return x + 1


@case("9.24", "S", [(f(1), 2), (f(1), "a"), (f(1), [1])])
def types_compared(x, v):
    if type(v) is int:
        return x * v
    return type(v) == str, type(x) is Tensor, type((1,)) in (tuple, list)


@case("9.25", "S", [(f(1),), (f(2),)])
def partial_of_ops(x):
    total = functools.partial(ops.sum, dim=0)
    return total(ops.stack([x, x])), functools.partial(max, 3)(2)


@case("9.26", "L", [([3, 1, 2], f(1)), ([9, 8], f(2))])
def other_builtins_on_constants(l, x):
    it = iter(l)
    first = next(it)
    parts = [
        sorted(l),
        list(reversed(l)),
        divmod(7, 2),
        chr(65),
        ord("a"),
        bin(5),
        hex(255),
        repr("a"),
    ]
    return (
        x * first,
        parts,
        callable(len),
        next(it),
        slice(0, 2),
        l[slice(0, 1)],
        set(l) == {1, 2, 3},
    )


@case("9.26", "L", [(f(1),), (f(2),)])
def other_builtins_on_objects(x):
    class_of = type(x).__name__
    return (
        class_of,
        issubclass(bool, int),
        frozenset([1]),
        complex(1, 2),
        hash("a") == hash("a"),
        format(3.14159, ".2f"),
        vars is not None,
    )


@case("9.26", "L", [([2, 1], f(1)), ([5, 4], f(2))])
def iterators_by_hand(l, x):
    it = iter(l)
    total = x
    while True:
        try:
            v = next(it)
        except StopIteration:
            break
        total = total * v
    return total, next(iter([]), "none")
