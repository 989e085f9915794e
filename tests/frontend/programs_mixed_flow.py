# ruff: noqa
"""Programs that combine loops, branches, functions and errors."""

import functools

import duograph as ms
from duograph import Tensor, nn, ops

from frontend.corpus import b, case, f, i


@case("8.12", "S", [(f(1, -2, 3),), (f(-1, 2, -3),), (f(9, 9, 9),)], grad=0)
def continue_break_return_in_one_loop(x):
    total = x.sum() * 0
    for n, v in enumerate(x):
        if v < -2:
            break
        if v < 0:
            continue
        if v > 8:
            return total + v * 100
        total = total + v * (n + 1)
    else:
        total = total * 2
    return total


@case("8.12", "S", [(f(5), f(2)), (f(50), f(3)), (f(1), f(1))])
def return_inside_branch_inside_while_inside_branch(x, y):
    if y > 1:
        n = 0
        while x > 1:
            if x > 40:
                return x * 1000, n
            x = x - y
            n = n + 1
        z = x
    else:
        z = y * 7
        n = -1
    return z, n


@case(
    "8.12",
    "S",
    [(f([[1, 2], [3, 4]]), f(5)), (f([[1, 9], [3, 4]]), f(5)), (f([[1, 2], [30, 4]]), f(100))],
)
def nested_for_with_tensor_break_and_else(m, limit):
    found = limit * 0
    for r, row in enumerate(m):
        for c, v in enumerate(row):
            if v > limit:
                found = v * 10 + r * 2 + c
                break
            found = found + v
        else:
            found = found + 1000
            continue
        break
    return found


@case("8.11", "S", [(f(3),), (f(0),)])
def while_else_with_return_and_continue(x):
    total = x * 0
    n = 0
    while n < 6:
        n = n + 1
        if n % 2 == 0:
            continue
        total = total + x * n
        if total > 20:
            return total, n
    else:
        total = total - 1
    return total, n


@case("8.11", "S", [(f(1, 2, 3), f(10)), (f(4, 5, 6), f(100))])
def while_with_changing_condition_variables(x, limit):
    a, c = x[0], x[1]
    history = [a, c]
    while a < limit and not c > limit:
        a, c = c, a + c
        history = [history[1], a]
    return a, c, history


@case("8.16", "S", [(f(1), 3), (f(-1), 2)])
def closures_over_loop_and_branch_variables(x, n):
    fns = []
    for k in range(n):
        if x > 0:
            shift = x * k
        else:
            shift = x - k

        def add(v, shift=shift):
            return v + shift

        fns.append(add)
    total = x * 0
    for g in fns:
        total = g(total) * 2
    return total


@case("8.16", "S", [(f(1),), (f(-1),)])
def function_with_nonlocal_called_in_branches(x):
    calls, total = 0, x * 0

    def count(v):
        nonlocal calls, total
        calls += 1
        total = total + v
        return total * calls

    if x > 0:
        y = count(x) + count(x)
    else:
        y = count(x * 5) + count(x)
    z = count(x)
    return y, z, calls, total


@case("8.16", "S", [(f(1, 2, 3),), (f(4, 5, 6),)])
def higher_order_functions(x):
    def compose(*gs):
        def run(v):
            for g in gs:
                v = g(v)
            return v

        return run

    def repeat(g, n):
        return compose(*[g] * n)

    square_then_add = compose(
        lambda v: v * v, functools.partial(ops.add, other=1), repeat(lambda v: v * 2, 3)
    )
    return functools.reduce(lambda a, c: a * c, [v for v in x]), square_then_add(x)


@case("8.16", "S", [(f(3), f(4)), (f(4), f(3)), (f(0), f(2))])
def recursive_tree_sum(x, y):
    tree = {
        "v": x,
        "children": [{"v": y, "children": []}, {"v": 2, "children": [{"v": x, "children": []}]}],
    }

    def total(node):
        s = node["v"]
        for child in node["children"]:
            s = s + total(child)
        return s

    def flatten(item):
        if isinstance(item, (list, tuple)):
            return [w for v in item for w in flatten(v)]
        return [item]

    return total(tree), flatten([x, (y, [3, (x,)])])


@case("8.16", "S", [(i(6), i(4)), (i(3), i(9))])
def recursive_gcd_and_power(a, c):
    def gcd(p, q):
        if q == 0:
            return p
        return gcd(q, p % q)

    def power(base, n):
        if n == 0:
            return n * 0 + 1
        if n % 2 == 1:
            return base * power(base, n - 1)
        half = power(base, n // 2)
        return half * half

    return gcd(a, c), power(a, c)


@case("8.16", "S", [(f(2),), (f(-2),)], grad=0)
def recursion_with_two_bases_in_a_loop(x):
    def shrink(v):
        if v > 1:
            return shrink(v / 2)
        if v < -1:
            return shrink(v / 3)
        return v * v

    total = x * 0
    for k in range(3):
        total = total + shrink(x * (k + 1))
    return total


@case("8.13", "S", [(f(1), f(2)), (f(3), f(4))])
def arguments_of_every_kind(x, y):
    def g(a, c=2, *args, k, m=5, **kw):
        return (a, c, args, k, m, sorted(kw.items()))

    packed = {"k": x, "z": 1}
    return (
        g(x, k=y),
        g(x, y, 3, 4, k=1, m=x, w=2),
        g(*(x, y, 7), **packed),
        g(x, *[1], k=y, **{"q": x}),
    )


@case("8.13", "S", [(f(1),)], raises=TypeError)
def keyword_given_twice(x):
    def g(a, k):
        return a + k

    return g(x, 1, k=2)


@case("8.13", "S", [(f(1), f(2)), (f(3), f(4))])
def mutable_default_is_shared(x, y):
    def g(v, seen=[]):
        seen.append(v)
        return len(seen), seen[0]

    return g(x), g(y), g(x + y)


@case("8.18", "S", [(f(1, 2, 3),), (f(-1, 2, -3),)])
def comprehension_of_branches(x):
    def sign(v):
        if v > 0:
            return 1
        return -1

    return (
        [sign(v) * v for v in x],
        {k: v for k, v in zip("abc", x)}["b"],
        [[a * c for a in x] for c in (sign(x[0]), 2)],
    )


@case("8.6", "S", [(f(1), f(2)), (f(2), f(1)), (f(-1), f(-1))])
def deep_elif_chain_with_partial_assignments(x, y):
    kind, z = 0, y
    if x > y:
        z = x - y
        kind = 1
    elif x + y > 2:
        z = x + y
    elif x < 0:
        if y < 0:
            kind = 3
        z = x * y
    for _ in range(2):
        if kind == 1:
            z = z * 2
        else:
            z = z + 1
    return z, kind


@case("8.6", "S", [(f(1),), (f(-1),)])
def condition_result_used_as_number(x):
    flag = x > 0
    truth = bool(flag)
    n = int(flag) + truth
    k = 3 if truth else 4
    return x * n + k, flag, truth, not truth, truth == True


@case("8.6", "S", [(f(3),), (f(0),), (f(-2),)])
def number_from_tensor_in_python_arithmetic(x):
    n = int(x)
    r = float(x) / 4
    m = n * 2 - 1
    if m > 3:
        out = x * m
    elif r >= 0:
        out = x + r
    else:
        out = x - n**2
    return out, m % 5, n // 2, max(n, 1), abs(r), min(m, n), round(r, 1)


@case("8.6", "S", [(f(1, 2), b(True)), (f(1, 2), b(False))])
def none_or_tensor_by_constant_and_structure_by_tensor(x, flag):
    mask = None
    out = {"x": x, "mask": mask, "n": [1, (2, x)]}
    if flag:
        out = {"x": x * 2, "mask": mask, "n": [3, (4, x + 1)]}
    if out["mask"] is None:
        return out["x"] + out["n"][1][1], out["n"][0]
    return x, 0


@case("8.11", "S", [(f(1, 2, 3, 4, 5), f(3)), (f(5, 7, 9, 11, 13), f(7)), (f(0, 2, 4, 6, 8), f(5))])
def binary_search(x, wanted):
    low, high = 0, 4
    while low < high:
        middle = (low + high) // 2
        if x[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low, x[low] == wanted


@case(
    "8.1",
    "S",
    [(f(1), 1), (f(-1), 1), (f(5), 1), (f(1), 9)],
    raises=(None, ValueError, OverflowError, KeyError),
)
def errors_of_many_kinds(x, n):
    table = {1: "a"}
    key = table[n]
    for k in range(3):
        if x > 4:
            raise OverflowError(f"turn {k} of {key}")
        x = x * 1.5
    assert key == "a"
    if x < 0:
        raise ValueError("negative", n)
    return x


@case("8.1", "L", [(f(1),), (f(-1),)], raises=(None, ValueError), line_by_line=True)
def error_in_a_with_block_and_finally(x):
    done = []

    class Scope:
        def __enter__(self):
            done.append("in")
            return self

        def __exit__(self, *args):
            done.append("out")

    y = x
    try:
        if x < 0:
            raise ValueError("no")
        y = x + 1
    finally:
        y = y * 2
    return y, done


@case("8.18", "S", [(f(3, 1, 2),), (f(1, 2, 3),)])
def sorting_and_reducing_with_functions(x):
    pairs = [(2, x[0]), (1, x[1]), (3, x[2])]
    by_number = sorted(pairs, key=lambda p: -p[0])
    total = functools.reduce(lambda a, p: a * p[0] + p[1], pairs, x.sum())
    last = max(pairs, key=lambda p: p[0])
    return [p[1] for p in by_number], total, last[1], list(filter(lambda p: p[0] > 1, pairs))[0][1]


@case("8.12", "S", [(f(1, 2, 3),), (f(-5, 2, 3),)])
def loop_flags_become_known_and_unknown(x):
    total = x.sum()
    for n in range(5):
        if n == 1:
            continue
        if n == 3:
            break
        if total < -100:
            return total, 0
        if x[n % 3] < 0:
            break
        total = total + n
    while True:
        if total > 30:
            break
        total = total + 10
        if total < 0:
            return total * 2, 1
    return total, 2


@case("8.6", "S", [(f(1), f(2)), (f(-1), f(2)), (f(1), f(-2))])
def early_returns_of_dicts_and_lists(x, y):
    out = {"a": x, "l": [y]}
    if x < 0:
        out["a"] = -x
        return out["a"], out["l"]
    for k in range(2):
        out["l"][0] = out["l"][0] + x
        if y < 0:
            return out["l"][0] * k, out["l"]
    return out["a"], out["l"]


@case("8.16", "S", [(f(1),), (f(-1),)])
def closures_that_a_branch_makes(x):
    if x > 0:
        k = x * 2

        def g(v):
            return v * k

    else:
        k = x * 3

        def g(v):
            return v - k

    return g(x) + k


@case("8.16", "S", [(f(3),), (f(-3),)])
def functions_in_containers_picked_by_tensors(x):
    table = {"up": lambda v: v + 1, "down": lambda v: v - 1}
    name = "up"
    steps = [table["up"], table["down"]]
    n = 0
    if x < 0:
        n = 1
    return steps[n](x), table[name](x)


@case("8.11", "S", [(f(1), f(5)), (f(2), f(0))])
def while_over_functions_of_state(x, n):
    def keep_going(state):
        k, _ = state
        return k < n

    def step(state):
        k, v = state
        return k + 1, v * x + k

    state = (n * 0, x)
    while keep_going(state):
        state = step(state)
    return state


@case("8.9", "S", [(f(1, 2, 3), f(4, 5, 6)), (f(0, 0, 1), f(1, 1, 0))])
def loops_over_many_iterables(x, y):
    total = x[0] * 0
    for n, (a, c) in enumerate(zip(x, y)):
        for k, w in {"p": 1, "q": n}.items():
            total = total + a * c * w + len(k)
    for v, *rest in [(x[0], 1, 2), (y[0], 3)]:
        total = total * 2 + v + sum(rest)
    for r in range(len(x) - 1, -1, -1):
        total = total + x[r]
    for t in map(lambda p, q: p - q, x, y):
        total = total + t
    for a in filter(None, [0, 1, None, 2]):
        total = total + a
    return total


@case("8.9", "S", [(f(1, 2, 3),), (f(3, 2, 1),)])
def list_grows_while_iterated(x):
    l = [x[0]]
    for v in l:
        if len(l) < 4:
            l.append(v + x[len(l) - 1])
    return l


@case("8.9", "S", [({"a": f(1), "b": f(2)},)], raises=RuntimeError)
def dict_changed_while_iterated(d):
    grown = dict(d)
    for k in grown:
        grown[k + k] = grown[k]
    return grown


@case.factory("6.7", "L", [(f(1),), (f(-1),), (f(2),)])
def object_state_in_loops():
    class Meter:
        def __init__(self):
            self.total = Tensor(0.0, ms.float32)
            self.count = 0
            self.names = []

        def update(self, v, name):
            self.total = self.total + v
            self.count += 1
            if name not in self.names:
                self.names.append(name)

    meter = Meter()

    def run(x):
        for k in range(2):
            meter.update(x * k, f"n{k}")
        return meter.total / meter.count

    return run, meter


@case.factory("6.7", "L", [(f(3),), (f(1),)])
def attribute_set_in_a_tensor_loop():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.steps = Tensor(0.0, ms.float32)

        def construct(self, x):
            while x > 0:
                self.steps = self.steps + 1
                x = x - 1
            return self.steps * 2

    return Net()


@case("8.12", "S", [(f(4), f(1, 2, 3)), (f(0), f(4, 5, 6))])
def early_exit_from_a_helper_loop(n, x):
    def first_above(limit):
        k = 0
        for v in x:
            if v > limit:
                return k, v
            k += 1
        return k, limit

    total = n * 0
    while n > 0:
        k, v = first_above(n - 2)
        total = total + v * k
        n = n - 1
    return total


@case(
    "8.1", "S", [(f(1, 2), 1), (f(-1, 2), 1), (f(1, 2), 5)], raises=(None, ValueError, IndexError)
)
def errors_from_helpers_in_loops(x, n):
    def check(v, where):
        if v < 0:
            raise ValueError(where)
        return v

    total = [x[0], x[1]][n]
    for k, v in enumerate(x):
        total = total + check(v, "item %d" % k)
    return total
