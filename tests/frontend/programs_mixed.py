# ruff: noqa
"""Programs in which several constructs meet: what users write when a network grows."""

import collections
import enum
import functools
import itertools
import math

import duograph as ms
import numpy as np
from duograph import Parameter, ParameterTuple, Tensor, nn, ops

from frontend.corpus import Plain, b, case, f, i


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


@case("8.12", "S", [(f([[1, 2], [3, 4]]), f(5)), (f([[1, 9], [3, 4]]), f(5)), (f([[1, 2], [30, 4]]), f(100))])
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

    square_then_add = compose(lambda v: v * v, functools.partial(ops.add, other=1), repeat(lambda v: v * 2, 3))
    return functools.reduce(lambda a, c: a * c, [v for v in x]), square_then_add(x)


@case("8.16", "S", [(f(3), f(4)), (f(4), f(3)), (f(0), f(2))])
def recursive_tree_sum(x, y):
    tree = {"v": x, "children": [{"v": y, "children": []}, {"v": 2, "children": [{"v": x, "children": []}]}]}

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
    return g(x, k=y), g(x, y, 3, 4, k=1, m=x, w=2), g(*(x, y, 7), **packed), g(x, *[1], k=y, **{"q": x})


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


@case("3.6", "S", [(f(1),), (f(-1),)])
def nested_containers_changed_under_conditions(x):
    state = {"a": [x, {"n": x * 2}], "t": (x, [x])}
    if x > 0:
        state["a"][1]["n"] = x * 10
        state["t"][1][0] = x + 5
    else:
        state["a"][0] = x * 100
    state["a"][1]["m"] = state["a"][0]
    return state["a"][1]["n"] + state["t"][1][0], state["a"], state["t"]


@case("3.6", "S", [(f(1, 2, 3),), (f(3, 1, 2),)])
def bubble_sort_of_tensors(x):
    l = [v for v in x]
    for a in range(len(l)):
        for c in range(len(l) - 1 - a):
            if l[c] > l[c + 1]:
                l[c], l[c + 1] = l[c + 1], l[c]
    return l


@case("3.6", "S", [(f(1, 2, 3, 4),), (f(4, 3, 2, 1),)])
def two_lists_are_one(x):
    l = [x[0], x[1]]
    m = l
    table = {"l": l}
    if x[0] > 2:
        m[0] = x[2]
    table["l"].append(x[3])
    return l, m is l, table["l"] is m


@case("3.7", "S", [(f(3),), (f(1),)])
def accumulate_in_a_dict_of_lists(x):
    groups = {}
    for n in range(6):
        key = "even" if n % 2 == 0 else "odd"
        if key not in groups:
            groups[key] = []
        groups[key].append(x * n)
    return [sum(groups[k]) for k in sorted(groups)], len(groups)


@case("3.7", "L", [(f(3),), (f(1),)])
def collections_inside(x):
    groups = collections.defaultdict(list)
    for n in range(4):
        groups[n % 2].append(x + n)
    counts = collections.Counter("abca")
    queue = collections.deque([x, x * 2])
    queue.append(x * 3)
    first = queue.popleft()
    ordered = collections.OrderedDict(a=x, b=2)
    return sum(groups[0]), sum(groups[1]), counts["a"], first, len(queue), ordered["a"]


@case("13.1", "L", [(f(3),), (f(1),)])
def itertools_inside(x):
    total = x
    for a, c in itertools.product(range(2), [3, 4]):
        total = total * a + c
    pairs = list(itertools.combinations([1, 2, 3], 2))
    for v in itertools.chain([x], (x * 2,)):
        total = total + v
    return total, pairs, list(itertools.accumulate([1, 2, 3])), list(itertools.zip_longest([1], [2, 3]))


class Color(enum.Enum):
    """A user's enumeration."""

    RED = 1
    BLUE = 2


@case("13.3", "L", [(f(3), Color.RED), (f(3), Color.BLUE)])
def enum_decides(x, color):
    if color is Color.RED:
        return x * color.value, color.name
    return x - 1, Color(2) == color


@case("7.9", "S", [(f(1, 2), f(3, 4)), (f(5, 6), f(7, 8))])
def targets_of_every_kind(x, y):
    l, d = [0, 0, 0], {}
    l[0], d["k"], (a, *c) = x, y, (1, 2, 3)
    for l[1], d["n"] in [(x, 1), (y, 2)]:
        pass
    (l[2]) = p = q = x + y
    [u, v], w = (x[0], x[1]), y
    return l, d["k"], d["n"], a, c, p is q, u, v, w


@case("7.10", "S", [(f(1, 2),), (f(3, 4),)])
def augmented_assignment_of_items(x):
    l, d = [x, 1], {"k": x}
    l[0] += x
    l[1] *= 5
    d["k"] -= l[0] * 2
    y = x * 1
    y[0] += 10
    y[1:] *= 3
    return l, d["k"], y


@case("2.5", "S", [(f(1, 2), 3), (f(3, 4), 4)])
def text_decides(x, n):
    names = ["w%d" % k for k in range(n)]
    table = {name: x * k for k, name in enumerate(names)}
    longest = max(names, key=len)
    out = table[longest] + table["w{}".format(n - 1)]
    if longest.endswith("0") and ",".join(names).count("w") == n:
        out = out + 100
    return out


@case("9.13", "S", [(f(1, 5), f(3, 4)), (f(9, 5), f(3, 4))])
def reductions_of_python(x, y):
    pairs = [(v, w) for v, w in zip(x, y)]
    best = max(v + w for v, w in pairs)
    return best, min([v * w for v, w in pairs]), sum(v for v, _ in pairs), any(v > w for v, w in pairs), all(
        [v < 6 for v in x]
    )


@case("8.18", "S", [(f(1, 2, 3),), (f(-1, 2, -3),)])
def comprehension_of_branches(x):
    def sign(v):
        if v > 0:
            return 1
        return -1

    return [sign(v) * v for v in x], {k: v for k, v in zip("abc", x)}["b"], [
        [a * c for a in x] for c in (sign(x[0]), 2)
    ]


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


@case("11.3", "S", [(f([[1, 2], [3, 4]]), i(1)), (f([[5, 6], [7, 8]]), i(0))], grad=0)
def indexing_read_and_write_mix(x, n):
    y = x * 1
    y[n] = x[1 - n] * 2
    z = y[:, n]
    y[0, 1] = z[0] + y[n, n]
    w = y.T
    w[1] += 100
    return y + w, z


@case("11.3", "S", [(f(1, 2, 3, 4, 5),), (f(5, 4, 3, 2, 1),)])
def insertion_sort_in_place(x):
    for a in range(1, 5):
        key = x[a] + 0
        c = a - 1
        while c >= 0 and x[c] > key:
            x[c + 1] = x[c]
            c = c - 1
        x[c + 1] = key
    return x


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


class Linear(nn.Cell):
    """A small layer with options that decide while compiling."""

    def __init__(self, n, m, bias=True, act=None, name="lin"):
        super().__init__()
        rng = np.random.default_rng(n * 10 + m)
        self.weight = Parameter(Tensor(rng.normal(size=(n, m)).astype(np.float32)), name=name + ".weight")
        self.bias = Parameter(Tensor(np.zeros(m, np.float32)), name=name + ".bias") if bias else None
        self.act = act

    def construct(self, x):
        y = ops.matmul(x, self.weight)
        if self.bias is not None:
            y = y + self.bias
        if self.act is not None:
            y = self.act(y)
        return y


@case.factory("6.9", "S", [(f([[1, 2]]), True), (f([[-1, 2]]), False)])
def network_of_optional_parts():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = Linear(2, 3, act=ops.relu, name="a")
            self.rest = nn.CellList([Linear(3, 3, bias=False, name="b"), Linear(3, 2, act=nn.Tanh(), name="c")])
            self.heads = nn.CellDict({"x": Linear(2, 1, name="x"), "y": Linear(2, 1, name="y")})
            self.skip = True

        def features(self, x):
            y = self.first(x)
            for layer in self.rest:
                z = layer(y)
                y = z + y if self.skip and z.shape == y.shape else z
            return y

        def construct(self, x, both):
            y = self.features(x)
            if not both:
                return self.heads["x"](y)
            return tuple(head(y) for head in self.heads.values())

    return Net()


@case.factory("6.9", "S", [(f([[1, 2]]),), (f([[-1, 2]]),)], grad=0)
def inherited_cells():
    class Base(nn.Cell):
        scale = 2

        def __init__(self, width):
            super().__init__()
            self.lin = Linear(2, width)

        def pre(self, x):
            return x * self.scale

        def construct(self, x, *, twice=False):
            y = self.lin(self.pre(x))
            return y * 2 if twice else y

    class Child(Base):
        scale = 3

        def __init__(self):
            super().__init__(2)
            self.extra = Linear(2, 2, name="extra")

        def pre(self, x):
            return super().pre(x) + 1

        def construct(self, x):
            return self.extra(super().construct(x, twice=True)).sum()

    return Child()


@case.factory("6.6", "S", [(f(1, 2),), (f(3, 4),), (f(-9, 0),)])
def running_statistics():
    class Norm(nn.Cell):
        def __init__(self):
            super().__init__()
            self.mean = Parameter(Tensor(np.zeros(2, np.float32)), name="mean", requires_grad=False)
            self.steps = Parameter(Tensor(np.array(0, np.int32)), name="steps", requires_grad=False)

        def construct(self, x):
            self.steps += 1
            if x.sum() > 0:
                self.mean = self.mean * 0.9 + x * 0.1
            out = x - self.mean
            if self.steps > 2:
                ops.assign(self.mean, self.mean * 0)
            return out, self.steps + 0

    return Norm()


@case.factory("6.6", "S", [(f(5),), (f(2),)])
def parameters_in_loops_and_helpers():
    w = Parameter(Tensor(np.array(1, np.float32)), name="w")
    log = Parameter(Tensor(np.zeros(4, np.float32)), name="log")

    def bump(by):
        ops.assign_add(w, by)
        return w * 2

    def run(x):
        k = 0
        total = x * 0
        while k < 4:
            total = total + bump(x)
            log[k] = total
            if total > 60:
                break
            k = k + 1
        return total, k

    return run, (w, log)


@case.factory("10.2", "S", [(f(1, 2), f(1)), (f(3, 4), f(-1))])
def gradient_accumulation():
    w = Parameter(Tensor(np.array([1, -1], np.float32)), name="w")
    acc = Parameter(Tensor(np.zeros(2, np.float32)), name="acc", requires_grad=False)
    weights = ParameterTuple([w])

    def loss(x, y):
        out = (x * w).sum()
        if y > 0:
            return (out - y) ** 2
        return out * y

    def step(x, y):
        value, grads = ms.value_and_grad(loss, None, weights)(x, y)
        ops.assign_add(acc, grads[0])
        if value > 1:
            ops.assign_sub(w, acc * 0.1)
            ops.assign(acc, ops.zeros_like(acc))
        return value

    return step, (w, acc)


@case("10.2", "S", [(f(1, 2), 3), (f(3, 4), 2)])
def gradient_descent_unrolled(x, steps):
    def loss(v):
        return ((v - 5) * (v - 5)).sum()

    history = []
    for _ in range(steps):
        value, g = ms.value_and_grad(loss)(x)
        x = x - 0.1 * g
        history.append(value)
    return x, history


@case("10.2", "S", [(f(1),), (f(4),)])
def newton_with_gradients_in_a_tensor_loop(x):
    def g(v):
        return v * v - 2

    n = 0
    while ops.abs(g(x)) > 1e-3 and n < 20:
        x = x - g(x) / ms.grad(g)(x)
        n = n + 1
    return x, n


@case("10.2", "S", [(f(1.5),), (f(-0.5),)])
def gradients_of_gradients_with_branches(x):
    def g(v):
        return v**3 if v > 0 else v**2

    first = ms.grad(g)
    second = ms.grad(lambda v: first(v) * 2)
    return first(x), second(x), ms.grad(second)(x)


@case("10.2", "S", [(f(1, 2), f(3)), (f(4, 5), f(-6))], grad=(0, 1))
def gradient_through_closures_and_containers(x, y):
    params = {"w": [x, y], "scale": 2}

    def layer(v):
        w, c = params["w"]
        return v * w + c * params["scale"]

    def apply_n(v, n):
        return v if n == 0 else apply_n(layer(v), n - 1)

    out = apply_n(x, 3)
    if y > 0:
        params["w"][0] = out
        out = layer(out)
    return out


@case("10.2", "S", [(f(0.5), f(0.1)), (f(2), f(-1))], grad=(0, 1))
def gradient_of_loop_with_break_and_writes(x, y):
    buffer = [x, y]
    total = x * y
    for k in range(5):
        total = total + buffer[k % 2] * total
        buffer[k % 2] = total * 0.5
        if total > 10:
            break
        if total < 0:
            continue
        total = total + 1
    return total + buffer[0] * buffer[1]


@case("10.2", "S", [(f(0.5),), (f(3),)], grad=0)
def gradient_of_while_with_return(x):
    y = x
    n = 0
    while n < 8:
        y = y * y + x
        if y > 20:
            return y * 3
        n = n + 1
    return y


@case("10.2", "S", [(f(2, 3),), (f(-2, 5),)], grad=0)
def gradient_of_nested_loops(x):
    total = x.sum() * 0
    k = 0
    while k < 3:
        j = k
        while j < 3:
            total = total + x[0] * x[1] * j
            j = j + 1
        if total > 50:
            total = total / 2
        k = k + 1
    return total * x[0]


@case("10.2", "S", [(f(1, 2, 3),), (f(-1, 2, -3),)], grad=0)
def gradient_of_chosen_functions(x):
    total = x.sum() * 0
    for v in x:
        act = ops.exp if v > 0 else ops.sin
        total = total + act(v) * (ops.abs if total > 5 else ops.neg)(v)
    return total


@case.factory("14.5", "S", [(f(1),), (f(-2),)])
def jitted_methods():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array(2, np.float32)), name="w")

        @ms.jit
        def scaled(self, x, by=1):
            if x > 0:
                return x * self.w * by
            return x - by

        def construct(self, x):
            return self.scaled(x) + self.scaled(x, by=3)

    return Net()


@case("9.23", "S", [(f(1), 2), (f(-1), 2)], prints=True)
def prints_around_everything(x, n):
    def helper(v):
        print("helper", v)
        if v > 1:
            print("big", v * 2)
        return v + 1

    for k in range(n):
        print("turn", k)
        x = helper(x)
        while x < 1:
            print("small", x)
            x = x + 1
    print("end", x, n)
    return x


@case("8.1", "S", [(f(1), 1), (f(-1), 1), (f(5), 1), (f(1), 9)], raises=(None, ValueError, OverflowError, KeyError))
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


@case("9.10", "S", [(f(1), [f(2), (3, "s")]), (f(1), {"k": f(5)}), (f(1), f(7)), (f(1), "text")])
def dispatch_on_types(x, value):
    def visit(v):
        if isinstance(v, Tensor):
            return v.sum()
        if isinstance(v, (list, tuple)):
            total = 0
            for w in v:
                total = total + visit(w)
            return total
        if isinstance(v, dict):
            return visit(list(v.values()))
        if isinstance(v, (int, float)):
            return v
        return len(v)

    return x * visit(value)


@case("6.2", "S", [(f([[1, 2, 3], [4, 5, 6]]),), (f([[6, 5, 4], [3, 2, 1]]),)])
def shapes_in_arithmetic(x):
    rows, cols = x.shape
    flat = x.reshape(rows * cols)
    half = flat[: rows * cols // 2]
    scale = 1 / math.sqrt(cols)
    blocks = [flat[k * cols : (k + 1) * cols] for k in range(rows)]
    return half * scale, ops.stack(blocks[::-1]), x.mean(axis=-1, keep_dims=True) if cols > 2 else x, x.reshape(-1, 1, rows)


@case("6.2", "S", [(f([[1, 2], [3, 4]]), f([[1, 0], [0, 1]])), (f([[5, 6], [7, 8]]), f([[0, 1], [1, 0]]))], grad=(0, 1))
def attention(q, k):
    scores = ops.matmul(q, k.T) / math.sqrt(q.shape[-1])
    mask = ops.tril(ops.ones(scores.shape, ms.float32))
    scores = ops.masked_fill(scores, mask == 0, -1e9)
    return ops.matmul(ops.softmax(scores, axis=-1), q)


@case("3.6", "L", [(f(1),), (f(-1),)], line_by_line=True)
def which_list_is_changed_depends_on_a_tensor(x):
    inner = [x]
    outer = [inner, inner]
    if x > 0:
        outer[1] = [x * 2]
    inner.append(x * 5)
    return outer


@case("3.6", "S", [(f(1),), (f(-1),)])
def lists_inside_lists_keep_their_identity(x):
    inner = [x]
    outer = [inner, inner, {"l": inner}]
    if x > 0:
        inner[0] = x * 2
        outer[1].append(x)
    else:
        inner.append(x * 3)
    inner.append(x * 5)
    return outer, outer[0] is inner, outer[2]["l"] is inner


@case("3.6", "S", [(f(1),), (f(30),)])
def containers_inside_containers_in_a_loop(x):
    counts = {"n": x * 0}
    state = [x, counts]
    while state[0] < 20:
        state[0] = state[0] * 2
        counts["n"] = counts["n"] + 1
    counts["n"] = counts["n"] * 10
    return state, state[1] is counts


@case("3.6", "S", [(f(1), f(2)), (f(-1), f(2)), (f(1), f(-2))])
def lists_returned_from_nested_branches(x, y):
    l = [x, y]

    def change(m):
        m[0] = m[0] + 1
        m.append(x)
        if y > 0:
            m[2] = m[0] * 2
            return m
        m[1] = x
        return m

    if x > 0:
        l[1] = x * 7
        return change(l)
    else:
        l[0] = y
        return change(l)


@case("3.6", "S", [([f(1), [f(2)]],), ([f(-1), [f(2)]],)])
def nested_list_argument_changed(l):
    inner = l[1]
    if l[0] > 0:
        inner[0] = l[0] * 10
    else:
        l[0] = inner[0] * 100
    inner.append(l[0])
    return inner[0] + l[0]


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)], grad=0)
def gradient_with_containers_changed_outside(x):
    log = []

    def loss(v):
        y = v * v
        log.append(y)
        if y.sum() > 10:
            log[0] = y * 2
        return (log[0] * v).sum()

    value, g = ms.value_and_grad(loss)(x)
    return value * g + log[0], len(log)


@case("3.6", "S", [(f(1),), (f(5),)])
def swap_lists_in_a_loop(x):
    a, c = [x, x], [x * 2, x * 3]
    n = x * 0
    while n < 3:
        a, c = c, a
        a[0] = a[0] + c[1]
        n = n + 1
    return a, c


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


@case("6.2", "S", [(f([[1, 2], [3, 4]]), i(1)), (f([[1, 2], [3, 4]]), i(0))])
def slices_with_steps_and_negative_indices(x, n):
    y = ops.concat([x, x * 10], axis=1)
    return y[:, ::2], y[::-1, -1], y[-1:, 1:-1], y[n, -1], y[..., n], y[:, None, 1:3], y[[0, 1], [1, 0]], y[n][1:]


@case("9.9", "S", [(f([[1, 2, 3], [4, 5, 6]]), [1, 2]), (f([[1], [2]]), [])])
def lengths_decide(x, l):
    while len(l) < 4:
        l = l + [len(l)]
    if len(x) > 1 and len(x[0]) != len(l):
        x = x.sum(axis=0)
    return x, l, len(x.shape)


@case("2.2", "S", [(f(2.5),), (f(-1.5),)])
def numbers_of_tensors_in_loops(x):
    n = int(x)
    total = 0.0
    k = 0
    while k < 3:
        total = total + float(x) * k
        k += 1
    r = 0
    while r < n:
        r = r + 1
    return total, k, r, n


@case("2.1", "S", [(f(3), 2), (f(4), 3)])
def python_and_tensor_numbers_in_one_formula(x, n):
    m = int(x)
    y = n**2 + m // 2 - m % 2 * 0.5
    z = (m > n) + (m == 4) * 10
    return x * y, y, z, m / n, -m, m ** 2, float(m) ** 0.5, divmod(7, n), m & 1, m << 1


@case.factory("6.6", "S", [(f(1),), (f(-1),), (f(3),)])
def parameters_in_branches_and_returns():
    a = Parameter(Tensor(np.array(1, np.float32)), name="a")
    c = Parameter(Tensor(np.array(10, np.float32)), name="c")

    def run(x):
        old = a + 0
        if x < 0:
            ops.assign(c, c + x)
            return old
        ops.assign(a, a * 2)
        for _ in range(2):
            ops.assign_add(c, a)
            if c > 20:
                return c * 1
        return a + old

    return run, (a, c)


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


@case.factory("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def gradient_of_cell_with_state():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([2, 3], np.float32)), name="w")
            self.calls = Parameter(Tensor(np.array(0, np.float32)), name="calls", requires_grad=False)

        def construct(self, x):
            self.calls = self.calls + 1
            if x.sum() > 5:
                return (x * self.w).sum() * self.calls
            return (x + self.w).sum()

    net = Net()

    def step(x):
        first = ms.grad(net)(x)
        value, grads = ms.value_and_grad(net, 0, net.trainable_params())(x)
        return first, value, grads

    return step, net


@case("10.2", "S", [(f(1, 2), f(3)), (f(4, 5), f(-6))])
def gradients_with_respect_to_many(x, y):
    def loss(a, c, n, scale=2):
        if c > 0:
            return a * c * n * scale
        return a + c * c * n

    both = ms.grad(loss, (0, 1))(x, y, 3)
    value, one = ms.value_and_grad(loss, 1)(x, y, 3, scale=5)
    return both, value, one


@case("10.2", "S", [(f(1, 2),), (f(3, 4),)])
def gradient_with_sens_and_get_all(x):
    def g(a, c):
        return a * c

    sens = ops.GradOperation(get_all=True, sens_param=True)
    return sens(g)(x, x + 1, x * 10), ops.GradOperation()(g)(x, x)


@case("11.2", "S", [(f(1, 2, 3), f(5, 5, 5)), (f(-1, 2, 3), f(5, 5, 5))])
def tensors_shared_by_names_and_containers(x, z):
    l = [z, x]
    d = {"z": z}
    d["z"][0] = x[0]
    if x[0] > 0:
        l[0][1] = 100
    else:
        d["z"].mul_(2)
    z += 1
    return z, l[0], d["z"] is l[0]


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


@case("8.1", "S", [(f(1, 2), 1), (f(-1, 2), 1), (f(1, 2), 5)], raises=(None, ValueError, IndexError))
def errors_from_helpers_in_loops(x, n):
    def check(v, where):
        if v < 0:
            raise ValueError(where)
        return v

    total = [x[0], x[1]][n]
    for k, v in enumerate(x):
        total = total + check(v, "item %d" % k)
    return total


@case("7.11", "S", [(f(1), f(0)), (f(0), f(2)), (f(0), f(0))])
def and_or_chains_give_values(x, y):
    first = x or y or x + 5
    last = x and y and x + 6
    pick = y or x + 1 if x + y > 0 else x - 1
    return first, last, pick
