"""The `duograph show` command: writes an HTML page about a compiled function of a script.

`cli.main` runs it. By default the script is run as by `duograph run`, and the page shows the first
program that was compiled for the function. With ``--args`` the script is imported instead, and the
function is compiled for these arguments.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import pathlib
import re
import runpy
import sys
import traceback

import numpy as np

from .. import compat, dtype
from ..compiler import JitFunction, created_functions, jit
from ..errors import DuographError
from ..nn.cell import Cell
from ..pages import Page
from ..placement import device_of
from ..run import output_problem
from ..status_line import status_line
from ..tensor import Tensor
from ..tracebacks import prepare_for_printing
from .command import CommandError, Commands, UsageError, command, print_json

__all__ = ["add"]

EXAMPLES = """\
duograph show train.py:step                       # runs train.py
duograph show train.py:step -o step.html --open -- --epochs 1
duograph show model.py:loss --args "float32[8,3]" "int32[8]"
duograph show model.py:net --args "ms.ops.ones((4, 3))" "np.float32(2)"
duograph show model.py:Net.construct --args "Net()" "float32[4,3]" """

# A tensor of zeros, such as float32[8,3].
SHAPE = re.compile(r"(\w+)\[([\d\s,]*)\]")


def add(commands: Commands) -> None:
    """Add the parser of the subcommand."""
    made = command(
        commands,
        "show",
        _run,
        "write an HTML page about a compiled function",
        EXAMPLES.rstrip(),
        {
            1: "the script or the compilation failed",
            2: "a mistake in the command line: no such file or function, or it is not compiled",
        },
        usage="duograph show [-h] [-o FILE] [--open] [--device NAME] SCRIPT.py:FUNCTION "
        "[--json] [--args EXPR ...] [-- ARGUMENT ...]",
        json=True,
    )
    made.add_argument(
        "target", metavar="SCRIPT.py:FUNCTION", help="a function, method (Net.construct) or Cell"
    )
    made.add_argument(
        "--args",
        nargs="+",
        metavar="EXPR",
        help="compile for these arguments: Python expressions, in which np, ms and the script's "
        "names are known, or types such as float32[8,3]",
    )
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the page (default: FUNCTION.html; FILE.txt: its text; - is stdout)",
    )
    made.add_argument("--open", action="store_true", help="open the page in a browser")
    made.add_argument("--device", metavar="NAME", help="use this device, such as CPU or CUDA:1")


def _run(options: argparse.Namespace) -> int:
    script, function = _target(options.target)
    if options.json and options.output == "-":
        raise UsageError("--json and --output - both write to standard output; choose one")
    path = pathlib.Path(options.output or re.sub(r"\W+", "_", function) + ".html")
    problem = None if options.output == "-" else output_problem("--output", path)
    if problem is not None:
        raise UsageError(problem)
    try:
        if options.device is not None:
            device_of(options.device)
        compat.install(options.device, None)
    except DuographError as error:
        raise UsageError(error) from None
    # what the script prints must not mix with the page
    with created_functions() as made, contextlib.redirect_stdout(sys.stderr):
        if options.args is None:
            names = _run_script(script, options.program, "__main__")
            page = _recorded(script, function, names, made)
        else:
            names = _run_script(script, options.program, "duograph_show")
            page = _compiled(script, function, names, options.args)
    if options.output == "-":
        sys.stdout.write(str(page))
        return 0
    if options.open:
        page.open(path)
    else:
        page.save(path)
    if options.json:
        print_json({"function": function, "page": str(path), "bytes": path.stat().st_size})
    else:
        sys.stdout.write(f"wrote {path}\n")
    return 0


def _target(text: str) -> tuple[str, str]:
    """Split the argument SCRIPT.py:FUNCTION into the script's path and the function's name.

    Raises:
        UsageError: the argument has another form, or there is no readable file of this path.
    """
    script, colon, function = text.rpartition(":")
    if not colon or not script or not function:
        raise UsageError(f"got {text!r}; wanted SCRIPT.py:FUNCTION, such as train.py:step")
    if not os.path.exists(script):
        raise UsageError(f"there is no file {os.path.abspath(script)}")
    if not os.path.isfile(script) or not os.access(script, os.R_OK):
        raise UsageError(f"{os.path.abspath(script)} is not a file that can be read")
    return script, function


def _run_script(script: str, arguments: list[str], name: str) -> dict[str, object]:
    """Run a script under the module name `name`; return its global variables by name.

    `arguments` become `sys.argv[1:]`. A script that calls `sys.exit` counts as finished.

    Raises:
        SystemExit: with status 1, after an error of the script was printed.
        UsageError: the script, not a module that it imports, has a syntax error.
    """
    sys.argv[:] = [script, *arguments]
    sys.path[:1] = [os.path.dirname(os.path.realpath(script))]
    try:
        return runpy.run_path(script, run_name=name)
    except SystemExit as error:
        return _globals_of(error, script)
    except Exception as error:  # noqa: BLE001 (a script may raise anything; it is printed)
        if isinstance(error, SyntaxError) and error.filename in (None, script):
            at = script if error.lineno is None else f"{script}:{error.lineno}"
            raise UsageError(f"{at}: {error.msg}") from None
        prepare_for_printing(error)
        traceback.print_exception(error)
        raise SystemExit(1) from None


def _globals_of(error: BaseException, script: str) -> dict[str, object]:
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == script:
            return dict(frame.tb_frame.f_globals)
        frame = frame.tb_next
    return {}


def _recorded(
    script: str, function: str, names: dict[str, object], made: list[JitFunction]
) -> Page:
    """Return the page of the first program that a script compiled for a function.

    Args:
        script: path of the script, for messages.
        function: dotted name of the function or Cell.
        names: global variables of the script, by name.
        made: the compiled functions that the script created. Those whose qualified name ends with
            `function` count too, as a function inside another one is no global variable.

    Raises:
        UsageError: the script has no such function, or did not compile it.
    """
    value = _value(function, names)
    known = [f for f in made if f is value or _is_called(f, function)]
    if isinstance(value, Cell):
        held = (value.__dict__.get("_compiled"), value.__dict__.get("_graph"))
        known += [f for f in held if isinstance(f, JitFunction)]
    for each in known:
        entry = each.first_entry()
        if entry is not None:
            with status_line(f"making the page of {function}"):
                return each.page_of(*entry)
    others = ", ".join(dict.fromkeys(f.name for f in made if f.first_entry() is not None))
    compiled = f"compiled functions: {others}" if others else "the script compiled no function"
    if value is None and not known:
        raise UsageError(f"{script} has no function {function!r}; {compiled}")
    raise UsageError(
        f"{function} was not compiled: the script did not call it as a function of @jit or a Cell "
        f"in GRAPH_MODE; pass --args to compile it here; {compiled}"
    )


def _is_called(function: JitFunction, name: str) -> bool:
    full = getattr(function, "__qualname__", "")
    return bool(full == name or full.endswith((f".{name}",)))


def _value(function: str, names: dict[str, object]) -> object:
    """Return the object with the dotted name `function` among global variables, or None."""
    first, *rest = function.split(".")
    value = names.get(first)
    for name in rest:
        value = getattr(value, name, None)
    return value


def _compiled(script: str, function: str, names: dict[str, object], texts: list[str]) -> Page:
    """Compile a function of a script for arguments given as text; return its page.

    The other parameters are those of `_recorded`.

    Raises:
        UsageError: the script has no such function, or an argument cannot be evaluated.
        CommandError: compiling the function raised an error.
    """
    value = _value(function, names)
    if value is None:
        raise UsageError(f"{script} has no function {function!r}")
    if isinstance(value, type) or not callable(value):
        raise UsageError(f"{function} is no function and no Cell, but {type(value).__name__}")
    arguments = [_argument(text, names) for text in texts]
    shown = value if isinstance(value, (JitFunction, Cell)) else jit(value)
    try:
        with status_line(f"making the page of {function}"):
            return shown.show(*arguments)
    except Exception as error:  # noqa: BLE001 (the user's function may raise anything)
        text = f"{function}: {type(error).__name__}: {error}"
        if isinstance(error, TypeError) and "required positional" in str(error):
            text += _receiver_hint(function, names)
        raise CommandError(text) from None


def _receiver_hint(function: str, names: dict[str, object]) -> str:
    """Return how to pass `self`, if the dotted name `function` is that of a method; else "".

    `names` are the global variables of the script.
    """
    path, _, name = function.rpartition(".")
    owner = _value(path, names) if path else None
    if not isinstance(owner, type):
        return ""
    method = inspect.getattr_static(owner, name, None)
    if isinstance(method, (staticmethod, classmethod)):
        return ""
    return f'; the first argument of a method is the object, self: --args "{path}()" ...'


def _argument(text: str, names: dict[str, object]) -> object:
    """Evaluate the text of an argument; a type such as float32[8,3] means a Tensor of zeros.

    Other texts are Python expressions, in which `np`, `ms` and the script's global variables
    `names` are known.

    Raises:
        UsageError: the expression raised an error.
    """
    match = SHAPE.fullmatch(text.strip())
    kind = getattr(dtype, match[1], None) if match else None
    own = sys.modules[__package__.partition(".")[0]]
    try:
        if match and isinstance(kind, dtype.DType):
            shape = tuple(int(size) for size in match[2].split(",") if size.strip())
            return Tensor(np.zeros(shape), kind)
        return eval(text, {**names, "np": np, "ms": own})
    except Exception as error:  # noqa: BLE001 (an expression of the user may raise anything)
        raise UsageError(
            f"--args: {text!r} raised {type(error).__name__}: {error}; wanted a Python expression, "
            "or a dtype and a shape such as float32[8,3]"
        ) from None
