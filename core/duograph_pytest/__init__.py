"""Loads the pytest plugin of `duograph.conformance` in runs that meet the suite, and nothing in any
other.

pytest imports this in every run of an environment that has duograph, so it stands outside of the
package `duograph`, whose import takes a tenth of a second.
"""

from __future__ import annotations

import pathlib
import re

import pytest

PLUGIN = "duograph.conformance.plugin"
SUITE = re.compile(r"duograph[./\\]conformance")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """The suite is asked for by name, or from its folder: its options are wanted too."""
    places = [str(a) for a in (*args, early_config.invocation_params.dir)]
    if any(SUITE.search(p) for p in places):
        _load(early_config)
        plugin = early_config.pluginmanager.get_plugin(PLUGIN)
        assert plugin is not None
        plugin.pytest_load_initial_conftests(
            early_config, parser, args
        )  # this round of hooks began without it


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> None:
    """Files of the suite were met in a run of a whole tree."""
    if SUITE.search(str(file_path)):
        _load(parent.config)


def _load(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin(PLUGIN):
        config.pluginmanager.import_plugin(PLUGIN)
