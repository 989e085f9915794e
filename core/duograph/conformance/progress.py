"""Writes each result of a conformance run to disk when it is known, so that runs can be resumed.

The pytest plugin calls it for `--report FOLDER` and `--resume`. FOLDER/DEVICE.jsonl begins with a
line about the device and the versions; each result is one more line of JSON. Unless worker
processes run the tests, each test also writes a line when it begins. Worker processes read a copy
that the controlling process makes at the start, because all of them must select the same tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .session import Session

__all__ = ["ended", "file_of", "keep", "prepare", "start"]

# The message of a test in the middle of which the process ended twice; it is not run again.
ENDED = "the process ended in the middle of the test, twice; --resume does not run it again"


def file_of(session: Session, folder: str, kind: str) -> pathlib.Path:
    """Return the path of a run's file in `folder`, whose suffix is `kind`, such as "json"."""
    return pathlib.Path(folder) / f"{session.name.replace('/', '_')}.{kind}"


def prepare(session: Session, folder: str | None, resume: bool, controls: bool) -> None:
    """Begin the file of results, or read the results of the run that is resumed.

    Args:
        session: the run.
        folder: the value of the option --report, or None.
        resume: whether --resume was given.
        controls: whether this is the controlling process, which writes the file.

    Raises:
        pytest.UsageError: a resumed run has no folder, the folder has no results of the same
            device and versions, or it cannot be written.
    """
    if folder is None:
        if resume:
            raise pytest.UsageError("--resume needs --report FOLDER, where the results are")
        return
    lines, copy = file_of(session, folder, "jsonl"), file_of(session, folder, "resumed")
    if controls:
        try:
            lines.parent.mkdir(parents=True, exist_ok=True)
            if not resume:
                lines.write_text(json.dumps(_versions(session)) + "\n")
                return
        except OSError as error:
            raise pytest.UsageError(f"--report: {error}") from None
        if not lines.exists():
            raise pytest.UsageError(f"--resume: there is no {lines}; run without --resume first")
        shutil.copyfile(lines, copy)
    if resume:
        session.results.update(_results(copy, _versions(session)))
        session.finished = frozenset(
            name
            for name, r in session.results.items()
            if r["outcome"] != "failed" or r["message"] == ENDED
        )


def _versions(session: Session) -> dict[str, str]:
    """Return device, versions and sources of a run; a run may resume only one with the same ones.

    Versions alone would not tell: an editable installation keeps its version while it changes.
    """
    return {"title": session.title, "plugin": session.plugin, "sources": _sources(session)}


def _sources(session: Session) -> str:
    """Return a hash of the Python files of duograph and of the package with the backend."""
    digest = hashlib.blake2b(digest_size=8)
    backend = type(session.backend).__module__.partition(".")[0]
    for name in dict.fromkeys(("duograph", backend)):
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if file is None:
            continue
        path = pathlib.Path(file)
        for each in sorted(path.parent.rglob("*.py")) if path.stem == "__init__" else [path]:
            digest.update(each.read_bytes())
    return digest.hexdigest()


def _results(path: pathlib.Path, versions: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the last result of each test in a file of results; incomplete lines are ignored.

    If the last run ended during a test, that test has no result. It counts as failed if the file
    says that it also began in an earlier run, because it has then probably crashed both runs;
    otherwise it is left out, because the user may have interrupted the run.

    Raises pytest.UsageError if the first line of the file is not `versions`, the facts that must be
    equal in the resumed and the present run.
    """
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            lines.append(json.loads(text))
    if lines[:1] != [versions]:
        raise pytest.UsageError(
            f"--resume: the results in {path.parent} are of {lines[:1]}, and this run is of "
            f"{versions}; run without --resume (sources: the files of duograph or of the backend "
            "have changed)"
        )
    found = {record.pop("name"): record for record in lines[1:] if "name" in record}
    last = lines[-1].get("begins")
    if last is not None and sum(line.get("begins") == last for line in lines[1:]) > 1:
        found[last] = ended(last, ENDED)
    return found


def ended(name: str, message: str) -> dict[str, object]:
    """Return the result record, with text `message`, of a failed test that ended its process."""
    check, case, dtype = (*name.split("/"), None, None)[:3]
    return {
        "check": check, "case": case, "dtype": dtype, "outcome": "failed", "seconds": 0.0,
        "kinds": [], "on_host": 0, "reached": None, "message": message,
    }  # fmt: skip


def start(session: Session, folder: str, name: str) -> None:
    """Record that the test `name` begins.

    If the run ends during the test, a resumed run can thus tell which test it was.
    """
    with file_of(session, folder, "jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"begins": name}) + "\n")


def keep(session: Session, folder: str, name: str) -> None:
    """Append the result of the test `name`, as in `session.results`, to the file of results."""
    line = json.dumps({"name": name, **session.results[name]})
    with file_of(session, folder, "jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
