"""Process that makes sampled calls, for `calls.py`; runs under MindSpore's Python and under ours.

Started as `PYTHON call_worker.py serve ALIAS`, it reads one call per line, makes it in eager mode,
compiled, and under a gradient, as the call asks, and writes the outcomes. It does not judge them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import linecache
import os
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from plain import NotPlain, is_tensor, read, write
from worker import find

Call = dict[str, Any]
Outcome = dict[str, Any]


def set_weights(layer: Any, package: Any) -> None:
    """Set the Parameters of a layer to values that do not depend on random numbers."""
    if not hasattr(layer, "get_parameters"):
        return
    for parameter in layer.get_parameters():
        size = int(np.prod(parameter.shape))
        numbers = 0.1 + 0.05 * (3 * np.arange(size) % 7)
        parameter.set_data(package.Tensor(numbers.reshape(parameter.shape), parameter.dtype))


class Target:
    """A call that is ready to run: its target, its tensors, and a function of these tensors."""

    def __init__(self, call: Call, package: Any, number: int) -> None:
        target = None if call["kind"] == "method" else find(call["path"])
        if call["kind"] == "class":
            init, named = read(call["init"], package), read(call["init_kwargs"], package)
            target = target(*init, **named)  # type: ignore[misc]
            set_weights(target, package)
        self.tensors: list[Any] = []
        space: dict[str, Any] = {"target": target, "__name__": "sampled"}
        parts = [self._part(v, space, package) for v in call["args"][1]]
        for key, value in call["kwargs"][1]:
            parts.append(f"{key}={self._part(value, space, package)}")
        head = "target"
        if call["kind"] == "method":
            head = f"({parts.pop(0)}).{call['path'].rpartition('.')[2]}"
        names = ", ".join(f"t{k}" for k in range(len(self.tensors)))
        source = f"def sampled({names}):\n    return {head}({', '.join(parts)})\n"
        file = os.path.abspath(f"sampled_{number}.py")
        with open(file, "w") as out:  # MindSpore's compiler reads the file
            out.write(source)
        linecache.checkcache(file)
        module = types.ModuleType("sampled")
        module.__dict__.update(space)
        exec(compile(source, file, "exec"), module.__dict__)
        sys.modules["sampled"] = module  # MindSpore's compiler imports it
        self.function: Callable[..., Any] = module.__dict__["sampled"]

    def _part(self, plain: Any, space: dict[str, Any], package: Any) -> str:
        """Return the source text of an argument: a parameter, a tuple or list, or a global name."""
        if is_tensor(plain) and plain[0] == "tensor":
            self.tensors.append(read(plain, package))
            return f"t{len(self.tensors) - 1}"
        if isinstance(plain, list) and plain[0] in ("tuple", "list") and plain[1]:
            inner = ", ".join(self._part(v, space, package) for v in plain[1])
            return f"[{inner}]" if plain[0] == "list" else f"({inner},)"
        name = f"c{len(space)}"
        space[name] = read(plain, package)
        return name


def attempt(make: Callable[[], Any], package: Any) -> Outcome:
    """Return the serialised result of `make`, or the class names and text of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = make()
            return {"value": _result(value, package)}
    except (Exception, SystemExit) as error:  # noqa: BLE001  (any error is a result)
        names = [cls.__name__ for cls in type(error).__mro__ if cls is not object]
        return {"error": names, "text": str(error).strip()[:160]}


def _result(value: Any, package: Any) -> Any:
    if isinstance(value, tuple | list):
        return [
            "tuple" if isinstance(value, tuple) else "list",
            [_result(v, package) for v in value],
        ]
    try:
        return write(value, package)
    except NotPlain:
        return ["other", type(value).__name__]


def outcomes(call: Call, package: Any, number: int) -> dict[str, Outcome]:
    """Make a call in the modes that it asks for, each time with new arguments.

    Return the outcomes.
    """
    found: dict[str, Outcome] = {}
    package.set_context(mode=package.PYNATIVE_MODE)
    for name in ("eager", "again"):

        def eager() -> Any:
            made = Target(call, package, number)
            result = made.function(*made.tensors)
            return result, list(made.tensors)  # the tensors too: the call may have changed them

        found[name] = attempt(eager, package)
    if call.get("gradient") and "value" in found["eager"]:

        def gradient() -> Any:
            made = Target(call, package, number)
            floats = tuple(k for k, t in enumerate(made.tensors) if t.is_floating_point())
            if not floats:
                return None
            positions = floats if floats[1:] else floats[0]  # a bare gradient of one, in both
            return package.grad(made.function, positions)(*made.tensors)

        found["gradient"] = attempt(gradient, package)
    if call.get("graph"):

        def compiled() -> Any:
            made = Target(call, package, number)
            return package.jit(made.function)(*made.tensors), []

        found["graph"] = attempt(compiled, package)
    return found


def serve(alias: str) -> None:
    """Read one call per line from standard input and answer each, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    if alias:
        importlib.import_module(f"{alias}.compat").install()
    package = importlib.import_module("mindspore")
    answers.write("ready\n")
    answers.flush()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, line in enumerate(sys.stdin):
            answers.write(json.dumps(outcomes(json.loads(line), package, number)) + "\n")
            answers.flush()
            with contextlib.suppress(OSError):
                os.unlink(f"sampled_{number}.py")
        os.chdir(tempfile.gettempdir())  # goes with the process; not the folder of its caller


if __name__ == "__main__":
    serve(sys.argv[2] if len(sys.argv) > 2 else "")
