"""The examples in docstrings run and print what they say."""

from __future__ import annotations

import ast
import doctest
import math
import pathlib
import re
from collections.abc import Iterator

import pytest

CORE = pathlib.Path(__file__).resolve().parents[2] / "core" / "duograph"
FILES = [p for p in sorted(CORE.rglob("*.py")) if ">>> " in p.read_text()]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]\d+)?")


class CloseNumbers(doctest.OutputChecker):
    """Accepts floats that differ in the last digits, which depend on the processor."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        wanted, found = NUMBER.findall(want), NUMBER.findall(got)
        if len(wanted) == len(found) and all(
            math.isclose(float(a), float(b), rel_tol=1e-6, abs_tol=1e-7)
            for a, b in zip(wanted, found, strict=True)
        ):
            numbers = iter(found)
            want = NUMBER.sub(lambda _: next(numbers), want)
        return super().check_output(want, got, optionflags)


def examples(path: pathlib.Path) -> Iterator[tuple[str, int, str]]:
    """Yield (name, line, docstring) of everything in a file whose docstring has examples."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node)
            if text and ">>> " in text:
                yield getattr(node, "name", path.stem), getattr(node, "lineno", 1), text


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(CORE)))
def test_examples_print_what_they_say(path: pathlib.Path) -> None:
    parser = doctest.DocTestParser()
    failures: list[str] = []
    for name, line, text in examples(path):
        test = parser.get_doctest(text, {}, f"{path.name}:{line} {name}", str(path), line)
        doctest.DocTestRunner(CloseNumbers(), optionflags=OPTIONS, verbose=False).run(
            test, out=failures.append
        )
    assert not failures, "\n".join(failures)
