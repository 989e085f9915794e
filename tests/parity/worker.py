"""Process that runs docstring examples, for `run.py`; under MindSpore's Python and under ours.

Started as `PYTHON worker.py collect NAMES`, it prints the examples of the installed MindSpore as
JSON. Started as `PYTHON worker.py serve ALIAS`, it reads one example per line, runs it and writes
what every statement printed. It must import neither package before an example does, except by the
alias.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import random
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARSER = doctest.DocTestParser()
HEADS = ("Examples:", "Example:")


def examples_in(text: str) -> str:
    """Return the part of a docstring after the heading of its examples, or "" if it has none."""
    for head in HEADS:
        found = text.find(head)
        if found >= 0 and ">>> " in text[found:]:
            return text[found + len(head) :]
    return ""


def find(path: str) -> Any:
    """Return the object with a dotted path below mindspore; raise if there is none."""
    found: Any = importlib.import_module("mindspore")
    walked = "mindspore"
    for part in path.split("."):
        walked += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(walked)
    return found


def kind_of(path: str, value: object) -> str:
    """Return the row of the result table to which an example belongs."""
    head = path.split(".")[0]
    if head in ("Tensor", "Parameter"):
        return "Tensor methods"
    if head == "ops":
        return "Primitive classes" if inspect.isclass(value) else "ops functions"
    known = {
        "nn": "layers",
        "numpy": "numpy",
        "scipy": "scipy",
        "dataset": "datasets and transforms",
        "mint": "mint",
        "train": "training",
        "experimental": "optimisers",
    }
    return known.get(head, "others")


def documented(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (path, kind, examples) of every documented object, and of the methods of classes."""
    seen: set[str] = set()
    for path in sorted(names, key=lambda n: (n.count("."), len(n), n)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = find(path)
            except Exception:  # noqa: BLE001  (a name that MindSpore itself cannot import)
                continue
        members = [(path, value)]
        if inspect.isclass(value):
            members += [(f"{path}.{n}", m) for n, m in vars(value).items() if n[0] != "_"]
        for where, member in members:
            if isinstance(member, types.ModuleType):
                continue
            text = examples_in(inspect.getdoc(member) or "")
            if text and text not in seen:
                seen.add(text)
                yield where, kind_of(where, value if member is value else member), text


def collect(names_file: str) -> None:
    """Print every example of the names in a file, as one line of JSON each."""
    lines = Path(names_file).read_text().splitlines()
    names = [line.split("\t")[0] for line in lines if line and line[0] != "#"]
    for path, kind, text in documented(names):
        print(json.dumps({"path": path, "kind": kind, "text": inspect.cleandoc(text)}))


class Runner:
    """Runs examples one after the other, each with fresh globals and settings."""

    def __init__(self) -> None:
        self._count = 0

    def run(self, text: str) -> list[dict[str, str]]:
        """Run an example up to its first error.

        Return source, expected output, actual output and error of each statement.
        """
        try:
            statements = PARSER.get_examples(text)
        except ValueError as error:
            return [{"source": "", "want": "", "got": "", "error": f"ValueError: {error}"}]
        out = []
        space: dict[str, Any] = {"__name__": "__main__"}
        for statement in statements:
            self._count += 1
            got, error = self._execute(statement.source, space)
            out.append(
                {"source": statement.source, "want": statement.want, "got": got, "error": error}
            )
            if error:
                break
        return out

    def _execute(self, source: str, space: dict[str, Any]) -> tuple[str, str]:
        """Execute a statement; return its output and its error.

        The source is saved for `inspect`.
        """
        file = f"example_{self._count}.py"
        Path(file).write_text(source)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(source, str(Path(file).resolve()), "single"), space)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (any error is a result)
            last = traceback.format_exception_only(type(error), error)[-1].strip()
            message = str(error).strip().split("\n")[0]
            return printed.getvalue(), f"{type(error).__name__}: {message or last}"[:400]
        return printed.getvalue(), ""


def reset() -> None:
    """Reset settings that an example may have changed."""
    package = sys.modules.get("mindspore")
    if package is None:
        return
    with contextlib.suppress(Exception):
        package.set_context(mode=package.PYNATIVE_MODE)
    with contextlib.suppress(Exception):
        package.set_seed(random.randrange(2**31))


def serve(alias: str) -> None:
    """Read one example per line from standard input and answer each, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # what the package's C++ prints
        os.dup2(nowhere, stream)
    if alias:
        importlib.import_module(f"{alias}.compat").install()
    importlib.import_module("mindspore")
    answers.write("ready\n")
    answers.flush()
    runner = Runner()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in sys.stdin:
            reset()
            answers.write(json.dumps(runner.run(json.loads(line)["text"])) + "\n")
            answers.flush()
        os.chdir(tempfile.gettempdir())  # goes with the process; not the folder of its caller


if __name__ == "__main__":
    {"collect": collect, "serve": serve}[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else "")
