"""The pytest plugin of the suite: options, which tests there are for a device, its lists of gaps,
and the report.

It is loaded in every pytest run of an environment that has duograph, so it imports nothing until a
test of the suite is there.
"""

from __future__ import annotations

import fnmatch
import os
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .session import Session

PACKAGE = "duograph.conformance"
# exceptions whose message says everything
FINDINGS = ("Failures", "UnsupportedOpError")
SUITE = re.compile(r"duograph[./\\]conformance")
ASKED = pytest.StashKey[bool]()
SESSION = pytest.StashKey["Session"]()


class ConformanceWarning(UserWarning):
    """An entry of a device's lists that matches no test."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Add the options only where the suite is asked for: many projects have a --device of their
    own.
    """
    places = [str(a) for a in (*args, early_config.invocation_params.dir)]
    if not any(SUITE.search(p) for p in places):
        return
    group = parser.getgroup("duograph", "duograph conformance suite")
    group.addoption(
        "--device",
        metavar="NAME",
        help="what to test, as `duograph devices` names it, or NAME:INDEX",
    )
    group.addoption(
        "--quick",
        action="store_true",
        help="one dtype of each kind; first derivatives and compiled code in one",
    )
    group.addoption(
        "--conformance-html", metavar="FILE", help="write the matrix of results as a web page"
    )
    group.addoption(
        "--conformance-json", metavar="FILE", help="write every result, comparable between releases"
    )
    group.addoption(
        "--fuzz",
        metavar="N",
        type=int,
        help="how many random programs test_parity runs (60; 6 with --quick)",
    )
    group.addoption(
        "--fuzz-seed", metavar="SEED", type=int, help="which random programs those are (0)"
    )
    group.addoption(
        "--fuzz-level", choices=("O0", "O1", "O2"), default="O0",
        help="at which level they are compiled (O0: the same bits; others: within rounding)",
    )  # fmt: skip
    early_config.stash[ASKED] = True


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Collector(config))
    if _option(config, "--device") is not None:
        session_of(config)  # a misspelt name stops here, before anything is collected


def _option(config: pytest.Config, name: str) -> Any:
    """An option of ours, or None in a run that has not got it (or has another plugin's)."""
    return config.getoption(name, None) if config.stash.get(ASKED, False) else None


def session_of(config: pytest.Config) -> Session:
    """The run's Session, made when first asked for."""
    found = config.stash.get(SESSION, None)
    if found is None:
        from ..backend import registry
        from ..errors import DeviceError
        from .session import Session

        try:
            for required in filter(None, os.environ.get("DUOGRAPH_REQUIRE", "").split(",")):
                registry.check_target(required.strip())
            found = Session(_option(config, "--device"), bool(_option(config, "--quick")))
            found.fuzz = _option(config, "--fuzz") or 0
            found.fuzz_seed = _option(config, "--fuzz-seed") or 0
            found.fuzz_level = _option(config, "--fuzz-level") or "O0"
        except DeviceError as error:
            raise pytest.UsageError(f"--device: {error}") from None
        config.stash[SESSION] = found
    return found


def worker_of(config: pytest.Config) -> str | None:
    """Which process of a run in several (pytest-xdist) this is; None in one that sees all results."""
    given: dict[str, str] = getattr(config, "workerinput", {})
    return given.get("workerid")


def _is_ours(module: Any) -> bool:
    return getattr(module, "__name__", "").startswith(PACKAGE + ".")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parameters = getattr(metafunc.function, "conformance_parameters", None)
    if parameters is None or not _is_ours(metafunc.module):
        return
    names, values = parameters(session_of(metafunc.config))
    ids = ["-".join(getattr(v, "name", str(v)) for v in row) for row in values]
    metafunc.parametrize(names, values, ids=ids)


def address(item: pytest.Item) -> str:
    """How the lists of a device name a test: ``forward/exp/float16``, ``training/lenet``."""
    own = getattr(item, "originalname", item.name)
    parts = [getattr(v, "name", str(v)) for v in _parameters(item).values()]
    return "/".join([own.removeprefix("test_"), *parts])


def _parameters(item: pytest.Item) -> Mapping[str, Any]:
    spec = getattr(item, "callspec", None)
    return {} if spec is None else spec.params


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [i for i in items if _is_ours(getattr(i, "module", None))]
    if not ours:
        return
    from ..errors import DTypeError, UnsupportedOpError
    from .cases import all_cases

    session = session_of(config)
    whole = not config.getoption("keyword") and not config.getoption("markexpr")
    whole = whole and not session.quick and len({i.module for i in ours}) > 2  # type: ignore[attr-defined]
    # every process of a run in several collects all tests; one is enough to tell
    whole = whole and worker_of(config) in (None, "gw0")
    # All tests of a case run after each other, so that one process builds its kernels, and once.
    places = {id(case): k for k, case in enumerate(all_cases())}
    items.sort(key=lambda i: places.get(id(_parameters(i).get("case")), -1))
    refusals = (UnsupportedOpError, DTypeError)
    unused = set(session.unsupported) | set(session.expected)
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


def _matching(gaps: Mapping[str, str], name: str) -> str | None:
    return next((p for p in gaps if fnmatch.fnmatchcase(name, p)), None)


@pytest.fixture(autouse=True)
def _on_the_device(request: pytest.FixtureRequest) -> None:
    """Every test of the suite runs with the device as device_target."""
    if _is_ours(getattr(request.node, "module", None)):
        session_of(request.config).begin()


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Session:
    """The device and the options of this run."""
    return session_of(request.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
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
        if call.excinfo is not None and call.excinfo.typename == "Failures":
            report.longrepr = str(
                call.excinfo.value
            ).strip()  # the finding; the body is the same for all
        record = {
            "check": name.split("/")[0],
            "case": getattr(params.get("case"), "name", None),
            "dtype": getattr(params.get("dtype"), "name", None),
            "outcome": outcome,
            "seconds": round(call.duration, 4),
            "kinds": dict(report.user_properties).get("kinds", []),
            "on_host": session.on_host(),
            "message": message,
        }
        # the report is all that comes back from a test that ran in another process
        report.conformance = {"name": name, "record": record, "figures": session.measured}
    return report


class _Collector:
    """Puts what tests found into the run's Session, also what the processes of a run in several
    found.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: Any) -> None:
        found = getattr(report, "conformance", None)
        if found is not None:
            session = session_of(self.config)
            session.results[found["name"]] = found["record"]
            session.figures.update(found["figures"])


def _message(report: Any, call: pytest.CallInfo[None]) -> str:
    if call.excinfo is not None:
        name, text = call.excinfo.typename, str(call.excinfo.value).strip()
        return (text if name == "Failures" else f"{name}: {text}")[:4000]
    return re.sub(r"\x1b\[[0-9;]*m", "", str(report.longrepr))[:2000]


@pytest.hookimpl(trylast=True)
def pytest_report_header(config: pytest.Config) -> str | None:
    session = config.stash.get(SESSION, None)
    return None if session is None else f"duograph conformance: {session.title}"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = config.stash.get(SESSION, None)
    if session is None or not session.results:
        return
    from . import report

    summary = report.summarise(session)
    terminalreporter.section(f"conformance of {session.title}", sep="-")
    for line in report.terminal(summary, colour=terminalreporter.hasmarkup):
        terminalreporter.write_line(line)
    for option, write in (("html", report.write_html), ("json", report.write_json)):
        path = _option(config, f"--conformance-{option}")
        if path:
            write(summary, path)
            terminalreporter.write_line(f"{option} report: {path}")
