"""A function parsed on its own has the same syntax tree and positions as in its file."""

from __future__ import annotations

import ast
import linecache
from types import CellType, CodeType, FunctionType
from typing import Any

import pytest
from duograph.frontend import source

FILES: dict[str, str] = {
    "plain": "def f(x):\n    return x\n\ndef g(x): return x + 1\ndef h(x): return x\n",
    "the last, without a newline": "x = 1\ndef f(x):\n    return x",
    "decorated": "@staticmethod\n@property\n\n# here\ndef f(x):\n    return x\n"
    "\n@property\nasync def g(): pass\n",
    "a decorator of several lines": "@print(\n1,\n2)\ndef f(x):\n    return x\n",
    "methods": "class A:\n    def f(self):\n        return 1\n\n    @property\n    def g(self):\n        return 2\n    x = 3",
    "nested": "def f():\n    def g():\n        def h():\n            return 1\n        return h\n    return g\n",
    "comments to the left": "class A:\n  def f(self):\n# no\n    a = 1\n # no\n\n    return a\n  def g(self): pass\n",
    "strings to the left": 'class A:\n    def f(self):\n        a = """\nno\n"""\n        return a\n    def g(self): pass\n',
    "brackets to the left": "class A:\n    def f(self):\n        return (1,\n2)\n    def g(self): pass\n",
    "a line that goes on": "def f(x):\n    return x + \\\n1\ndef g(x): pass\n",
    "arguments as formatters have them": "@print(\n    1\n)\ndef f(\n    x,\n) -> int:\n    return x\n",
    "arguments in brackets": "def f(\n    x,\n    y=(\n1),\n):\n    return x\n",
    "arguments to the left": "class A:\n    def f(\n  self,\n):\n        return 1\n",
    "tabs": "class A:\n\tdef f(self):\n\t\tif 1:\n\t\t    return 1\n\tdef g(self): pass\n",
    "under a condition": "if True:\n    def f(x):\n        return x\nelse:\n    def f(x):\n        return -x\n",
    "wide letters": "def f(x):\n    ä = 'ß'; return ä\n",
    "lambdas": "f = lambda x: x\ng = [lambda y: y,\n     lambda z: z]\n",
    "begins at once": "def f(x):\n    '''\n    doc\n    '''\n",
}
# Those that are not over before a line that is indented no deeper are found in the tree of the
# whole file.
WHOLE = {("strings to the left", "f"), ("brackets to the left", "f"), ("a line that goes on", "f"),
         ("arguments in brackets", "f"), ("arguments to the left", "f")}  # fmt: skip


def codes(code: CodeType) -> list[CodeType]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return [c for each in inner for c in (each, *codes(each))]


def shown(node: Any) -> str:
    return ast.dump(node, include_attributes=True)


@pytest.mark.parametrize("name", FILES)
def test_function_parsed_alone_equals_the_one_in_its_file(name: str) -> None:
    lines = FILES[name].splitlines(keepends=True)
    whole: dict[tuple[int, str], list[Any]] = {}
    source._collect(ast.parse(FILES[name]), whole)
    compared = 0
    for code in codes(compile(FILES[name], name, "exec")):
        key = code.co_firstlineno, code.co_name
        if key not in whole:
            continue  # the body of a class
        found = source._defined(lines, code)
        assert bool(found) == (code.co_name != "<lambda>" and (name, code.co_name) not in WHOLE), (
            key
        )
        if found:
            assert [shown(node) for node in found] == [shown(node) for node in whole[key]]
        compared += 1
    assert compared == sum(map(len, whole.values()))


@pytest.mark.parametrize("name", FILES)
def test_every_function_is_found(name: str) -> None:
    file = f"<source {name}>"
    lines = FILES[name].splitlines(keepends=True)
    linecache.cache[file] = (len(FILES[name]), None, lines, file)
    for code in codes(compile(FILES[name], file, "exec")):
        if code.co_name != "A":
            free = tuple(CellType() for _ in code.co_freevars)
            node = source.source_of(FunctionType(code, {}, None, None, free)).node
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            assert (first, getattr(node, "name", "<lambda>")) == (code.co_firstlineno, code.co_name)
