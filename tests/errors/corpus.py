"""Wrong programs that users write, and what Python prints when it runs them.

`programs/FAMILY/NAME.py` is one program. Its first comments say what is wrong with it (`fault`),
the built-in exceptions of which the error may be an instance (`raises`), the line that is wrong
(`at`), words of the message (`says`) and the modes in which it is run.

`run_all` runs programs in processes forked from one that has imported duograph. The output and the
traceback are those of `python script.py`, in a hundredth of the time. The parent must not open a
device, because a forked child cannot use the threads of a device.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import os
import pathlib
import pickle
import signal
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence

import duograph as ms

PROGRAMS = pathlib.Path(__file__).parent / "programs"
# Imported before the forks; the programs use them.
_MODULES = ("nn", "train", "dataset", "dataset.vision", "amp", "mint", "numpy", "compiler",
            "communication", "passes")  # fmt: skip
_SECONDS = 120  # after which a program is ended


@dataclasses.dataclass(frozen=True)
class Program:
    """A wrong program.

    Attributes:
        fault: description of the mistake.
        raises: names of built-in exceptions; the error is an instance of one of them.
        at: source text of the line that the traceback or the message must name.
        says: words that the message must contain.
        modes: "eager", "graph" or both.
    """

    path: pathlib.Path
    fault: str
    raises: tuple[str, ...]
    at: str
    says: tuple[str, ...]
    modes: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def line(self) -> int:
        """Return the line number of the mistake, from 1."""
        return [s.strip() for s in self.path.read_text().splitlines()].index(self.at) + 1


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run printed and raised.

    Attributes:
        printed: standard error, as the user sees it.
        kinds: names of the classes of the exception; empty if the program raised none.
        text: `str(error)` and the notes of the exception.
    """

    printed: str
    kinds: tuple[str, ...]
    text: str


def programs(only: str = "") -> list[Program]:
    """Return the programs whose name contains `only`, sorted by name."""
    found = [_read(path) for path in sorted(PROGRAMS.glob("*/*.py"))]
    return [p for p in found if only in p.name]


def _read(path: pathlib.Path) -> Program:
    head = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, _, value = line[2:].partition(": ")
        head[key] = value
    return Program(
        path,
        head["fault"],
        tuple(head["raises"].split("/")),
        head["at"],
        tuple(head["says"].split(" | ")),
        tuple(head["modes"].split()),
    )


def run_all(
    chosen: Sequence[Program], mode: str | None = None
) -> Iterator[tuple[Program, str, Outcome]]:
    """Run programs in each of their modes, or only in `mode`; yield (program, mode, outcome)."""
    for name in _MODULES:
        importlib.import_module(f"duograph.{name}")
    for program in chosen:
        for each in program.modes:
            if mode in (None, each):
                yield program, each, _run(program, each)


def _run(program: Program, mode: str) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        printed, result = (os.path.join(folder, name) for name in ("printed", "result"))
        child = os.fork()
        if child == 0:
            try:
                _as_main(program, mode, folder, printed, result)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with open(printed, encoding="utf-8") as file:
            text = file.read()
        try:
            with open(result, "rb") as file:
                kinds, said = pickle.load(file)
        except FileNotFoundError:  # it was killed
            kinds, said = ("killed",), ""
    return Outcome(text, kinds, said)


def _as_main(program: Program, mode: str, folder: str, printed: str, result: str) -> None:
    """Run a program as the module `__main__`; print an uncaught exception as Python does."""
    signal.alarm(_SECONDS)
    where = str(program.path.resolve())
    os.chdir(PROGRAMS.parents[2])
    sys.stdout = io.StringIO()
    sys.stderr = open(printed, "w", encoding="utf-8", buffering=1)  # noqa: SIM115 (until the exit)
    os.dup2(sys.stderr.fileno(), 2)
    sys.argv = [where]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = where
    if mode == "graph":
        ms.set_context(mode=ms.GRAPH_MODE)
    kinds: tuple[str, ...] = ()
    text = ""
    code = compile(program.path.read_text(), where, "exec")
    os.environ["TMPDIR"] = folder
    try:
        exec(code, vars(main))
    except Exception as error:  # noqa: BLE001 (it is what the test looks at)
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        kinds = tuple(kind.__name__ for kind in type(error).__mro__)
        sys.excepthook(type(error), error, error.__traceback__)
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
    sys.stderr.flush()
    with open(result, "wb") as file:
        pickle.dump((kinds, text), file)
