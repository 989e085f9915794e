"""Records the calls that MindSpore's docstring examples make of the documented function.

`calls.py` starts `PYTHON harvest.py NAMES` with MindSpore's Python. It reads one example per line,
as `worker.py` collects them, and writes the first recorded calls of each. These are valid calls
with sensible arguments, from which `sampling.py` makes others. It must never run with duograph.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from plain import NotPlain, write
from worker import Runner, find

Call = dict[str, Any]
MOST = 4  # calls of one example


def kind_of(path: str, value: object) -> str:
    """Return the kind of callable at a path: "function", "method", "class", or "" for none."""
    if path.split(".")[0] in ("Tensor", "Parameter"):
        return "method" if callable(value) else ""
    return "class" if inspect.isclass(value) else "function" if callable(value) else ""


@contextlib.contextmanager
def recording(path: str, package: Any, calls: list[Call]) -> Iterator[None]:
    """Return a context in which calls of the object at `path` are appended to `calls`."""
    owner_path, _, name = path.rpartition(".")
    owner, value = find(owner_path), find(path)
    kind = kind_of(path, value)
    if kind == "class":
        with _recording_class(path, value, package, calls):
            yield
        return
    if not kind:
        yield
        return

    @functools.wraps(value)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        _note(calls, path, kind, package, {"args": args, "kwargs": kwargs})
        return value(*args, **kwargs)

    setattr(owner, name, recorded)
    try:
        yield
    finally:
        setattr(owner, name, value)


@contextlib.contextmanager
def _recording_class(path: str, cls: Any, package: Any, calls: list[Call]) -> Iterator[None]:
    """Record the arguments of the constructor and of the calls of its instances."""
    made: dict[int, tuple[Any, Any, Any]] = {}
    own_init, own_call = cls.__dict__.get("__init__"), cls.__dict__.get("__call__")
    init: Callable[..., Any] = cls.__init__
    if not any("__call__" in vars(base) for base in cls.__mro__):
        yield
        return
    call: Callable[..., Any] = cls.__call__

    @functools.wraps(init)
    def recorded_init(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls:
            made.setdefault(id(self), (self, args, kwargs))
        init(self, *args, **kwargs)

    @functools.wraps(call)
    def recorded_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) in made:
            _, first, named = made[id(self)]
            told = {"init": first, "init_kwargs": named, "args": args, "kwargs": kwargs}
            _note(calls, path, "class", package, told)
        return call(self, *args, **kwargs)

    cls.__init__, cls.__call__ = recorded_init, recorded_call
    try:
        yield
    finally:
        for name, kept in (("__init__", own_init), ("__call__", own_call)):
            if kept is None:
                delattr(cls, name)
            else:
                setattr(cls, name, kept)


def _note(calls: list[Call], path: str, kind: str, package: Any, told: dict[str, Any]) -> None:
    if len(calls) >= MOST:
        return
    with contextlib.suppress(NotPlain):
        plain = {k: write(v, package) for k, v in told.items()}
        calls.append({"path": path, "kind": kind, **plain})


def main() -> None:
    """Read one example per line from standard input and answer each, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    package = importlib.import_module("mindspore")
    answers.write("ready\n")
    answers.flush()
    runner = Runner()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in sys.stdin:
            example, calls = json.loads(line), []  # type: dict[str, str], list[Call]
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.suppress(Exception),
                recording(example["path"], package, calls),
            ):
                runner.run(example["text"])
            answers.write(json.dumps(calls) + "\n")
            answers.flush()
        os.chdir(tempfile.gettempdir())  # goes with the process; not the folder of its caller


if __name__ == "__main__":
    main()
