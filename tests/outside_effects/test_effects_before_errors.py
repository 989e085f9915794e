"""A compiled function that always raises: what it did before the error must have happened."""

from __future__ import annotations

import contextlib
import io
import linecache
import warnings
from collections.abc import Callable
from typing import Any

import duograph as ms
import numpy as np
import pytest
from duograph import Parameter, Tensor, jit, ops
from duograph.conformance.compare import difference_of, snapshot
from duograph.errors import JoinError, UnsupportedSyntaxError

pytestmark = pytest.mark.usefixtures("restored")

HEAD = """
class Box:
    def __init__(self):
        self.w = Tensor([1.0, 2.0])
        self.v = None

box = Box()
P = Parameter(Tensor([8.0, 9.0]), name="p")
G = Tensor([1.0, 1.0])
L = [1.0]
seen = []
WATCH = ("box.w", "box.v", "P", "G", "L", "seen")

def helper(a):
    return a

def fail(a):
    raise OSError("host")

def write(t):
    t[1] = 3.0

def write_and_fail(t):
    t[1] = 7.0
    return [][0]

def f(x, A, D):
    global G
    {effect}
    {error}
    return x
"""
EFFECTS = {
    "write an argument": "x[0] = 5.0",
    "write a slice": "x[0:1] = 5.0",
    "augmented assignment": "x += 1",
    "method in place": "x.add_(1)",
    "write in a helper": "write(x)",
    "write an item of an argument": "A[0][0] = 9.0",
    "write a value of an argument": "D['t'][0] = 9.0",
    "change a list argument": "A.append(1)",
    "change a dict argument": "D['new'] = x",
    "write a Parameter": "P[0] = 5.0",
    "assign a Parameter": "ops.assign(P, x)",
    "write an outside Tensor": "box.w[0] = 5.0",
    "store and write": "box.w = x; box.w[1] = 5.0",
    "rebind an attribute": "box.v = x * 2",
    "rebind a global": "G = x * 2",
    "change an outside list": "L.append(x)",
    "call a method": "seen.extend([x, 1])",
    "print": "print('before')",
    "a loop": "for i in range(2): x[i] = 9.0",
    "a graph loop": "while x.sum() < 9: x[0] = x[0] + 2",
    "a branch": "if x.sum() > 0: x[0] = 4.0",
    "nothing": "pass",
}
ERRORS = {
    "raise": "raise ValueError('a')",
    "assert": "assert False, 'no'",
    "index": "[][0]",
    "key": "{}['a']",
    "division": "1 / 0",
    "attribute of a Tensor": "x.foo",
    "attribute of None": "None.foo",
    "type": "len(3)",
    "name": "undefined_name",
    "unbound": "late; late = 1",
    "unpacking": "a, b, c, d = [x]",
    "arguments": "helper(1, 2, 3)",
    "number": "int('q')",
    "in a helper": "write_and_fail(x)",
    "shape": "x + Tensor(np.ones(7, np.float32))",
    "reshape": "x.reshape((5,))",
    "after a handler": "try: [][0]\n    except KeyError: x[1] = 6.0",
    "in finally": "try: [][0]\n    finally: x[1] = 6.0",
    "under a condition": "if x.sum() > 0: raise ValueError(x)",
    "assert on a Tensor": "assert x.sum() < 0, 'no'",
    "under two conditions": (
        "if x.sum() > 0:\n        x[1] = 8.0\n        if x[1] > 0: raise KeyError('q')"
    ),
    "in a loop": "for i in range(3):\n        if x.sum() > 0: raise ValueError(i)",
    "in a graph loop": "while x.sum() > 0: raise ValueError('w')",
    "raised again": (
        "try:\n        if x.sum() > 0: raise ValueError('a')\n"
        "    except ValueError:\n        x[1] = 11.0\n        raise"
    ),
    "caught": (
        "try:\n        if x.sum() > 0: raise ValueError('a')\n"
        "    except ValueError: x[1] = 11.0"
    ),
    "host call": "fail(x)",
    "host call with a number": "fail(float(x.sum()))",
    "text of a Tensor": "int(str(x.sum()) + 'q')",
}  # fmt: skip


def observed(source: str, compile_it: Callable[[Any], Any]) -> list[Any]:
    """Return the class of the error, what was printed, and all objects after each of two calls."""
    file = f"<effects {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {
        "ms": ms,
        "ops": ops,
        "np": np,
        "Tensor": Tensor,
        "Parameter": Parameter,
    }
    exec(compile(source, file, "exec"), space)
    f = compile_it(space["f"])
    found = []
    for _ in range(2):
        x, held = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
        arguments = x, [held], {"t": x}
        out, kind = io.StringIO(), None
        with contextlib.redirect_stdout(out):
            try:
                f(*arguments)
                ms.synchronize()
            except Exception as error:  # noqa: BLE001 (its class is compared)
                kind = type(error)
        box = space["box"]
        state = [box.w, box.v, *[space[k] for k in ("P", "G", "L", "seen")], arguments, held]
        found.append((kind, out.getvalue(), snapshot(state)))
    return found


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("error", ERRORS)
def test_as_line_by_line(error: str, level: str) -> None:
    wrong = []
    for effect, code in EFFECTS.items():
        source = HEAD.replace("{effect}", code).replace("{error}", ERRORS[error])
        want = observed(source, lambda f: f)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*runs line by line")
            got = observed(source, lambda f: jit(f, jit_level=level))
        text = difference_of(want, got)
        if text is not None:
            wrong.append(f"{effect}: {text}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("effect", [e for e in EFFECTS if e != "nothing"])
def test_strict_refuses_or_does_it(effect: str) -> None:
    """There is no third way: STRICT says what it cannot do, or the effect has happened."""
    source = HEAD.replace("{effect}", EFFECTS[effect]).replace("{error}", "[][0]")
    want = observed(source, lambda f: f)
    ms.set_context(jit_syntax_level=ms.STRICT)
    got = observed(source, jit)
    refused = [issubclass(kind, (UnsupportedSyntaxError, JoinError)) for kind, _, _ in got]
    assert all(refused) or difference_of(want, got) is None
