# ruff: noqa
"""Programs about loops: for, while, break, continue, else, nested (section 8)."""

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import b, case, f, i


@case("8.5", "S", [(f(1), 3), (f(1), 0)])
def break_on_constant(x, stop):
    for n in range(5):
        if n == stop:
            break
        x = x + n
    return x, n


@case("8.5", "S", [(f(1), 3), (f(1), 9)])
def continue_on_constant(x, skip):
    for n in range(5):
        if n == skip or n % 2:
            continue
        x = x * 10 + n
    return x


@case("8.5", "S", [(f(1),), (f(4),), (f(100),)], grad=0)
def break_on_tensor_in_for(x):
    y = x
    for n in range(4):
        y = y * 2
        if y > 10:
            break
        y = y + n
    return y


@case("8.5", "S", [(f(1, -2, 3, -4),), (f(-1, 2, 2, 2),)], grad=0)
def continue_on_tensor_in_for(x):
    total = x[0] * 0
    for v in x:
        if v < 0:
            continue
        total = total + v * v
    return total


@case("8.5", "S", [(f(1),), (f(50),)])
def break_in_tensor_while(x):
    n = 0
    while x < 100:
        x = x * 2
        n = n + 1
        if x > 40:
            break
        x = x + 1
    return x, n


@case("8.5", "S", [(f(10),), (f(3),)])
def continue_in_tensor_while(x):
    total = x * 0
    while x > 0:
        x = x - 1
        if x % 2 == 0:
            continue
        total = total + x
    return total, x


@case("8.5", "S", [(f(1), 4), (f(7), 4)])
def while_true_with_break(x, limit):
    n = 0
    while True:
        n += 1
        x = x + 1
        if n >= limit:
            break
    return x


@case("8.5", "S", [(f(1),), (f(7),)])
def while_true_with_tensor_break(x):
    while True:
        x = x * 2
        if x > 20:
            break
    return x


@case("8.5", "S", [(f(1, 2, 3),), (f(-1, 2, -3),)])
def break_and_continue_together(x):
    count = 0
    total = x.sum() * 0
    for n, v in enumerate(x):
        if v < 0:
            continue
        total = total + v
        count = count + 1
        if total > 2:
            break
    return total, count


@case("8.9", "S", [(f(1), (1, 2.5)), (f(2), (3,))])
def for_over_tuple(x, parts):
    for p in parts:
        x = x * p + 1
    return x


@case("8.9", "S", [(f(1),), (f(2),)])
def for_over_mixed_list(x):
    for item in [1, x, (2, x)]:
        if isinstance(item, tuple):
            x = x + item[0] * item[1]
        else:
            x = x + item
    return x


@case("8.9", "S", [(f(1), 3), (f(1), 0)])
def for_over_range(x, n):
    for k in range(n):
        x = x + k
    for k in range(10, 0, -4):
        x = x * k
    return x


@case("8.9", "S", [([f(1), f(2)], [f(3), f(4)]), ([f(5), f(6)], [f(7), f(8)])])
def for_over_zip_and_enumerate(xs, ys):
    total = 0
    for n, (x, y) in enumerate(zip(xs, ys), 1):
        total = total + n * x * y
    return total, n


@case("8.9", "S", [(f([[1, 2], [3, 4], [5, 6]]),), (f([[0, 1], [0, 1], [0, 1]]),)], grad=0)
def for_over_tensor_rows(x):
    y = x[0]
    for row in x:
        y = y * row + 1
    return y


@case("8.9", "S", [({"a": f(1), "b": f(2)},), ({"a": f(3), "b": f(4)},)])
def for_over_dict(d):
    out = []
    for name in d:
        out.append(d[name] * len(name))
    for name, value in d.items():
        out.append(value)
    return out


@case("8.9", "S", [(f(1), "abc"), (f(1), "")])
def for_over_string(x, s):
    for c in s:
        x = x * 2 if c == "b" else x + 1
    return x


@case("8.9", "S", [(f(1),), (f(2),)])
def for_over_reversed_and_sorted(x):
    for n in reversed([1, 2, 3]):
        x = x * n - 1
    for k in sorted({"b": 1, "a": 2}):
        x = x + len(k)
    return x


@case("8.9", "S", [(f(5),), (f(-5),)])
def loop_variable_stays(x):
    for n in range(3):
        x = x + n
    for v in (x, x * 2):
        pass
    return n, v


@case("8.9", "S", [(f(1, 2, 3), f(2)), (f(4, 5, 6), f(-2))])
def branch_on_tensor_inside_for(xs, limit):
    big = small = limit * 0
    for v in xs:
        if v > limit:
            big = big + v
        else:
            small = small + v * 2
    return big, small


@case.factory("8.9", "S", [(f(1, 2),), (f(-3, 4),)])
def for_over_parameters():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.ws = ms.ParameterTuple(
                [
                    Parameter(Tensor(np.array([n, n + 1], np.float32)), name=f"w{n}")
                    for n in range(3)
                ]
            )

        def construct(self, x):
            for w in self.ws:
                x = x * w + 1
            return x

    return Net()


@case("8.12", "S", [(f([[1, 2], [3, 4]]),), (f([[-1, 2], [3, -4]]),)], grad=0)
def nested_for_with_branch(m):
    total = m[0, 0] * 0
    for r in range(2):
        for c in range(2):
            if m[r, c] > 0:
                total = total + m[r, c] * (r + 1)
            else:
                total = total - c
    return total


@case("8.12", "S", [(i(3),), (i(5),)])
def nested_tensor_whiles(n):
    total = n * 0
    k = n * 0
    while k < n:
        j = k
        while j > 0:
            total = total + j
            j = j - 1
        k = k + 1
    return total


@case("8.12", "S", [(f(1, 5, 3),), (f(1, 2, 3),), (f(9, 2, 3),)])
def return_from_for_on_tensor(x):
    for n in range(3):
        if x[n] > 4:
            return x[n] * 100, n
    return x.sum(), -1


@case("8.12", "S", [(f(1),), (f(40),)])
def return_from_tensor_while(x):
    n = 0
    while n < 10:
        x = x * 2
        if x > 50:
            return x + 1
        n += 1
    return x


@case("8.12", "S", [(f(3),), (f(100),)])
def return_from_while_on_tensor_condition(x):
    k = x * 0
    while k < x:
        k = k + 1
        if k * k > 30:
            return k * 1000
    return k


@case("8.12", "S", [(f([[1, 2], [7, 4]]),), (f([[1, 2], [3, 4]]),)])
def return_from_nested_loops(m):
    for r in range(2):
        for c in range(2):
            if m[r][c] > 5:
                return r * 10 + c + m[0, 0] * 0
            if m[r][c] < 0:
                break
    return m.sum()


@case("8.12", "S", [(f([[1, -2, 9], [3, 4, 5]]),), (f([[1, 2, 9], [-3, 4, 5]]),)])
def inner_break_keeps_outer(m):
    total = m.sum() * 0
    for row in m:
        for v in row:
            if v < 0:
                break
            total = total + v
        total = total * 10
    return total


@case("8.12", "S", [(f(4), 2), (f(1), 3)])
def tensor_while_inside_constant_for(x, n):
    for k in range(n):
        while x > k:
            x = x - 1.5
        x = x + 3
    return x


@case("8.12", "S", [(f(4),), (f(1),)])
def constant_for_inside_tensor_while(x):
    while x < 100:
        for k in range(3):
            if k == 1:
                continue
            x = x + k
        x = x * 2
    return x


@case("8.12", "S", [(f(4), f(-1)), (f(-4), f(5))])
def loop_inside_branches(x, y):
    if x > 0:
        while y < 3:
            y = y + 1
        z = y * x
    else:
        z = y
        for n in range(3):
            z = z + n * x
    return z


@case("15.1", "S", [(f(1), 3), (f(1), 9)])
def for_else_on_constant(x, wanted):
    for n in range(5):
        if n == wanted:
            x = x + 10
            break
    else:
        x = x + 100
    return x


@case("15.1", "S", [(f(1, 2, 3),), (f(1, -2, 3),)])
def for_else_on_tensor(x):
    y = x.sum()
    for v in x:
        if v < 0:
            y = y * 2
            break
        y = y + v
    else:
        y = y + 1000
    return y


@case("15.1", "S", [(f(1),), (f(6),)])
def while_else_on_tensor(x):
    while x < 10:
        x = x + 3
        if x == 9:
            break
    else:
        x = x + 100
    return x


@case("15.1", "S", [(3,), (0,)])
def while_else_on_constant(n):
    total = 0
    while n:
        n -= 1
        if n == 100:
            break
        total += n
    else:
        total += 50
    return total


@case("15.1", "S", [(f(1, 2),), (f(7, 2),)])
def for_else_with_return(x):
    for v in x:
        if v > 5:
            return v * 10
    else:
        return x.sum()


@case("15.8", "S", [(i(4), f(1)), (i(0), f(1)), (i(2), f(3))])
def range_of_tensor(n, x):
    for k in range(n):
        x = x * 2 + k
    return x


@case("15.8", "S", [(i(2), i(9), f(1)), (i(5), i(3), f(1))])
def range_of_tensors_with_step(a, c, x):
    total = 0
    for k in range(a, c, 3):
        total = total + k
        x = x + total
    return x


@case("15.8", "S", [(i(10), f(1)), (i(3), f(1))])
def range_of_tensor_with_break(n, x):
    for k in range(n):
        if x > 20:
            break
        if k == 1:
            continue
        x = x * 2
    return x


@case("15.8", "S", [(i(3), f(1, 2, 3, 4)), (i(1), f(1, 2, 3, 4))])
def range_of_tensor_indexes(n, x):
    total = x[0] * 0
    for k in range(n):
        total = total + x[k]
    return total


def count_down(v):
    n = v * 0
    while v > 0:
        v = v - 2
        n = n + 1
    return n


@case("8.12", "S", [(f(3),), (f(6),)])
def helper_with_a_loop_inside_a_loop(x):
    total = x * 0
    while x > 0:
        total = total + count_down(x)
        x = x - 1
    return total


@case("8.12", "S", [(f(3),), (f(6),)])
def containers_made_in_every_turn(x):
    total = x * 0
    while x > 0:
        parts = []
        parts.append(x)
        parts.append(x * 2)
        options = {"k": 1}
        options["k"] = parts[1]
        total = total + parts[0] * options["k"]
        x = x - 1
    return total


@case("8.12", "S", [(f(3), f(1, 2)), (f(6), f(1, 2))])
def tensors_written_in_every_turn(x, v):
    total = v * 0
    while x > 0:
        w = v * x
        w[0] = 1
        c = Tensor([0.0, 0.0], ms.float32)
        c[1] = x
        total = total + w + c
        x = x - 1
    return total


@case("8.12", "S", [(i(3), f(1, 2, 3, 4)), (i(0), f(1, 2, 3, 4))])
def tensor_from_before_written_in_a_loop(n, x):
    y = x * 1
    z = y
    k = n * 0
    while k < n:
        y[k] = k * 10
        k = k + 1
    return y, z


@case("8.12", "S", [(f(3),), (f(0),)])
def range_of_tensor_inside_a_loop(x):
    total = x * 0
    while x > 0:
        for k in range(x.astype(ms.int32)):
            total = total + k
        x = x - 1
    return total


@case("8.12", "S", [(f(3),), (f(-1),)])
def inner_functions_in_a_loop(x):
    total = x * 0
    while x > 0:

        def scaled(v, by=2):
            w = v * by
            w = w + 1
            return w

        total = total + scaled(x) + (lambda v: v * x)(total)
        x = x - 1
    return total


@case("8.12", "S", [(f(3),), (f(-1),)])
def list_from_before_changed_in_a_loop(x):
    last = [x, x]
    while x > 0:
        last[0] = last[1]
        last[1] = x
        x = x - 1
    return last


@case(
    "8.7", "S", [(f(1), f(1)), (f(1), f(9)), (f(-1), f(1))], raises=(None, UnboundLocalError, None)
)
def name_bound_by_a_loop_in_a_branch(x, y):
    if x > 0:
        while y < 3:
            z = y
            y = y + 1
    else:
        z = x
    return z


@case("8.7", "S", [(i(3),), (i(0),)], raises=(None, UnboundLocalError))
def loop_variable_after_a_loop_of_tensor_length(n):
    for k in range(n):
        pass
    return k
