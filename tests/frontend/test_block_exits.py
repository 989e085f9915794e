"""Blocks that a condition may leave: `try`, `else`, `finally` and `with`, in every combination.

Each program of the tables runs line by line and compiled; the results, the printed text, and the
exceptions with their contexts must be equal. Conditions are on a Tensor and on a Python number.
"""

from __future__ import annotations

import textwrap

import duograph as ms
import pytest
from frontend.comparison import check_program
from frontend.corpus import f

CALLS = [(f(1), 1), (f(-2), -2), (f(3), 3)]
CONDITIONS = {"Tensor": "x > 0", "number": "n > 0"}
EXITS = ("return x * 2, t", "t = t * 7 + 1", "raise ValueError(n)", "break", "continue")

FINALLY = """
def f(x, n):
    t = 1
    for k in range(3):
        t = t + k
        try:
            if CONDITION:
                EXIT
            t = t * 7 + 2
        finally:
            LAST
        t = t * 7 + 4
    else:
        t = t * 7 + 5
    return x, t
"""
LAST = (
    "t = t + 3",
    "return x * 5, t",
    "break",
    "continue",
    "raise KeyError('k')",
    "t = t + 1\n            if CONDITION: return x * 9, t",
    "t = t + 1\n            if not (CONDITION): break",
    "t = t + 1\n            if CONDITION: continue",
)

ELSE = """
def f(x, n):
    t = 1
    for k in range(3):
        t = t + k
        try:
            if CONDITION:
                EXIT
            t = t * 7 + 2
        except ValueError as error:
            t = t + len(error.args)
            HANDLER
        else:
            t = t * 7 + 3
            if CONDITION:
                t = t + 1
                EXIT
        finally:
            t = t + 6
        t = t * 7 + 5
    else:
        t = t * 7 + 6
    return x, t
"""
HANDLERS = ("t = t + 1", "return x * 5, t", "break", "raise KeyError('k')", "raise")


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("leave", EXITS)
def test_finally(leave: str, last: str, condition: str) -> None:
    source = FINALLY.replace("EXIT", leave).replace("LAST", last)
    check_program(source.replace("CONDITION", CONDITIONS[condition]), CALLS)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("leave", EXITS)
def test_else(leave: str, handler: str, condition: str) -> None:
    source = ELSE.replace("EXIT", leave).replace("HANDLER", handler)
    check_program(source.replace("CONDITION", CONDITIONS[condition]), CALLS)


WHILE = """
def f(x, n):
    t = 1
    while x * 0 + t < 900:
        t = t * 2 + 3
        try:
            if CONDITION and t > 20:
                EXIT
            t = t + 1
        except KeyError:
            t = 0
        else:
            t = t + 100
        finally:
            t = t + 5
        t = t + 3
    else:
        t = t + 7
    return x, t
"""


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("leave", EXITS)
def test_loop_of_the_graph(leave: str, condition: str) -> None:
    source = WHILE.replace("EXIT", leave).replace("CONDITION", CONDITIONS[condition])
    check_program(source, CALLS)


READ_AFTER_RETURN = {
    "a nested function reads it": """
        def f(x, n):
            def make():
                t = 1
                def read():
                    return t
                if x > 0:
                    t = 2
                    return read
                t = 3
                return read
            return x * make()()
        """,
    "of another type in the other branch": """
        def f(x, n):
            def make():
                t = 1
                def read():
                    return t
                if x > 0:
                    t = x
                    return read
                t = "three"
                return read
            make()
            return x
        """,
    "a manager reads it": """
        class Guard:
            def __init__(self, leave):
                self.leave = leave
            def __enter__(self):
                return self
            def __exit__(self, *error):
                self.leave()

        def f(x, n):
            t = x * 0
            seen = [t]
            def leave():
                seen[0] = seen[0] + t
            def run():
                nonlocal t
                with Guard(leave):
                    if x > 0:
                        t = t + 5
                        return x
                    t = t + 7
                return -x
            return run(), seen[0]
        """,
}


@pytest.mark.parametrize("name", READ_AFTER_RETURN)
def test_variable_read_after_return(name: str) -> None:
    check_program(textwrap.dedent(READ_AFTER_RETURN[name]), CALLS)


RERAISED = {
    "after another handler": """
        try:
            raise ValueError(n)
        except ValueError:
            try:
                raise KeyError(2)
            except KeyError:
                pass
            raise
        """,
    "in a helper": """
        def again():
            raise
        try:
            raise ValueError(n)
        except ValueError:
            again()
        """,
    "in a helper, caught": """
        def again():
            raise
        try:
            try:
                raise ValueError(n)
            except ValueError:
                again()
        except ValueError as error:
            return x, error.args
        """,
    "in finally": """
        try:
            try:
                raise ValueError(n)
            finally:
                if n > 0:
                    raise
        except ValueError as error:
            return x, error.args
        """,
    "in __exit__": """
        with manager:
            raise ValueError(n)
        """,
    "context of a later error": """
        try:
            raise ValueError(n)
        except ValueError:
            print("handled")
            raise KeyError("k")
        finally:
            pass
        """,
    "context of a later error of a cause": """
        try:
            raise ValueError(n)
        except ValueError as error:
            print("handled")
            raise KeyError("k") from error
        """,
    "outside a handler": "raise",
}
MANAGER = """
class Again:
    def __enter__(self):
        pass

    def __exit__(self, *error):
        raise

manager = Again()
"""


@pytest.mark.parametrize("name", RERAISED)
def test_reraise_and_context(name: str) -> None:
    body = textwrap.indent(textwrap.dedent(RERAISED[name]).strip("\n"), "    ")
    check_program(f"{MANAGER}\ndef f(x, n):\n{body}", CALLS)


def test_condition_in_finally_decides_whether_an_error_is_dropped() -> None:
    source = """
    def f(x, n):
        try:
            raise ValueError(n)
        finally:
            if x > 0:
                return x
    """
    check_program(textwrap.dedent(source), CALLS, line_by_line=True)


@pytest.mark.parametrize("branch", ["del y", "y = x * 2\n        del y"])
def test_unbound_in_one_branch_is_not_caught_for_both(branch: str) -> None:
    source = f"""
def f(x, n):
    y = x
    if x > 0:
        {branch}
    try:
        return y
    except UnboundLocalError:
        return "unbound"
"""
    check_program(source, CALLS, line_by_line=True)


@pytest.mark.parametrize("strict", [False, True])
def test_else_runs_compiled(strict: bool) -> None:
    def leave(x):
        try:
            if x > 0:
                return x * 2
        except KeyError:
            return x
        else:
            x = x + 100
        return x

    compiled = ms.jit(leave, fullgraph=strict)
    for v in (1.0, -1.0):
        assert float(compiled(ms.Tensor(v))) == float(leave(ms.Tensor(v)))
