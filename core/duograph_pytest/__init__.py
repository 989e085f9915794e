"""Loads the pytest plugin of the conformance suite (`duograph.conformance`) if the suite is run.

pytest imports this module in every run of an environment with duograph. It is not part of the
package `duograph`, because importing that package takes a tenth of a second.
"""

from __future__ import annotations

import os
import pathlib
import re
import signal
import threading
import time
from types import FrameType

import pytest

PLUGIN = "duograph.conformance.plugin"
SUITE = re.compile(r"duograph[./\\]conformance")
# The options of pytest-xdist that ask for worker processes.
PARALLEL = re.compile(r"-n.*|--(numprocesses|dist|tx)(=.*)?")
TERMINATED = 128 + signal.SIGTERM
# Seconds in which further SIGTERMs count as the first one: `timeout` and service managers send it
# to the whole process group, and a parent that gets it passes it on.
SAME = 2.0


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Load the conformance plugin, with its options, if the conformance suite is requested.

    It is requested if an argument or the working directory is the name or the folder of the suite.
    """
    paths = [str(a) for a in (*args, early_config.invocation_params.dir)]
    if any(SUITE.search(p) for p in paths):
        from duograph.conformance.requirements import problem

        found = problem(any(PARALLEL.fullmatch(a) for a in args))
        if found is not None:
            early_config.pluginmanager.register(_Refusal(found))
            args.clear()  # the options of the suite and of pytest-xdist, which nobody knows
            return
        _load(early_config)
        plugin = early_config.pluginmanager.get_plugin(PLUGIN)
        assert plugin is not None
        plugin.pytest_load_initial_conftests(
            early_config, parser, args
        )  # this round of hooks began without it


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> None:
    """Load the conformance plugin when pytest finds a file of the conformance suite in a folder."""
    if SUITE.search(str(file_path)):
        from duograph.conformance.requirements import problem

        found = problem(parallel=False)
        if found is not None:
            raise pytest.UsageError(found)
        _load(parent.config)


def _load(config: pytest.Config) -> None:
    """Load the conformance plugin, unless this run has it already."""
    manager = config.pluginmanager
    if not manager.has_plugin(PLUGIN):
        manager.import_plugin(PLUGIN)
        manager.register(_Termination())


class _Refusal:
    """pytest plugin that ends a run before it begins, with one line as its only output.

    An error in `pytest_load_initial_conftests` would pass through hooks of pytest 7 and make pluggy
    print a warning of several lines.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self) -> None:
        """Raise the error of a wrong command line."""
        raise pytest.UsageError(self.reason)


class Terminated(KeyboardInterrupt):
    """Raised when the run gets SIGTERM; pytest ends the run as at an interrupt."""


class _Termination:
    """pytest plugin that ends a run at SIGTERM as pytest ends it at an interrupt.

    Without it the process would end at once: worker processes would go on for a while, and
    temporary folders would stay. A SIGTERM that comes more than two seconds later ends the process
    at once. The plugin does nothing where the program that called pytest handles SIGTERM.
    """

    def __init__(self) -> None:
        self.received: float | None = None
        self.installed = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        )
        if self.installed:
            signal.signal(signal.SIGTERM, self._end)

    def _end(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received is None:
            self.received = now
            raise Terminated("SIGTERM")
        if now - self.received > SAME:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Give the run the exit status that a shell shows for a program that SIGTERM has ended."""
        if self.received is not None:
            session.exitstatus = TERMINATED

    def pytest_unconfigure(self) -> None:
        """Restore what SIGTERM did before the run."""
        if self.installed:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
