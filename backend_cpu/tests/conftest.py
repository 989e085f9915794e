"""For the tests of compiled code: compilers that misbehave, and a cache of the test's own."""

import textwrap

import pytest
from compiling import forget
from duograph.backend import disk_cache


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Fixture: an empty disk cache for this test alone, and nothing known about compilers."""
    monkeypatch.setenv("DUOGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("DUOGRAPH_CACHE_LIMIT", "DUOGRAPH_CC_TIMEOUT", "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(disk_cache, "_private", {})
    forget(monkeypatch)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Make a shell script that stands for the C compiler and logs its calls; set CC to it."""

    def make(lines, name="fake cc"):
        path = tmp_path / name
        log = tmp_path / "log"
        path.write_text(
            f'#!/bin/sh\necho "$*" >> "{log}"\n'
            'case "$*" in *--version*) echo "fake 1.0"; exit 0;; esac\n'
            'out=; for word in "$@"; do [ "$last" = -o ] && out="$word"; last="$word"; done\n'
            + textwrap.dedent(lines)
        )
        path.chmod(0o755)
        monkeypatch.setenv("CC", str(path))
        return lambda: log.read_text().splitlines() if log.exists() else []

    return make
