# ruff: noqa
"""Programs about lists, tuples and dicts (sections 3 to 5)."""

import duograph as ms
import numpy as np
from duograph import Tensor, nn, ops

from frontend.corpus import b, case, f, i

WIDTHS = [4, 8, 16]
HISTORY = []


@case("3.1", "S", [(f(1, 2),), (f(3, 4),)])
def list_of_anything(x):
    parts = [x, [x + 1, 2], (3, "s"), None, {"k": x * 2}]
    return parts[0] + parts[1][0] * parts[1][1] + parts[2][0] + parts[4]["k"]


@case("3.2", "S", [(f(1, 2),), (f(3, 4),)])
def return_nested_list(x):
    return [x, [x + 1, [x * 2, 3]], "end", []]


@case("3.2", "S", [(f(1),), (f(-1),)])
def return_list_from_branch(x):
    if x > 0:
        return [x, x + 1]
    return [x - 1, x]


@case("3.3", "S", [(f(1),), (f(2),)])
def list_from_global(x):
    for w in WIDTHS:
        x = x * w
    return x, WIDTHS[1], len(WIDTHS)


@case("3.4", "S", [([1, 2.5, "a"],), ([f(1), f(2)],)])
def list_returned_as_it_came(items):
    return items


@case("3.5", "S", [([1, 2, [3, 4, 5]], f(1)), ([6, 7, [8, 9, 10]], f(2))])
def list_indexing(l, x):
    return x * l[0] + l[2][1] + l[-1][-1], l[0:2], l[2][1:], l[::-1]


@case("3.5", "S", [(i(0), f(1, 2)), (i(2), f(1, 2)), (i(-1), f(1, 2))])
def list_of_tensors_indexed_by_tensor(n, x):
    l = [x, x * 10, x * 100]
    return l[n]


@case("3.5", "L", [(i(0),), (i(2),)])
def list_of_numbers_indexed_by_tensor(n):
    l = [10, 20, 30]
    return l[n] + 1


@case("3.6", "S", [(f(1, 2),), (f(3, 4),)])
def list_item_assignment(x):
    l = [1, x, [2, 3]]
    l[0] = x * 2
    l[2][1] = x + 1
    l[-2] = 5
    return l


@case("3.6", "S", [(f(1),), (f(2),)])
def list_slice_assignment(x):
    l = [1, 2, 3, 4]
    l[1:3] = [x, x, x]
    return l


@case("3.6", "S", [(f(1),), (f(-1),)])
def list_item_assignment_under_condition(x):
    l = [x, x]
    if x > 0:
        l[0] = x * 10
    else:
        l[1] = x * 100
    return l


@case("3.6", "S", [([f(1), f(2)],), ([f(3), f(4)],)])
def list_argument_changed_in_place(l):
    l[0] = l[1] * 2
    l.append(l[0])
    return len(l)


@case("3.7", "S", [(f(1),), (f(2),)])
def append_in_loop(x):
    out = []
    for n in range(3):
        out.append(x * n)
    out.append("done")
    return out


@case("3.7", "S", [(f(1, 2, 3),), (f(4, 5, 6),)])
def append_then_stack(x):
    rows = []
    for v in x:
        rows.append(v * v)
    return ops.stack(rows)


@case("3.7", "S", [(f(1),), (f(-1),)])
def append_same_length_in_both_branches(x):
    out = [x]
    if x > 0:
        out.append(x + 1)
    else:
        out.append(x - 1)
    return out


@case("3.7", "S", [(f(1),), (f(2),)])
def append_through_alias_and_helper(x):
    out = []
    same = out

    def push(v):
        same.append(v)

    push(x)
    push(x + 1)
    return out, len(same)


@case("3.8", "S", [(f(1),)])
def clear_a_list(x):
    l = [x, 1]
    m = l
    l.clear()
    l.append(x)
    return l, m


@case("3.9", "S", [(f(1),), (f(2),)])
def extend_lists(x):
    l = [x]
    l.extend([1, 2])
    l.extend((x + 1,))
    return l


@case("3.9", "L", [(f(1, 2, 3),), (f(4, 5, 6),)])
def extend_by_tensor(x):
    l = [x]
    l.extend(x)
    return l


@case("3.10", "S", [(f(1),)])
def pop_items(x):
    l = [x, 2, x + 3, 4]
    last = l.pop()
    first = l.pop(0)
    mid = l.pop(-1)
    return l, last, first, mid


@case("3.10", "L", [([f(1), f(2), f(3)],), ([f(4), f(5), f(6)],)])
def pop_from_argument(stack):
    top = stack.pop()
    return top + stack[-1]


@case("3.11", "S", [(f(1),)])
def reverse_a_list(x):
    l = [1, x, [x]]
    l.reverse()
    return l


@case("3.12", "S", [(f(1),)])
def insert_items(x):
    l = [1, 2]
    l.insert(0, x)
    l.insert(-9, "front")
    l.insert(9, "back")
    l.insert(-1, x * 2)
    return l


@case("3.13", "S", [([3, 1, 2], f(1)), ([1, 1, 5], f(2))])
def other_list_methods(l, x):
    m = l.copy()
    m.sort()
    m.remove(1)
    return m, l.count(1), l.index(1), l + [x], sorted(l, reverse=True)


@case("3.13", "S", [(f(1),)])
def sort_with_key(x):
    pairs = [("b", 2), ("a", 3), ("c", 1)]
    pairs.sort(key=lambda p: p[1])
    return pairs, x


@case("3.13", "L", [([3, 1, 2],), ([9, 8],)])
def sort_argument_in_place(l):
    l.sort()
    l.reverse()


@case("3.13", "L", [(f(1),), (f(2),)])
def deleting_items(x):
    l = [1, x, 3, 4]
    del l[0]
    del l[1:]
    return l


@case("4.1", "S", [(f(1),), (f(2),)])
def create_nested_tuples(x):
    t = (x, (x + 1, "s", (None, 2)), ())
    return t, (x,), ((),)


@case("4.2", "S", [(f(1),), (f(2),)])
def tuple_indexing(x):
    t = (x, (x * 2, x * 3), 4, 5)
    return t[0] + t[1][1], t[-1], t[1:3], t[::2], t[1][:1]


@case("4.2", "S", [(i(0), f(1)), (i(1), f(1)), (i(-1), f(1))])
def tuple_indexed_by_tensor(n, x):
    return (x, x * 10, x * 100)[n]


@case("4.2", "S", [((1, 2),), ((3, 4, 5),)], raises=(IndexError, None))
def index_out_of_range(t):
    return t[2]


@case.factory("4.3", "S", [(f(-1, 2), 0), (f(-1, 2), 1), (f(-1, 2), 2)])
def cells_by_number():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = (nn.ReLU(), nn.Sigmoid(), nn.Tanh())

        def construct(self, x, n):
            return self.layers[n](x)

    return Net()


@case.factory("4.3", "S", [(f(-1, 2), i(0)), (f(-1, 2), i(1)), (f(-1, 2), i(2))])
def cells_by_tensor():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.relu, self.tanh, self.exp = nn.ReLU(), nn.Tanh(), ops.Exp()

        def construct(self, x, n):
            layers = (self.relu, self.tanh, self.exp)
            return layers[n](x)

    return Net()


@case.factory("4.3", "S", [(f(-1, 2),), (f(3, 4),)])
def cell_list_in_a_loop():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.blocks = nn.CellList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])

        def construct(self, x):
            outs = []
            for n, block in enumerate(self.blocks):
                x = block(x) + n
                outs.append(x)
            return outs

    return Net()


@case("4.4", "S", [(f(1),), (f(2),)])
def tuple_concatenation(x):
    t = (x, 1) + (2,)
    t += (3,)
    return t, (1, "a", None) * 2, 2 * ((1, 2),), len(t)


@case("5.1", "S", [(f(1),), (f(2),)])
def dict_literals(x):
    d = {"a": x, 1: x * 2, ("k", 2): (x, 3), "a": x + 5}
    return d["a"] + d[1], d[("k", 2)][1], len(d)


@case("5.1", "S", [(f(1),), (f(2),)])
def dict_with_unpacked_dict(x):
    base = {"a": 1, "b": x}
    return {**base, "b": x * 2, "c": 3}["b"]


@case("5.2", "S", [(f(1),), (f(2),)])
def dict_items_set(x):
    d = {"a": 1}
    d["b"] = x
    d["a"] = d["b"] * 2
    d["b"] += 1
    return d["a"], d["b"], len(d)


@case("5.2", "S", [(f(1), {"n": 0, "last": f(0)}), (f(5), {"n": 3, "last": f(0)})])
def dict_argument_changed(x, state):
    state["last"] = x * 2
    state["n"] = state["n"] + 1
    return state["last"] + 1


@case("5.2", "S", [(f(1),), (f(-1),)])
def dict_item_set_under_condition(x):
    d = {"y": x}
    if x > 0:
        d["y"] = x * 10
    return d["y"]


@case("5.2", "S", [({"a": 1},), ({"b": 1},)], raises=(KeyError, None))
def missing_key(d):
    return d["b"]


@case("5.3", "S", [({"a": f(1), "b": f(2)},), ({"a": f(3), "b": f(4)},)])
def dict_keys(d):
    total = 0
    names = ""
    for k in d.keys():
        total = total + d[k]
        names += k
    return total, names, "a" in d.keys(), "z" in d.keys(), len(d.keys())


@case("5.4", "S", [({"a": f(1), "b": f(2)},), ({"a": f(3), "b": f(4)},)])
def dict_values(d):
    total = 0
    for v in d.values():
        total += v
    return total, list(d.values())


@case("5.5", "S", [({"a": f(1), "b": f(2)},), ({"a": f(3), "b": f(4)},)])
def dict_items(d):
    out = {}
    for k, v in d.items():
        out[k + k] = v * len(k)
    return out["aa"] + out["bb"], [k for k, _ in d.items()]


@case("5.5", "S", [({"a": f(1), "b": f(2)},)])
def iterate_dict_itself(d):
    return [d[k] * 2 for k in d]


@case("5.6", "S", [(f(1), {"w": 2}), (f(1), {})])
def dict_get(x, d):
    w = d.get("w", 7)
    if d.get("missing") is None:
        x = x + 1
    return x * w


@case("5.7", "S", [(f(1),), (f(2),)])
def dict_update_and_clear(x):
    d = {"a": 1, "b": 2}
    d.update({"b": x, "c": 3})
    other = dict(d)
    d.clear()
    return len(d), other["b"], len(other)


@case("5.9", "S", [(f(1),), (f(2),)])
def dict_fromkeys(x):
    d = {}.fromkeys(["a", "b"], x)
    e = dict.fromkeys((1, 2))
    return d["a"] + d["b"], e[1]


@case("5.10", "L", [(f(1),), (f(2),)])
def return_dict(x):
    return {"loss": x * 2, "parts": {"a": x, "b": (x + 1, 3)}}


@case("5.10", "L", [(f(1),), (f(-1),)])
def return_dict_from_branches(x):
    out = {"sign": 1, "y": x}
    if x > 0:
        out["y"] = x * 2
    else:
        out["y"] = -x
    return out


@case("5.11", "S", [(f(1),), (f(2),)])
def dict_constructors(x):
    a = dict()
    c = dict(a=1, y=x)
    d = dict(zip(["u", "v"], (x, x * 2)))
    e = dict([("k", x), ("l", 2)])
    return len(a), c["y"], d["u"] + d["v"], e["k"] * e["l"]


@case("5.12", "S", [(f(1), {"relu": 1}), (f(-1), {})])
def key_in_dict(x, options):
    if "relu" in options:
        x = ops.relu(x)
    if "neg" not in options:
        x = -x
    return x


@case("5.13", "L", [(f(1),), (f(2),)])
def dict_pop(x):
    d = {"a": x, "b": 2, "c": 3}
    a = d.pop("a")
    z = d.pop("z", 9)
    return a, z, d


@case("5.13", "L", [(f(1),), (f(2),)])
def dict_setdefault_and_popitem(x):
    d = {"a": x}
    d.setdefault("b", x * 2)
    d.setdefault("a", 0)
    k, v = d.popitem()
    return k, v, d


@case("5.13", "L", [(f(1), {"a": 1, "b": 2}), (f(2), {"a": 1, "b": 2})])
def dict_pop_from_argument(x, d):
    n = d.pop("a")
    return x * n
