"""Constructs that compiled code does not support; each message names a remedy."""

# ruff: noqa: B033, F841 (what a program does not use is not what it is about)

from __future__ import annotations

import contextlib
import itertools
import sys

import duograph as ms
from frontend.wrong_programs import F, I, right, wrong

STRICT = ("STRICT",)
NO_CONTEXT = TypeError if sys.version_info >= (3, 11) else AttributeError


@wrong(RuntimeError, r"Unsupported expression 'Yield'", F(2), falls_back=True)
def generator(x):
    yield x  # <- here: yield x


@wrong(RuntimeError, r"Unsupported expression 'YieldFrom'", F(2), falls_back=True)
def generator_from(x):
    yield from (x, x)  # <- here: yield from (x, x)


@wrong(RuntimeError, r"Unsupported expression 'Yield'", F(2), falls_back=True)
def generator_in_a_branch(x):
    if x.shape[0] == 2:
        y = yield x  # <- here: yield x
    return x


@wrong(RuntimeError, r"Unsupported expression 'Yield'", F(2), made=True, falls_back=True)
def generator_as_a_helper():
    def rows(a):
        for i in range(2):
            yield a[i]  # <- here: yield a[i]

    def program(x):
        total = 0.0
        for row in rows(x):  # <- called here
            total = total + row
        return total

    return program


@wrong(RuntimeError, r"Unsupported statement 'AsyncFunctionDef'", F(2), eager=False, levels=STRICT)
async def asynchronous(x):  # <- here
    return x


@wrong(RuntimeError, r"Unsupported statement 'AsyncFunctionDef'", F(2), falls_back=True)
def asynchronous_inside(x):
    async def inner(a):  # <- here
        return a

    return x


@wrong(RuntimeError, r"'Await'|'AsyncFunctionDef'", F(2), eager=False, levels=STRICT, made=True)
def awaiting():
    async def other(a):
        return a

    async def program(x):  # <- here
        return await other(x)

    return program


@wrong(
    RuntimeError,
    r"Unsupported (statement 'Async(For|FunctionDef)')",
    F(2),
    eager=False,
    levels=STRICT,
)
async def asynchronous_loop(x):  # <- here
    async for row in x:
        x = x + row
    return x


@wrong(RuntimeError, r"Unsupported statement 'ClassDef'", F(2), falls_back=True)
def class_in_the_body(x):
    class Pair:  # <- here
        def __init__(self, a):
            self.a = a

    return Pair(x).a


@wrong(
    RuntimeError, r"Match: got alternatives .* bind 'n' to .* types: .*'a'", F(2), falls_back=True
)
def alternatives_that_bind_different_types(x):
    match (x[0], x[1], "a"):  # <- here
        case (1, n, _) | (_, 1, n):
            x = x * 2
    return x


@wrong(RuntimeError, r"Unsupported statement 'Try'", F(2), falls_back=True)
def catching_what_depends_on_a_tensor(x):
    try:  # <- here
        if x.sum() > 0:
            raise ValueError("positive")
    except ValueError:
        x = -x
    return x


@wrong(RuntimeError, r"Unsupported statement 'Try'", F(2), falls_back=True)
def catching_a_failed_assert_on_a_tensor(x):
    for _ in range(2):
        try:  # <- here
            assert x.sum() < 0
        except AssertionError:
            x = x - 10
    return x


@wrong(RuntimeError, r"Unsupported statement 'Try'", I(2), falls_back=True)
def catching_a_division_by_a_tensor(x):
    try:  # <- here
        n = 7 // (int(x[0]) - 1)
    except ZeroDivisionError:
        n = 0
    return x * n


@wrong(RuntimeError, r"Unsupported statement 'Try'", F(2), F(3), falls_back=True)
def catching_an_error_in_a_branch(x, y):
    try:  # <- here
        if x.sum() > 0:
            x = x + y
    except ValueError:
        x = -x
    return x


@wrong(RuntimeError, r"Unsupported statement 'Try'", -F(2), falls_back=True)
def finally_that_prints_after_a_raise(x):
    try:  # <- here
        if x.sum() > 0:
            raise ValueError("positive")
    finally:
        print("done")
    return x


@wrong(RuntimeError, r"Unsupported statement 'With'", F(2), F(3), falls_back=True)
def suppressing_an_error_in_a_branch(x, y):
    with contextlib.suppress(ValueError):  # <- here
        if x.sum() > 0:
            x = x + y
    return -x


@wrong(RuntimeError, r"Unsupported statement 'With'", -F(2), falls_back=True, made=True)
def leaving_after_a_raise():
    class Note:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            print("left")

    note = Note()

    def program(x):
        with note:  # <- here
            if x.sum() > 0:
                raise ValueError("positive")
        return x

    return program


@wrong(NO_CONTEXT, r"'Tensor' object does not support the context manager|__enter__", F(2))
def with_a_tensor(x):
    with x as y:  # <- here: x
        return y


@wrong(RuntimeError, r"open", F(2), levels=STRICT, eager=False)
def with_a_file(x):
    with open("/dev/null") as f:  # <- here
        text = f.read()
    return x


@wrong(TypeError, r"del: got 0; elements of a tensor cannot be deleted", F(2))
def deleting_a_row(x):
    del x[0]  # <- here
    return x


@wrong(ImportError, r"No module named 'no_such_module'", F(2))
def importing_nothing(x):
    import no_such_module  # <- here

    return no_such_module.f(x)


@wrong(ImportError, r"cannot import name 'no_such_name' from 'os'", F(2))
def importing_no_name(x):
    from os import no_such_name  # <- here

    return no_such_name(x)


@wrong(RuntimeError, r"\beval\b", F(2), levels=STRICT, eager=False)
def evaluating_text(x):
    return eval("x + 1")  # <- here: eval("x + 1")


@wrong(RuntimeError, r"\bexec\b", F(2), levels=STRICT, eager=False)
def executing_text(x):
    exec("y = 1")  # <- here: exec("y = 1")
    return x


@wrong(RuntimeError, r"\binput\b", F(2), levels=STRICT, eager=False)
def asking_the_user(x):
    return x * float(input())  # <- here: input()


@wrong(RuntimeError, r"\blocals\b", F(2), levels=STRICT, eager=False)
def looking_at_locals(x):
    return locals()["x"]  # <- here: locals()


@wrong(RuntimeError, r"\bid\b", F(2), levels=STRICT, eager=False)
def identity_of_a_tensor(x):
    return id(x)  # <- here: id(x)


@wrong(RuntimeError, r"(?i)Parameter", F(2), falls_back=True)
def parameter_in_the_body(x):
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")  # <- here
    return x * w


@wrong(RuntimeError, r"(?i)Parameter", F(2), falls_back=True, made=True)
def parameter_in_a_helper():
    def helper(a):
        return a * ms.Parameter(a, name="w")  # <- here

    def program(x):
        return helper(x)  # <- called here

    return program


@wrong(RuntimeError, r"unrolled.*iterations", F(2), eager=False, seconds=60)
def endless_loop(x):
    n = 0
    while True:  # <- here
        n += 1
    return x


@wrong(RuntimeError, r"unrolled.*iterations", F(2), eager=False, seconds=60)
def endless_iterator(x):
    n = 0
    for i in itertools.count():  # <- here
        n += i
    return x


@right(F(2))
def catching_what_is_known(x):
    try:
        n = int("abc")
    except ValueError:
        n = 7
    return x * n


@right(F(2))
def finally_without_a_handler(x):
    try:
        y = x + 1
    finally:
        x = x * 2
    return x + y


@right(F(2))
def with_a_library_object(x):
    with contextlib.suppress(ValueError):
        x = x * int("abc")
    return x


@right(F(2))
def generator_expression(x):
    return sum(x[i] for i in range(2))


@right(F(2))
def finally_after_what_may_raise(x):
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x + 1
    finally:
        z = x * 2
    return y + z


@right(F(2))
def walrus_and_set_and_import(x):
    import math

    if (n := len({1, 2, 2})) == 2:
        x = x * math.pi
    return x * n


@right(F(2))
def endless_loop_with_a_break(x):
    n = 0
    while True:
        n += 1
        if n > 5:
            break
    return x * n
