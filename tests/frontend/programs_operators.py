# ruff: noqa
"""Programs about operators (section 7)."""

import duograph as ms
import numpy as np
from duograph import Tensor, ops

from frontend.corpus import Plain, b, case, f, i


@case("7.1", "S", [(f(1, -2), 3), (f(-3, 4), 3)])
def unary_signs(x, n):
    return -x, +x, -n, +n, --x, -2.5


@case(
    "7.2",
    "S",
    [(b(True, False), i(5)), (b(False, False), i(-1))],
    want=[([False, True], False, -6), ([True, True], False, -6)],
)
def inversion(flags, n):
    return ~flags, ~n, ~5


@case("7.3", "S", [(f(1, 2), 3), (f(3, 4), 3)])
def additions(x, n):
    return x + n, n + x, x + x, n + 1.5, "a" + "b", [1] + [x], (n,) + (x, 2), x + (1, 2), [3, 4] + x


@case("7.4", "S", [(f(7, -8), 3), (f(-9, 10), 3)])
def arithmetic_with_tensors(x, n):
    return x - n, n - x, x / n, n / x, x % n, x // n, x**2, 2**x, x - True, (1, 2) * x, x - [1, 2]


@case("7.4", "S", [(i(7, -8), 3), (i(-9, 10), 3)])
def arithmetic_with_int_tensors(x, n):
    return x - n, x / n, x % n, x // n, x**2, n - x, x * 1.5, x / x


@case("7.4", "S", [(f(7), i(2)), (f(-7), i(3))])
def arithmetic_of_mixed_tensors(x, n):
    return x - n, x / n, x % n, x // n, n * x, x**n


@case("7.4", "S", [(1, 0), (1, 2)], raises=(ZeroDivisionError, None))
def division_by_constant_zero(a, c):
    return a / c


@case("7.5", "S", [(f(1, 2), 3), (f(3, 4), 2)])
def multiplications(x, n):
    return x * n, n * x, [x] * n, n * [1], (1, "a") * n, "ab" * n, True * 3, 2.5 * 2


@case("7.6", "S", [(i(6, 3), b(True, False)), (i(5, 1), b(True, True))])
def bit_operators(x, flags):
    return (
        x & 3,
        x | 1,
        x ^ x,
        flags & ~flags,
        flags | True,
        6 & 3,
        6 | 3,
        6 ^ 3,
        True & False,
        3 & x,
    )


@case("7.7", "S", [(5, 2), (-5, 1)])
def shifts(a, n):
    return a << n, a >> n, 1 << 40


@case("7.8", "S", [(f([[1, 2], [3, 4]]), f(5, 6)), (f([[0, 1], [1, 0]]), f(7, 8))])
def matrix_products(a, v):
    return a @ v, a @ a, v @ v


@case("7.9", "S", [(f(1, 2, 3, 4),), (f(5, 6, 7, 8),)])
def assignments(x):
    a = c = x
    d, e = x[0], x[1]
    (g, h), k = (1, d), [e]
    d, e = e, d
    first, *rest = x
    *init, last = [1, 2, 3]
    u, *v, w = (1, x, 3, 4)
    return a + c, d - e, g, h, k, first, rest, init, last, u, v, w


@case("7.9", "S", [((1, 2),), ((1, 2, 3),)], raises=(None, ValueError))
def unpacking_the_wrong_number(t):
    a, c = t
    return a + c


@case("7.9", "S", [(f(1, 2),), (f(3, 4),)])
def unpack_a_tensor(x):
    a, c = x
    (p, q), r = ops.split(x, 1), x
    return a * 10 + c, p + q, r


@case("7.10", "S", [(f(8, 6), 5), (f(2, 4), 7)])
def augmented_assignments(x, n):
    x += 1
    x -= 2
    x *= 3
    x /= 2
    x **= 2
    x //= 3
    x %= 5
    n += 1
    n *= 3
    n -= 2
    n **= 2
    n //= 3
    n %= 50
    n <<= 2
    n |= 1
    n ^= 2
    n &= 63
    n >>= 1
    n /= 2
    return x, n


@case("7.10", "S", [(i(8, 6), f([[1, 2], [3, 4]])), (i(2, 4), f([[1, 1], [0, 1]]))])
def augmented_assignments_of_other_kinds(k, m):
    m @= m
    k &= 6
    k |= 1
    k ^= 3
    s = "a"
    s += "b"
    s *= 2
    l = [1]
    same = l
    l += [m]
    l *= 2
    t = (1,)
    t += (2,)
    return m, k, s, l, t, len(same)


@case("7.11", "S", [(f(1), f(2)), (f(0), f(2)), (f(1), f(0)), (f(0), f(0))])
def and_or_of_tensors(x, y):
    out = x
    if x > 0 and y > 0:
        out = out + 10
    if x > 0 or y > 0:
        out = out + 100
    if not (x > 0 and y > 0) and x < 5:
        out = out + 1000
    return out


@case("7.11", "S", [(f(3), f(2)), (f(0), f(2))])
def and_or_give_operands(x, y):
    return x and y, x or y


@case("7.11", "S", [("", 0), ("a", 5)])
def and_or_of_constants(s, n):
    name = s or "default"
    k = n and 10 / n
    l = [] or [1]
    return name, k, l, None or 3, () and 1, {} or "e", n > 2 and s == "a"


@case("7.11", "S", [(f(1), True), (f(-1), True), (f(1), False)])
def and_of_constant_and_tensor(x, on):
    if on and x > 0:
        return x * 2
    return x * 3


@case("7.11", "S", [(f(1), 0), (f(1), 4)])
def short_circuit(x, n):
    if n == 0 or 8 // n > 1:
        return x + n
    return x


@case("7.12", "S", [(f(0), 0), (f(2), "a")])
def negations(x, v):
    if not x:
        return 1, not v
    return 2, not v


@case("7.12", "S", [(b(True), []), (b(False), (1,))])
def negation_as_value(flag, seq):
    return not flag, not seq, not None, not not seq


@case("7.13", "S", [(2, f(2)), (7, f(3))])
def membership(n, x):
    return n in (1, 2), n not in [1, 2], "a" in {"a": n}, "b" in ["a"], x in (1, 2), x not in (1, 2)


@case("7.13", "L", [((1, 2),), ((3, 4),)])
def membership_of_tuples(t):
    return t in ((1, 2), (5, 6)), (1, 2) in [t]


@case("7.14", "S", [(f(1), None), (f(1), 2)])
def identity(x, v):
    y = x
    return v is None, v is not None, x is None, y is x, (v is None) is True


@case("7.15", "S", [(f(1, 3), 2), (f(2, 0), 2)])
def comparisons(x, n):
    return x < n, x <= n, n > x, n >= x, x < x[0], n < 3.5, (1, 2) < (1, 3), "a" < "b"


@case("7.16", "S", [(f(1, 2), 2), (f(2, 0), 3)])
def equalities(x, n):
    return (
        x == n,
        x != n,
        n == 2.0,
        "a" == "a",
        (1, n) == (1, 2),
        [1] != [n],
        x.dtype == ms.float32,
        n == None,
        True == True,
    )


@case("7.16", "S", [(f(1), f(1)), (f(1), f(2))])
def equality_decides(x, y):
    if x == y:
        return x * 10
    return y * 20


@case("7.17", "S", [(f(2),), (f(5),), (f(0),)])
def chained_comparison_of_tensor(x):
    if 1 < x < 3:
        return x * 10
    elif 4 <= x <= 5 != 6:
        return x * 100
    return x


@case("7.17", "S", [(2,), (9,)])
def chained_comparison_of_constant(n):
    return 1 < n < 3, 0 <= n <= 9 <= 10, n == n == 2


@case("7.17", "S", [(f(1, 2, 3), 0), (f(1, 2, 3), 2)])
def chained_comparison_evaluates_once(x, n):
    seen = []

    def look(v):
        seen.append(v)
        return v

    r = 0 <= look(n) < 2
    return x, r, seen


@case("7.18", "S", [(0.1, 3), (1e16, 1)])
def mixed_numbers(d, n):
    return d + n, d * n, n / d, d > n, d == n, n - d


@case("7.20", "L", [(Plain(np.arange(3)), Plain(np.ones(3)))])
def arrays_with_arrays(a, c):
    return a + c, a * 2, a @ c, a[a > 0]


@case("7.20", "L", [(1,), (3,)])
def sets_and_complex(n):
    return {1, 2} | {n}, {1, 2} & {n}, (1 + 2j) * n, b"ab" + b"c", {"a": n} | {"b": 2}


@case("7.20", "L", [("a",), (1,)], raises=(TypeError, None))
def operands_that_do_not_fit(v):
    return v + 1


@case("7.21", "S", [(8, 2), (7, 2)])
def int_division(a, c):
    return a / c, a / c == 4
