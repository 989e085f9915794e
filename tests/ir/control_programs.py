"""Programs of (x, w, n) with control flow, whose derivatives `test_linearize_control` checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duograph.dtype import float32, int32
from duograph.ir.control import to_host, to_tensor
from duograph.ir.graph import NamedGraph
from duograph.ops.activation import sigmoid, tanhshrink
from duograph.ops.combinations import lerp
from duograph.ops.comparison import equal, greater, less
from duograph.ops.division import remainder
from duograph.ops.elementwise import add, sub
from duograph.ops.exponential import exp, logaddexp
from duograph.ops.hyperbolic import tanh
from duograph.ops.powers import sqrt
from duograph.ops.trigonometry import cos, sin
from duograph.types import INT, TensorType
from ir.graphs import branch, here, host, invoke, loop, number, write

V = TensorType.of((3,), float32)
S = TensorType.of((), float32)
COUNT = TensorType.of((), int32)


def if_else(x: Any, w: Any, n: Any) -> Any:
    h = x * w + x
    (y,) = branch(
        greater(n, 2), [h, w], lambda h, w: tanh(h * w) * h, lambda h, w: (exp(h) / w) * h + h
    )
    return y * h + x * w


def if_without_else(x: Any, w: Any, n: Any) -> Any:
    h = x * w
    (y,) = branch(greater(n, 2), [h, w], lambda h, w: h, lambda h, w: sin(h) * w * w)
    return y * y


def nested_if(x: Any, w: Any, n: Any) -> Any:
    def inner(x: Any, w: Any, n: Any) -> Any:
        (y,) = branch(equal(n, 3), [x, w], lambda x, w: x + w, lambda x, w: sigmoid(x) * w * x)
        return (y * x,)

    (y,) = branch(greater(n, 1), [x, w, n], lambda x, w, n: w * 2, inner)
    return y + x


def same_operand_twice(x: Any, w: Any, n: Any) -> Any:
    y, z = branch(n, [x, x, w], *[lambda a, b, w: (a * w, b * a)] * 4)
    return y * z + x


def while_count(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def body(h: Any, i: Any, w: Any, n: Any) -> Any:
        h = tanh(h * w) + h * w
        i = add(i, 1)
        return less(i, n), h, i

    h, _ = loop(less(i, n), [x * w, i], [w, n], body)
    return h * w + x


def while_from_operand(x: Any, w: Any, n: Any) -> Any:
    """The first turn uses a value that is used elsewhere, before and after the loop."""
    i = number(0, int32)

    def body(h: Any, i: Any, w: Any, n: Any) -> Any:
        h = sin(h) * w + h * h
        i = add(i, 1)
        return less(i, n), h, i

    y = exp(x) * x
    h, _ = loop(less(i, n), [x, i], [w, n], body)
    return h * x + y + x * w


def while_late_result(x: Any, w: Any, n: Any) -> Any:
    """A carry whose result nobody uses, and one that the body only overwrites."""
    i = number(0, int32)

    def body(h: Any, out: Any, i: Any, w: Any, n: Any) -> Any:
        return less(add(i, 1), n), tanh(h * w), h * w + h, add(i, 1)

    _, out, _ = loop(less(i, n), [x, x * 0, i], [w, n], body)
    return out * w


def fibonacci(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def body(a: Any, b: Any, i: Any, n: Any) -> Any:
        return less(add(i, 1), n), b, a * b + a, add(i, 1)

    a, b, _ = loop(less(i, n), [x, w, i], [n], body)
    return a * b


def rotated(x: Any, w: Any, n: Any) -> Any:
    """Six carries that change places: the choices of cotangents do not repeat soon."""
    i = number(0, int32)

    def body(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, i: Any, w: Any, n: Any) -> Any:
        return less(add(i, 1), n), b, c, d, e, f, a * w, add(i, 1)

    found = loop(less(i, n), [x, x + w, x * w, w, x - w, exp(x), i], [w, n], body)
    return found[0] * w


def nested_loops(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def outer(h: Any, i: Any, w: Any, n: Any) -> Any:
        j = number(0, int32)

        def inner(g: Any, j: Any, w: Any, i: Any) -> Any:
            return less(add(j, 1), i), sin(g * w) + g, add(j, 1)

        g, _ = loop(less(j, i), [h, j], [w, i], inner)
        return less(add(i, 1), n), g * w + h, add(i, 1)

    h, _ = loop(less(i, n), [x, i], [w, n], outer)
    return h * h


def branch_in_loop(x: Any, w: Any, n: Any) -> Any:
    i = number(0, int32)

    def body(h: Any, i: Any, w: Any, n: Any) -> Any:
        (h,) = branch(
            equal(remainder(i, 2), 0), [h, w],
            lambda h, w: exp(-h) * w, lambda h, w: h * w * w + h,
        )  # fmt: skip
        return less(add(i, 1), n), h, add(i, 1)

    h, _ = loop(less(i, n), [x, i], [w, n], body)
    return h + w * x


def loop_in_branch(x: Any, w: Any, n: Any) -> Any:
    (y,) = branch(
        greater(n, 1), [x, w, n], lambda x, w, n: x * w, lambda x, w, n: while_count(x, w, n)
    )
    return y * x + w


def of_host_flag(x: Any, w: Any, n: Any) -> Any:
    k = here().append(to_host, (n,), {"kind": INT})
    (y,) = branch(k > 2, [x, w], lambda x, w: x * w, lambda x, w: tanh(x) * w * x)
    return y * x


def host_count(x: Any, w: Any, n: Any) -> Any:
    k = here().append(to_host, (n,), {"kind": INT})

    def body(h: Any, i: Any, w: Any, k: Any) -> Any:
        scale = here().append(to_tensor, (i,), {"dtype": float32})
        return i + 1 < k, tanh(h * w) + h * scale, i + 1

    zero = host(0)
    h, _ = loop(zero < k, [x, zero], [w, k], body)
    return h * w


def composite_units(x: Any, w: Any, n: Any) -> Any:
    """Composite ops whose bodies use an operand several times."""
    (y,) = branch(
        greater(n, 2),
        [x, w],
        lambda x, w: lerp(x, w, x) * x,
        lambda x, w: logaddexp(x, w) * tanhshrink(x) + lerp(w, w, x),
    )
    return y * logaddexp(x, x) + tanhshrink(x) * x + lerp(x, w, x * y)


def _power(kind: Any) -> NamedGraph:
    target = NamedGraph("power", (kind,))

    def body(x: Any, w: Any, n: Any) -> Any:
        (y,) = branch(
            greater(n, 0),
            [x, w, n],
            lambda x, w, n: w * x,
            lambda x, w, n: invoke(target, sin(x * w), w, sub(n, 1))[0] * w + x,
        )
        return (y * x,)

    target.graph = write([kind, kind, COUNT], body)
    return target


def recursion(x: Any, w: Any, n: Any) -> Any:
    (y,) = invoke(_power(x._type), x * w, w, n)
    return y * x + w


def plain_call(x: Any, w: Any, n: Any) -> Any:
    target = NamedGraph("f", (x._type,))
    target.graph = write([x._type, x._type], lambda x, w: tanh(x * w) * x)
    (y,) = invoke(target, x * w, w)
    (z,) = invoke(target, y, x)
    return y * z + x


def mutual_recursion(x: Any, w: Any, n: Any) -> Any:
    even, odd = NamedGraph("even", (x._type,)), NamedGraph("odd", (x._type,))
    for this, other, f in ((even, odd, tanh), (odd, even, sin)):
        this.graph = write(
            [x._type, x._type, COUNT],
            lambda x, w, n, other=other, f=f: branch(
                greater(n, 0), [x, w, n],
                lambda x, w, n: f(x), lambda x, w, n: invoke(other, f(x) * w + x, w, sub(n, 1)),
            ),
        )  # fmt: skip
    (y,) = invoke(even, x, w, n)
    return y * x


def unused_infinity(x: Any, w: Any, n: Any) -> Any:
    """The derivative of the root is infinite; only for n > 1 a branch uses the root."""
    root = sqrt((x - x) * w) * w
    (y,) = branch(greater(n, 1), [x, w, root], lambda x, w, r: x * w, lambda x, w, r: r * r + x)
    return y * x + w


def used_in_one_branch(x: Any, w: Any, n: Any) -> Any:
    """Optional cotangents pass through calls, sums, branches and loops."""
    a, b = exp(x) * w, tanh(w) * x
    (c,) = branch(equal(n, 1), [x, a], lambda x, a: sin(x), lambda x, a: a * x)
    (d,) = branch(equal(n, 2), [x, a, b], lambda x, a, b: cos(x), lambda x, a, b: a + b)
    i = number(0, int32)

    def body(h: Any, i: Any, a: Any, b: Any, n: Any) -> Any:
        (h,) = branch(equal(i, 1), [h, a, b], lambda h, a, b: h * a, lambda h, a, b: h * b)
        return less(add(i, 1), n), h, add(i, 1)

    e, _ = loop(less(i, n), [x * x, i], [sin(a), cos(b), n], body)
    return c * d + e


def carry_in_one_branch(x: Any, w: Any, n: Any) -> Any:
    """A carry that some iterations pass on and others replace."""
    i = number(0, int32)

    def body(h: Any, g: Any, i: Any, x: Any, w: Any, n: Any) -> Any:
        h, g = branch(
            equal(i, 1), [h, g, x, w],
            lambda h, g, x, w: (h * w + g, sin(g)), lambda h, g, x, w: (exp(x), h),
        )  # fmt: skip
        return less(add(i, 1), n), h, g, add(i, 1)

    h, _, _ = loop(less(i, n), [x, w * x, i], [tanh(x), w, n], body)
    return h * x


PROGRAMS: list[Callable[..., Any]] = [
    unused_infinity,
    used_in_one_branch,
    carry_in_one_branch,
    if_else,
    if_without_else,
    nested_if,
    same_operand_twice,
    while_count,
    while_from_operand,
    while_late_result,
    fibonacci,
    rotated,
    nested_loops,
    branch_in_loop,
    loop_in_branch,
    of_host_flag,
    host_count,
    composite_units,
    recursion,
    plain_call,
    mutual_recursion,
]
