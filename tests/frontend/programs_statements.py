# ruff: noqa
"""Programs about branches, returns, exceptions, assertions, `with` and `match` (section 8, the
statements that choose).
"""

import contextlib

import duograph as ms
import numpy as np
from duograph import Parameter, Tensor, nn, ops

from frontend.corpus import b, case, f, i


@case("8.1", "S", [(f(1), "relu"), (f(1), "swish")], raises=(None, ValueError))
def raise_on_constant(x, kind):
    if kind == "relu":
        return ops.relu(x)
    raise ValueError(f"unknown activation {kind}")


@case("8.1", "S", [(f(1),), (f(-1),), (f(2),)], raises=(None, ValueError, None))
def raise_on_tensor(x):
    if x < 0:
        raise ValueError("x must not be negative")
    return ops.sqrt(x)


@case("8.1", "S", [(f(1),), (f(-1),), (f(-100),)], raises=(None, IndexError, KeyError))
def raise_in_elif(x):
    if x > 0:
        y = x * 2
    elif x > -10:
        raise IndexError("small")
    else:
        raise KeyError("large")
    return y


@case("8.1", "S", [(f(1),), (f(-1),)], raises=(None, ValueError))
def raise_with_tensor_argument(x):
    if x < 0:
        raise ValueError("x is", x)
    return x


@case("8.1", "S", [(f(3),), (f(30),)], raises=(None, RuntimeError))
def raise_in_a_tensor_loop(x):
    n = x * 0
    while n < x:
        if n > 10:
            raise RuntimeError("too many steps")
        n = n + 1
    return n


@case("8.1", "S", [(f(1),), (f(-1),)], raises=(None, NotImplementedError))
def raise_in_a_helper(x):
    def check(v):
        if v < 0:
            raise NotImplementedError
        return v + 1

    return check(x) * 2


class WrongScale(Exception):
    """An exception of the user's own."""


@case("8.1", "L", [(f(1),), (f(-1),)], raises=(None, WrongScale))
def raise_own_exception(x):
    if x < 0:
        raise WrongScale("scale")
    return x


@case.factory("8.1", "S", [(f(1),), (f(-1),), (f(1),)], raises=(None, ValueError, None))
def raise_commits_earlier_writes():
    p = Parameter(Tensor(np.array(0, np.float32)), name="p")

    def step(x):
        ops.assign_add(p, x)
        if x < 0:
            raise ValueError("negative")
        ops.assign_add(p, x * 10)
        return p + 0

    return step, p


@case("8.1", "L", [(3,), (-3,)], raises=(None, ValueError))
def raise_from(n):
    if n < 0:
        raise ValueError("bad") from None
    return n


@case("8.2", "S", [(f(1, 2), 2), (f(1, 2), 3)], raises=(None, AssertionError))
def assert_on_constant(x, n):
    assert x.shape[0] == n, f"wanted {n} elements"
    return x * n


@case("8.2", "S", [(f(1),), (f(-1),), (f(2),)], raises=(None, AssertionError, None))
def assert_on_tensor(x):
    assert x > 0, "x must be positive"
    return x * 2


@case("8.2", "S", [(f(1),), (f(-1),)], raises=(None, AssertionError))
def assert_without_message(x):
    y = x + 1
    assert y > 0
    return y


@case("8.3", "S", [(f(1),), (f(-1),)])
def pass_statements(x):
    pass
    if x > 0:
        pass
    else:
        x = -x
    for _ in range(2):
        pass
    return x


@case("8.4", "S", [(f(3),), (f(0.5),), (f(-3),)])
def early_returns(x):
    if x > 1:
        return x * 10
    if x > 0:
        return x * 100
    y = x - 1
    return y


@case("8.4", "S", [(f(3), f(1)), (f(3), f(-1)), (f(-3), f(1)), (f(-3), f(-1))])
def early_return_in_nested_branches(x, y):
    z = x + y
    if x > 0:
        if y > 0:
            return z * 2
        z = z + 100
    elif y > 0:
        z = z - 100
    else:
        return z * 3
    return z


@case("8.4", "S", [(f(1), True), (f(1), False)])
def return_on_constant(x, training):
    if not training:
        return x
    x = x * 2
    return x, x + 1


@case("8.4", "S", [(f(1),), (f(-1),)])
def return_tuples_of_same_structure(x):
    if x > 0:
        return x, (x + 1, 3)
    return -x, (x, 4)


@case("8.4", "S", [(f(1),), (f(-1),)])
def return_in_both_branches_with_code_after(x):
    if x > 0:
        return x
    else:
        return -x
    return x * 1000


@case("8.24", "S", [(f(1),), (f(2),)])
def annotated_assignments(x: Tensor) -> Tensor:
    n: int = 3
    y: Tensor = x * n
    unused: float
    return y


@case("8.25", "L", [(f(1, 2),), (f(3, 4),)])
def typing_comment(x):
    a = x.asnumpy() * 2
    y = ms.Tensor(a, ms.float32)  # @jit.typing: () -> tensor_type[float32]
    return y + x


class Scope:
    """A context manager."""

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return 3

    def __exit__(self, *error):
        self.log.append("out")
        return False


@case("8.21", "L", [(f(1),), (f(2),)])
def with_statement(x):
    log = []
    with Scope(log) as n:
        x = x * n
        log.append("body")
    return x, log


@case("8.21", "L", [(f(1),), (f(2),)])
def with_statement_returning_inside(x):
    log = []
    with Scope(log) as n, Scope(log):
        return x * n, log


@case.factory("8.21", "S", [(f(1),), (f(2),)])
def with_a_cell():
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.k = 4

        def __enter__(self):
            return self.k

        def __exit__(self, exc_type, exc_value, trace):
            return None

        def construct(self, x):
            return x * self.k

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scaled = Scaled()

        def construct(self, x):
            with self.scaled as k:
                x = self.scaled(x) + k
            return x

    return Net()


@case("8.21", "L", [(f(1),), (f(2),)])
def with_null_context(x):
    with contextlib.nullcontext(5) as n:
        y = x + n
    return y


@case("15.7", "L", [(f(1),), (f(2),)])
def try_finally(x):
    done = []
    try:
        y = x * 2
    finally:
        done.append("closed")
    return y, done


@case("15.7", "L", [(f(1), {"a": 2}), (f(1), {})])
def try_except_on_constants(x, d):
    try:
        n = d["a"]
    except KeyError as error:
        n = 7
        text = str(error)
    else:
        text = "found"
    finally:
        x = x + 1
    return x * n, text


@case("15.7", "L", [(f(1),), (f(-1),)], raises=(None, ValueError))
def finally_runs_when_raising(x):
    log = []
    try:
        if x < 0:
            raise ValueError("negative")
        y = x * 2
    finally:
        log.append(1)
    return y, log


@case("15.7", "L", [(f(1),), (f(2),)])
def return_inside_try(x):
    try:
        return x * 2
    finally:
        pass


@case("15.7", "L", [(f(1),), (f(2),)])
def finally_after_a_handler_that_raises(x):
    log = []
    try:
        try:
            raise ValueError("first")
        except ValueError as error:
            log.append(str(error))
            raise KeyError("second") from error
        finally:
            log.append("finally")
    except KeyError:
        log.append("caught")
    return x * len(log), log


@case("15.7", "L", [(f(1),), (f(2),)])
def finally_after_an_error_of_a_shape(x):
    log = []
    try:
        try:
            return x.reshape(7)
        finally:
            log.append("finally")
    except ValueError:
        log.append("caught")
    return x, log


@case("15.7", "L", [(f(1),), (f(2),)])
def finally_that_returns_or_leaves_a_loop(x):
    def returns():
        try:
            raise ValueError("lost")
        finally:
            return 5

    log = []
    for i in range(3):
        try:
            raise ValueError("lost")
        finally:
            log.append(i)
            break
    return x * returns(), log


@case("15.7", "L", [(f(1),), (f(2),)])
def finally_that_raises(x):
    try:
        try:
            raise ValueError(1)
        finally:
            raise KeyError(2)
    except KeyError as error:
        return x, error.__context__.args


@case("15.10", "L", [(f(2), "add"), (f(2), ("mul", 3)), (f(2), {"op": "neg"}), (f(2), 0)])
def match_on_constants(x, op):
    match op:
        case "add" | "plus":
            return x + 1
        case ("mul", n) if n > 1:
            return x * n
        case {"op": "neg"}:
            return -x
        case _:
            return x


@case("15.10", "L", [(f(1, 2),), (f([[1, 2], [3, 4]]),), (f(1),)])
def match_on_shape(x):
    match x.shape:
        case ():
            y = x + 100
        case (n,):
            y = x.sum() * n
        case (n, m):
            y = x.sum() * n * m
    return y


# ---- patterns on Tensors


@case("15.12", "S", [(f(1),), (f(2),), (f(3),), (f(-1),)], grad=0)
def match_alternatives_on_a_tensor(x):
    match x:
        case 1 | 2:
            y = x * 2
        case 3 | 4 | 5:
            y = x * x
        case _:
            y = -x
    return y


@case("15.12", "S", [(f(1),), (f(2),), (f(7),)])
def match_alternatives_on_a_number(x):
    match int(x):
        case 1 | 2:
            return x + 10
        case 3:
            return x
    return -x


@case("15.12", "S", [(f(1), f(1)), (f(2), f(5)), (f(3), f(1)), (f(9), f(9))], grad=(0, 1))
def match_as_on_a_tensor(x, y):
    match x:
        case (1 | 2) as n:
            y = y * n
        case 3 as n:
            y = y - n
        case n:
            y = y + n
    return y, n


@case("15.12", "S", [(f(1), f(1)), (f(1), f(5)), (f(2), f(1)), (f(2), f(5))])
def match_guard_on_a_tensor(x, y):
    match x:
        case 1 if y > 2:
            return x + 10
        case n if n > 1 and y < 2:
            return n + 20
        case 1 | 2 as n if (m := n + y) > 3:
            return m * 30
    return -x


@case("15.12", "S", [(f(1), f(1)), (f(1), f(5)), (f(2), f(1)), (f(2), f(5))])
def match_sequence_of_tensors(x, y):
    match [x, y, 4]:
        case [1, 1, 3]:
            return x
        case [1, 1, _]:
            return x + 10
        case [1, *rest]:
            return rest[0] + rest[1] + 20
        case [a, 1 | 3, b]:
            return a * b + 30
    return -x


class Kept:
    __match_args__ = ("value", "kind")

    def __init__(self, value, kind):
        self.value = value
        self.kind = kind


@case("15.12", "L", [(f(1), f(1)), (f(1), f(5)), (f(2), f(1)), (f(2), f(5))])
def match_mapping_and_class_of_tensors(x, y):
    match {"a": x, "b": Kept(y, "k")}:
        case {"a": 1, "b": Kept(5, kind="k")}:
            return x
        case {"a": 1, **rest}:
            return rest["b"].value + 10
        case {"b": Kept(1 as n, kind)}:
            return n + len(kind)
    return -x


@case("15.12", "S", [(f(1),), (f(-1),)])
def match_singleton_on_a_condition(x):
    match bool(x > 0):
        case True:
            return x
        case False:
            return -x
    return x * 100


@case("15.12", "S", [(f(1),), (f(2),)])
def match_binds_only_what_fits(x):
    a = x * 0
    match (x, 2):
        case (a, 3):
            pass
        case (1, b):
            a = a + b
    return a


@case("15.12", "L", [(f(1, 2),), (f(3, 4),)], line_by_line=True)
def match_sequence_of_python(x):
    match x.tolist():
        case [1, n]:
            return x * n
    return x


@case("15.12", "S", [(f(1), f(2)), (f(3), f(1)), (f(3), f(4)), (f(1), f(1))], grad=(0, 1))
def match_alternatives_that_bind_differently(x, y):
    match (x, y):
        case (1, n) | (n, 1):
            return n * x * 10
    return x


@case("15.12", "S", [(f(1), f(5)), (f(5), f(2)), (f(5), f(3)), (f(5), f(6)), (f(3), f(2))])
def match_three_alternatives_that_bind_numbers(x, y):
    match (int(x), int(y), 4):
        case (1 as m, n, k) | (n, 2 as m, k) | (k, 3 as n, m) if n > 2:
            return x * n + m + k
    return -x


@case("15.12", "S", [(f(1), f(2)), (f(3), f(1)), (f(3), f(4))])
def match_alternatives_that_bind_rests(x, y):
    match [x, y]:
        case [1, *rest] | [*rest, 1]:
            rest.append(x)
            return rest[0] * 10 + sum(rest)
    return -x


@case.factory("15.12", "S", [(f(1), f(2)), (f(3), f(1)), (f(3), f(4))])
def match_alternatives_in_a_cell():
    class Net(nn.Cell):
        def construct(self, x, y):
            match {"a": x, "b": y}:
                case {"a": 1, "b": n} | {"b": 1, "a": n}:
                    return n * 10
            return x

    return Net()


@case("15.12", "L", [(f(1), f(2)), (f(3), f(1)), (f(3), f(4))], line_by_line=True)
def match_alternatives_that_bind_rests_of_dicts(x, y):
    match {"a": x, "b": y}:
        case {"a": 1, **rest} | {"b": 1, **rest}:
            return x * len(rest), sorted(rest)
    return x, []


@case("15.12", "L", [(f(1), f(2)), (f(3), f(1)), (f(3), f(4))], line_by_line=True)
def match_alternatives_that_bind_different_types(x, y):
    match (x, y, "a"):
        case (1, n, _) | (_, 1, n):
            return x, n
    return x, x


@case("15.12", "S", [(f(1),), (f(2),)])
def match_rest_is_changed(x):
    match [x, 1, 2]:
        case [1, *rest]:
            rest.append(5)
            return x * sum(rest)
    return x


@case("15.12", "S", [(f(1), f(1)), (f(1), f(3)), (f(2), f(3))])
def match_guard_rebinds(x, y):
    match [x, y, 7]:
        case [1, n, *rest] if (n := n + 1) > 3:
            return n * rest[0]
        case [_, n, _] if (n := n + 2) > 4:
            return n
    return x
