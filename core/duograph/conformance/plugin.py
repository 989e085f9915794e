"""The pytest plugin of the conformance suite: its options, parameters, known gaps and report.

The package `duograph_pytest` loads it, only in pytest runs that collect the suite. Its hooks must
not affect tests of other projects.
"""

from __future__ import annotations

import faulthandler
import fnmatch
import math
import os
import pathlib
import re
import warnings
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import pytest

from ..backend import registry
from ..dtype import DType, as_dtype
from ..errors import DeviceDTypeError, DeviceError, UnsupportedOpError
from . import progress, report
from .cases import all_cases
from .check import share_reached
from .session import Session

PACKAGE = "duograph.conformance"
SUITE = re.compile(r"duograph[./\\]conformance")
HAS_OPTIONS = pytest.StashKey[bool]()
SESSION = pytest.StashKey["Session"]()
DESELECTED = pytest.StashKey[int]()
SELECTED = "duograph conformance: filters and number of tests"
SUITE_FILES = {path.stem for path in pathlib.Path(__file__).parent.glob("test_*.py")}
# The line by which pytest-xdist reports a process that ended in the middle of a test.
CRASHED = re.compile(r"worker '\w+' crashed while running")


class ConformanceWarning(UserWarning):
    """Warns that a name in a device's list of known gaps matches no conformance test."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Add the pytest options of the conformance suite, only if the run requests the suite."""
    paths = [str(a) for a in (*args, early_config.invocation_params.dir)]
    if not any(SUITE.search(p) for p in paths):
        return
    group = parser.getgroup("duograph", "duograph conformance suite")
    group.addoption(
        "--device",
        metavar="NAME",
        help="the device to test: a name shown by `duograph devices`, or NAME:INDEX",
    )
    group.addoption(
        "--quick",
        action="store_true",
        help="test one dtype of each kind; test first derivatives and compiled code in one dtype",
    )
    group.addoption(
        "--sampled",
        action="store_true",
        help="test derivatives and compiled code of each case in some of the dtypes, in turn; with "
        "--quick also results",
    )
    group.addoption(
        "--share", metavar="K/N", help="test every N-th case from the K-th on, and all programs"
    )
    group.addoption(
        "--dtypes", metavar="NAMES", help="test only these dtypes, such as float16,complex64"
    )
    group.addoption(
        "--conformance-html",
        metavar="FILE",
        help="write the web page of --report alone, at the end, to this file",
    )
    group.addoption(
        "--conformance-json",
        metavar="FILE",
        help="write the results of --report alone, at the end, to this file",
    )
    group.addoption(
        "--report",
        metavar="FOLDER",
        help="write both there, as DEVICE.json and DEVICE.html, and each result as it comes",
    )
    group.addoption(
        "--resume",
        action="store_true",
        help="with --report: run only the tests that have not passed there yet",
    )
    group.addoption(
        "--case-seconds",
        metavar="N",
        type=float,
        default=600.0,
        help="with -n: a test that takes longer fails alone; its process is replaced (default 600)",
    )
    early_config.stash[HAS_OPTIONS] = True


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Collector(config))
    if _option(config, "--device") is not None:
        session_of(config)  # reports an unknown device before collection


def _option(config: pytest.Config, name: str) -> Any:
    """Return the value of an option of the suite; None if this run lacks the suite's options."""
    return config.getoption(name, None) if config.stash.get(HAS_OPTIONS, False) else None


def session_of(config: pytest.Config) -> Session:
    """Return the conformance Session of a pytest run; the first call creates the Session."""
    found = config.stash.get(SESSION, None)
    if found is None:
        try:
            for required in filter(None, os.environ.get("DUOGRAPH_REQUIRE", "").split(",")):
                registry.check_target(required.strip())
            chosen = _dtypes(_option(config, "--dtypes") or "")
            found = Session(
                _option(config, "--device"),
                bool(_option(config, "--quick")),
                chosen,
                sampled=bool(_option(config, "--sampled")),
                share=_share(_option(config, "--share") or "1/1"),
            )
            progress.prepare(
                found,
                _option(config, "--report"),
                _option(config, "--resume"),
                not worker_of(config),
            )
        except DeviceError as error:
            raise pytest.UsageError(f"--device: {error}") from None
        config.stash[SESSION] = found
    return found


def _dtypes(names: str) -> list[DType]:
    """Return the dtypes that the value of the option --dtypes names."""
    try:
        return [as_dtype(name.strip()) for name in names.split(",") if name.strip()]
    except TypeError as error:
        raise pytest.UsageError(f"--dtypes: {error}") from None


def _share(text: str) -> tuple[int, int]:
    """Return (K, N) for the value "K/N" of the option --share.

    Raises pytest.UsageError unless 1 <= K <= N.
    """
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise pytest.UsageError(f"--share: got {text!r}; wanted K/N, such as 1/3")
    return int(found[1]), int(found[2])


def worker_of(config: pytest.Config) -> str | None:
    """Return the id of this pytest-xdist worker, or None in the controlling process."""
    workerinput: dict[str, str] = getattr(config, "workerinput", {})
    return workerinput.get("workerid")


def _is_ours(module: object) -> bool:
    """Return whether a Python module belongs to the conformance suite."""
    return getattr(module, "__name__", "").startswith(PACKAGE + ".")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parameters = getattr(metafunc.function, "conformance_parameters", None)
    if parameters is None or not _is_ours(metafunc.module):
        return
    names, values = parameters(session_of(metafunc.config))
    ids = ["-".join(getattr(v, "name", str(v)) for v in row) for row in values]
    metafunc.parametrize(names, values, ids=ids)


def address(item: pytest.Item) -> str:
    """Return a test's name as in the lists of known gaps, such as ``forward/exp/float16``."""
    own = getattr(item, "originalname", item.name)
    parts = [getattr(v, "name", str(v)) for v in _parameters(item).values()]
    return "/".join([own.removeprefix("test_"), *parts])


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    spec = getattr(item, "callspec", None)
    return {} if spec is None else spec.params


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [i for i in items if _is_ours(getattr(i, "module", None))]
    if not ours:
        return
    session = session_of(config)
    session.filters = _filters(config, ours)
    whole = not session.filters
    # every pytest-xdist worker collects all tests; one of them reports
    whole = whole and worker_of(config) in (None, "gw0")
    # group the tests of a case, so that one process builds its kernels once
    order = {id(case): k for k, case in enumerate(all_cases())}
    items.sort(key=lambda i: order.get(id(_parameters(i).get("case")), -1))
    refusals = (UnsupportedOpError, DeviceDTypeError)
    unused = set(session.unsupported) | set(session.expected)
    session.selected = len(ours)
    done = {item for item in ours if address(item) in session.finished}
    if done:
        items[:] = [item for item in items if item not in done]
        config.hook.pytest_deselected(items=list(done))
    for item in ours:
        name = address(item)
        for gaps, raises in ((session.unsupported, refusals), (session.expected, None)):
            pattern = _matching(gaps, name)
            if pattern is None:
                continue
            unused.discard(pattern)
            if raises is not None:
                session.refused.add(name)
            item.add_marker(pytest.mark.xfail(reason=gaps[pattern], raises=raises, strict=True))
    if whole:
        for pattern in sorted(unused):
            warnings.warn(
                f"{session.name}: {pattern!r} in its list of gaps matches no test; take it out",
                ConformanceWarning,
                stacklevel=1,
            )


def _filters(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Return the options of a run that exclude tests of the suite, such as -k, as texts."""
    given = {
        "--dtypes": _option(config, "--dtypes"),
        "--share": _option(config, "--share"),
        "-k": config.getoption("keyword"),
        "-m": config.getoption("markexpr"),
        "--deselect": ", ".join(config.getoption("deselect") or ()),
    }
    found = [f"{name} {text}" for name, text in given.items() if text]
    found += [f"only {a}" for a in config.args if "::" in a]
    left = config.stash.get(DESELECTED, 0)
    if left and not found:  # by another plugin, such as --lf and --sw
        found.append(f"{left} tests deselected")
    here = {getattr(item, "module").__name__.rpartition(".")[2] for item in items}  # noqa: B009
    missing = sorted(SUITE_FILES - here)
    if missing and not found:
        found.append(f"not all files ({', '.join(missing)} left out)")
    flags = [name for name in ("--quick", "--sampled") if _option(config, name)]
    return flags + found


def _matching(gaps: Mapping[str, str], name: str) -> str | None:
    return next((p for p in gaps if fnmatch.fnmatchcase(name, p)), None)


@pytest.fixture(autouse=True)
def _on_the_device(request: pytest.FixtureRequest) -> None:
    """Fixture that makes the device under test the current device for every test of the suite."""
    if _is_ours(getattr(request.node, "module", None)):
        session_of(request.config).begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Kill a worker process whose test exceeds --case-seconds, so that pytest-xdist replaces it.

    If there are no worker processes, note in the file of results that the test begins.
    """
    if not _is_ours(getattr(item, "module", None)):
        return (yield)
    limit, folder = _option(item.config, "--case-seconds"), _option(item.config, "--report")
    if worker_of(item.config) is None:
        if folder:
            progress.start(session_of(item.config), folder, address(item))
        return (yield)
    if not limit:
        return (yield)
    faulthandler.dump_traceback_later(limit, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Session:
    """Fixture with the conformance Session: the device under test and the run's options."""
    return session_of(request.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, pytest.TestReport]:
    report = yield
    if _is_ours(getattr(item, "module", None)) and (
        report.when == "call" or (report.when == "setup" and not report.passed)
    ):
        params = _parameters(item)
        name = address(item)
        session = session_of(item.config)
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "unsupported" if name in session.refused else "expected failure"
        message = ""
        if report.failed or outcome == "expected failure":
            message = _message(report, call)
        elif outcome == "unsupported":
            message = str(report.wasxfail)
        elif isinstance(report.longrepr, tuple):  # of a skipped test: file, line, reason
            message = report.longrepr[2].removeprefix("Skipped: ")
        if call.excinfo is not None and call.excinfo.typename == "Failures":
            report.longrepr = str(call.excinfo.value).strip()  # without the traceback
        record = {
            "check": name.split("/")[0],
            "case": getattr(params.get("case"), "name", None),
            "dtype": getattr(params.get("dtype"), "name", None),
            "outcome": outcome,
            "seconds": round(call.duration, 4),
            "kinds": dict(report.user_properties).get("kinds", []),
            "on_host": session.on_host(),
            "reached": _finite(share_reached()),
            "message": message,
        }
        # only the report comes back from a pytest-xdist worker
        report.conformance = {"name": name, "record": record, "figures": session.measured}
    return report


class _Collector:
    """pytest plugin that stores the result of each conformance test, also of parallel workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count the suite's tests that pytest or other plugins have deselected."""
        ours = sum(_is_ours(getattr(item, "module", None)) for item in items)
        self.config.stash[DESELECTED] = self.config.stash.get(DESELECTED, 0) + ours

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, "conformance", None)
        if found is None and report.failed and CRASHED.match(str(report.longrepr)):
            found = _crash(report)
        if found is None:
            return
        session = session_of(self.config)
        session.results[found["name"]] = found["record"]
        session.figures.update(found["figures"])
        folder = _option(self.config, "--report")
        if folder and worker_of(self.config) is None:
            progress.keep(session, folder, found["name"])

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """In a worker process, report the options that exclude tests, and the number of tests.

        A resumed run in which no test was left succeeds or fails with the results that it resumes.
        """
        run = self.config.stash.get(SESSION, None)
        if run is not None and run.finished and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            failed = any(r["outcome"] == "failed" for r in run.results.values())
            session.exitstatus = int(failed)
        self._send(run)

    def _send(self, session: Session | None) -> None:
        if session is not None and worker_of(self.config) is not None:
            self.config.workeroutput[SELECTED] = session.filters, session.selected  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """In the controlling process, store the filters and test count that a worker has sent."""
        found = getattr(node, "workeroutput", {}).get(SELECTED)
        if found is not None:
            session = session_of(self.config)
            session.filters, session.selected = found


def _finite(share: float) -> float | None:
    """Round the ratio of a difference to its tolerance to 4 decimals; None if it is not finite."""
    return round(share, 4) if math.isfinite(share) else None


def _crash(report: pytest.TestReport) -> dict[str, object]:
    """Return the result record of a test that crashed its process, derived from the test's id."""
    test, _, parameters = report.nodeid.rpartition("::")[2].removeprefix("test_").partition("[")
    parts = parameters.removesuffix("]").split("-") if parameters else []
    name = "/".join([test, *parts])
    text = str(report.longrepr).splitlines()[0]
    record = progress.ended(name, f"{text}: it aborted, or took longer than --case-seconds")
    return {"name": name, "record": record, "figures": {}}


def _message(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    if call.excinfo is not None:
        name, text = call.excinfo.typename, str(call.excinfo.value).strip()
        return (text if name == "Failures" else f"{name}: {text}")[:4000]
    return re.sub(r"\x1b\[[0-9;]*m", "", str(report.longrepr))[:2000]


@pytest.hookimpl(trylast=True)
def pytest_report_header(config: pytest.Config) -> str | None:
    session = config.stash.get(SESSION, None)
    return None if session is None else f"duograph conformance: {session.title}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    session = config.stash.get(SESSION, None)
    if session is None or not session.results:
        return
    summary = report.summarise(session)
    terminalreporter.section(f"conformance of {session.title}", sep="-")
    for line in report.terminal(summary, colour=terminalreporter.hasmarkup):
        terminalreporter.write_line(line)
    folder = _option(config, "--report")
    for option, write in (("html", report.write_html), ("json", report.write_json)):
        wanted = [_option(config, f"--conformance-{option}")]
        if folder:
            wanted.append(str(progress.file_of(session, folder, option)))
        for path in filter(None, wanted):
            write(summary, path)
            terminalreporter.write_line(f"{option} report: {path}")
