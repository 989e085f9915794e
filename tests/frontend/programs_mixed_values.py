# ruff: noqa
"""Containers, numbers, strings and indices combined with control flow."""

import collections
import enum
import itertools

from duograph import Tensor

from frontend.corpus import case, f, i


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
    return (
        total,
        pairs,
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.zip_longest([1], [2, 3])),
    )


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
    return (
        best,
        min([v * w for v, w in pairs]),
        sum(v for v, _ in pairs),
        any(v > w for v, w in pairs),
        all([v < 6 for v in x]),
    )


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


@case("3.6", "S", [(f(1),), (f(5),)])
def swap_lists_in_a_loop(x):
    a, c = [x, x], [x * 2, x * 3]
    n = x * 0
    while n < 3:
        a, c = c, a
        a[0] = a[0] + c[1]
        n = n + 1
    return a, c


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
    return x * y, y, z, m / n, -m, m**2, float(m) ** 0.5, divmod(7, n), m & 1, m << 1


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


@case("7.11", "S", [(f(1), f(0)), (f(0), f(2)), (f(0), f(0))])
def and_or_chains_give_values(x, y):
    first = x or y or x + 5
    last = x and y and x + 6
    pick = y or x + 1 if x + y > 0 else x - 1
    return first, last, pick
