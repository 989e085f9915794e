"""Loads the pytest plugin of the conformance suite (`duograph.conformance`) if the suite is run.

pytest imports this module in every run of an environment with duograph. It is not part of the
package `duograph`, because importing that package takes a tenth of a second.
"""

from __future__ import annotations

import pathlib
import re

import pytest

PLUGIN = "duograph.conformance.plugin"
OLDEST = 8  # wrappers among its hooks
SUITE = re.compile(r"duograph[./\\]conformance")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Load the conformance plugin, with its options, if the conformance suite is requested.

    It is requested if an argument or the working directory is the name or the folder of the suite.
    """
    paths = [str(a) for a in (*args, early_config.invocation_params.dir)]
    if any(SUITE.search(p) for p in paths):
        _load(early_config)
        plugin = early_config.pluginmanager.get_plugin(PLUGIN)
        assert plugin is not None
        plugin.pytest_load_initial_conftests(
            early_config, parser, args
        )  # this round of hooks began without it


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> None:
    """Load the conformance plugin when pytest finds a file of the conformance suite in a folder."""
    if SUITE.search(str(file_path)):
        _load(parent.config)


def _load(config: pytest.Config) -> None:
    if int(pytest.version_tuple[0]) < OLDEST:
        raise pytest.UsageError(
            f"the conformance suite of duograph needs pytest {OLDEST} or later, and this is "
            f"{pytest.__version__}: pip install duograph[conformance]"
        )
    if not config.pluginmanager.has_plugin(PLUGIN):
        config.pluginmanager.import_plugin(PLUGIN)
