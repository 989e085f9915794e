"""`del` of global, nonlocal and local names in compiled functions."""

from __future__ import annotations

import linecache
import warnings
from typing import Any

import duograph as ms
import pytest
from duograph import Tensor, jit
from duograph.errors import UnsupportedSyntaxError

pytestmark = pytest.mark.usefixtures("restored")

SOURCES = {
    "global": "g = 3\ndef f(x):\n    global g\n    del g\n    return x * 2\n",
    "global under a condition": (
        "g = 3\ndef f(x):\n    global g\n    if x.sum() > 0:\n        del g\n    return x * 2\n"
    ),
    "global, then written": (
        "g = 3\ndef f(x):\n    global g\n    del g\n    g = 4\n    return x * g\n"
    ),
    "global of a helper": (
        "g = 3\ndef h():\n    global g\n    del g\ndef f(x):\n    h()\n    return x * 2\n"
    ),
    "nonlocal": (
        "def make():\n    y = 3\n"
        "    def f(x):\n        nonlocal y\n        del y\n        return x\n"
        "    def see():\n        return y\n    return f, see\nf, see = make()\n"
    ),
    "nonlocal of a local function": (
        "def f(x):\n    y = 3\n    def inner():\n        nonlocal y\n        del y\n    inner()\n"
        "    try:\n        return x * y\n    except NameError:\n        return x * 7\n"
    ),
    "local": "def f(x):\n    y = x * 2\n    del y\n    return x\n",
}


def outcome(name: str, transform: Any) -> Any:
    """Return the result of a call of `f`, and what is left of the names."""
    file = f"<deleted {name}>"
    linecache.cache[file] = (1, None, SOURCES[name].splitlines(True), file)
    space: dict[str, Any] = {}
    exec(compile(SOURCES[name], file, "exec"), space)
    result = transform(space["f"])(Tensor([1.0, 2.0])).asnumpy().tolist()
    try:
        seen = space["see"]() if "see" in space else space.get("g", "no g")
    except NameError as error:
        seen = type(error)
    return result, seen, "y" in space


@pytest.mark.parametrize("name", SOURCES)
def test_deleted(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*runs line by line")
        assert outcome(name, jit) == outcome(name, lambda f: f)


@pytest.mark.parametrize("name", [n for n in SOURCES if n != "local"])
def test_strict_refuses(name: str) -> None:
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(UnsupportedSyntaxError, match="global or nonlocal name"):
        outcome(name, jit)
