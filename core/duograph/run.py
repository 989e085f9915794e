"""Runs a program for MindSpore on duograph: `duograph run script.py`.

The `duograph` command and `python -m duograph.run` call `main`. The program runs with the same
arguments, `__main__`, search path and exit status as under `python script.py`; tracebacks start at
its own code.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import runpy
import sys
import types
import zipfile
from collections.abc import Callable, Iterator, Sequence

from . import launcher
from .compat import install
from .errors import DuographError
from .profiler import profile
from .ranks.world import end_ranks
from .tracebacks import prepare_for_printing

__all__ = ["add_arguments", "main", "output_problem", "problem_of"]

USAGE = "duograph run [-n N] [--device NAME] [--mode MODE] (SCRIPT | -m MODULE) [ARGUMENT ...]"
EXAMPLES = """examples:
  duograph run train.py --epochs 3
  duograph run --device CPU --mode GRAPH train.py --device_target Ascend
  python -m duograph.run -m package.train --epochs 3
  duograph run -n 4 train.py

`import mindspore` means duograph in the program and in the Python processes that it
starts, whether MindSpore itself is installed or not.

exit status:
  that of the program; 1 if it raised an error; 2 for a mistake in the command line"""
WITH_VALUE = ("--device", "--mode", *launcher.WITH_VALUE)
ARCHIVES = (".zip", ".pyz")  # suffixes of zip files with a program
OURS = (__file__, runpy.__file__, "<frozen runpy>")  # files of the frames above the program's


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program as the command line of `duograph run` says.

    Args:
        arguments: what stands after `duograph run`; by default the arguments of this process.

    Returns:
        The exit status: 0 if the program ended well, 2 for a mistake in the command line, 1 for an
            unknown module; with several ranks, that of the launcher.

    Raises:
        SystemExit: the program has called `sys.exit`; its other errors are raised as well.

    Examples:
        >>> from duograph.run import main
        >>> main(["no_such_script.py"])
        2
    """
    own, rest = _split(list(sys.argv[1:] if arguments is None else arguments))
    options = _parser().parse_args(own)
    if options.module is None and options.script is None:
        _parser().print_help(sys.stderr)
        return 2
    problem = problem_of(options.script) if options.module is None else None
    if options.trace is not None:
        problem = problem or output_problem("--trace", options.trace)
    if options.log_dir is not None and os.path.isfile(options.log_dir):
        problem = problem or f"--log_dir: got {options.log_dir}, which is a file; wanted a folder"
    if problem is not None:
        return _refuse(problem, 2)
    size = launcher.wanted_ranks(options)
    if isinstance(size, str):
        return _refuse(size, 2)
    if size > 1:
        return launcher.start_ranks(size, options, _arguments_of_a_rank(options, rest))
    launcher.prepare_rank()
    try:
        install(options.device, options.mode)
    except DuographError as error:
        return _refuse(str(error), 2)
    sys.excepthook = _from_program_on
    try:
        with _recorded(launcher.trace_path(options)):
            if options.module is not None:
                return _run_module(options.module, rest)
            return _run_script(options.script, rest)
    except SystemExit as ended:
        end_ranks(ended.code)
        raise


def problem_of(script: str) -> str | None:
    """Return why Python cannot start a program, or None if `script` names one that it can read.

    A program is a file, or a folder or zip file with a `__main__.py`.
    """
    path = os.path.abspath(script)
    if not os.path.exists(path):
        return f"can't open file {path!r}: no such file"
    if not os.access(path, os.R_OK):
        return f"can't open file {path!r}: permission denied"
    inside: Sequence[str] | None = None
    if os.path.isdir(path):
        inside = os.listdir(path)
    elif path.endswith(ARCHIVES) and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            inside = archive.namelist()
    if inside is not None and not {"__main__.py", "__main__.pyc"} & set(inside):
        return f"can't find '__main__.py' in {path!r}; wanted a program"
    return None


def output_problem(option: str, path: str | os.PathLike[str]) -> str | None:
    """Return why a file cannot be written: it has no folder, or is a folder; None if it can.

    `option` is the name of the option that names the file. Commands that run a program ask first,
    so that the results of a long run are not lost.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        return f"{option}: got {os.fspath(path)}; there is no folder {folder}; create it first"
    if os.path.isdir(path):
        return f"{option}: got {os.fspath(path)}, which is a folder; wanted a file"
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        return f"{option}: got {os.fspath(path)}, which you may not write; wanted another path"
    return None


@contextlib.contextmanager
def _recorded(path: str | None) -> Iterator[None]:
    """Return a context manager that profiles its block and writes the trace to the file `path`.

    The trace is written even if the block raises. With None, nothing is profiled.
    """
    if path is None:
        yield
        return
    with profile() as recorded:
        try:
            yield
        finally:
            recorded.stop()
            recorded.export_chrome_trace(path)


def _arguments_of_a_rank(options: argparse.Namespace, rest: list[str]) -> list[str]:
    """Return the arguments of `duograph run` for one of the ranks that `duograph run -n N` starts.

    They are the device and the mode in `options`, the program, and `rest`, the program's own
    arguments.
    """
    own = [f"--{name}={getattr(options, name)}" for name in ("device", "mode")
           if getattr(options, name) is not None]  # fmt: skip
    program = [options.script] if options.module is None else ["-m", options.module]
    return [*own, *program, *rest]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duograph run",
        usage=USAGE,
        description="Run a Python program in which `import mindspore` means duograph.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `duograph run` to a parser."""
    parser.add_argument("--device", metavar="NAME", help="use this device, such as CPU or CUDA:1")
    parser.add_argument(
        "--mode", choices=("GRAPH", "PYNATIVE"), type=str.upper, help="use this mode"
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module or package")
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help="a file, folder or zip file")
    launcher.add_rank_arguments(parser)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line into arguments of `duograph run` and those of the program.

    The first part ends with the program's name.
    """
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at].startswith("-m"):
            at += len(arguments[at]) == 2
            break
        at += 2 if arguments[at] in WITH_VALUE else 1
    return arguments[: at + 1], arguments[at + 1 :]


def _refuse(text: str, status: int) -> int:
    sys.stderr.write(f"duograph run: {text}\n")
    return status


def _run_script(script: str, arguments: list[str]) -> int:
    """Run a file, folder or zip file as `python script` does; return the exit status."""
    sys.argv[:] = [script, *arguments]
    if os.path.isfile(script) and not script.endswith(ARCHIVES):
        _search_first(os.path.dirname(os.path.realpath(script)))
    else:
        del sys.path[:1]  # runpy puts the folder or zip file there
    return _run(lambda: runpy.run_path(script, run_name="__main__"))


def _run_module(module: str, arguments: list[str]) -> int:
    """Run a module or a package's `__main__` as `python -m module` does; return the exit status."""
    _search_first(os.getcwd())
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        return _refuse(f"no module named {module!r}", 1)
    sys.argv[:] = ["-m", *arguments]
    return _run(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))


def _search_first(folder: str) -> None:
    """Replace the first entry of `sys.path`, the folder of the `duograph` command, by `folder`.

    Do nothing if Python adds no such entry (option ``-P``).
    """
    if getattr(sys.flags, "safe_path", False):
        return
    sys.path[:1] = [folder]


def _run(run: Callable[[], dict[str, object]]) -> int:
    """Call `run`, which runs a program by runpy and returns its global names; return exit status 0.

    The names stay in `__main__`, where exit handlers and threads may read them, even if the program
    raises.
    """
    try:
        names = run()
    except BaseException as error:  # SystemExit too; all are raised again
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename in OURS:
            frame = frame.tb_next
        if frame is not None and frame.tb_frame.f_globals.get("__name__") == "__main__":
            _keep(frame.tb_frame.f_globals)
        raise
    _keep(names)
    return 0


def _keep(names: dict[str, object]) -> None:
    module = types.ModuleType("__main__")
    vars(module).update(names)
    sys.modules["__main__"] = module


def _from_program_on(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    """Print an exception with a traceback that starts at the program's own code.

    It is installed as `sys.excepthook`; the frames of this command and of runpy are left out. What
    Python cannot even compile has no frames of its own, and then none is printed.
    """
    frame = trace
    while frame is not None and frame.tb_frame.f_code.co_filename != __file__:
        frame = frame.tb_next  # of `duograph.cli`, and of what has started it
    if frame is not None:
        while frame is not None and frame.tb_frame.f_code.co_filename in OURS:
            frame = frame.tb_next
        error.__traceback__ = frame
    prepare_for_printing(error)
    sys.__excepthook__(kind, error, error.__traceback__)


if __name__ == "__main__":
    sys.exit(main())
