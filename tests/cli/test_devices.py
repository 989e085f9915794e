"""Tests of the subcommands that ask the installed backends."""

from __future__ import annotations

import json
import sys

import pytest
from duograph import __version__
from duograph.backend.protocol import SEAM_VERSION
from duograph.cli import main

TUNES = """
def tune(self, device_id):
    for k, what in enumerate(("one", "two") if device_id else ()):
        yield f"{what} {k + 3}"

Device.tune = tune
"""
CLI = [sys.executable, "-m", "duograph.cli"]

SEAM = ".".join(map(str, SEAM_VERSION))


def test_devices(site, device):
    """H22: Device listing call with name, memory, dtypes, version, plugin origin"""
    site.install("toy", device("Toy", count=2, priority=10_000))
    site.install("bad", "import no_such_driver")
    done = site.command([*CLI, "devices"])
    assert done.returncode == 0
    toy, *rest = done.stdout.split("\n\n")
    assert toy.splitlines() == [
        "Toy: available, used by default",
        "  Toy:0    Toy 0",
        "  Toy:1    Toy 1",
        "  dtypes   all",
        "  from     dist-toy 1.0 (toy)",
    ]
    (bad,) = [p for p in rest if p.startswith("bad: not available")]
    assert "No module named 'no_such_driver'" in bad
    assert "from     dist-bad 1.0 (bad)" in bad


def test_devices_as_json(site, device):
    """H22: Device listing call with name, memory, dtypes, version, plugin origin"""
    site.install("toy", device("Toy"))
    found = json.loads(site.command([*CLI, "devices", "--json"]).stdout)
    assert found["seam"] == SEAM
    (toy,) = [b for b in found["backends"] if b["name"] == "Toy"]
    assert toy["origin"] == "dist-toy 1.0 (toy)"
    assert toy["problem"] is None
    assert "float32" in toy["dtypes"]
    assert toy["devices"][0]["memory_bytes"] == 0


def test_tune(site, device):
    """Each device of a backend prints its measurements; an unknown device is an error."""
    site.install("toy", device("Toy", count=2) + TUNES)
    done = site.command([*CLI, "tune", "--device", "Toy"])
    assert (done.returncode, done.stdout) == (
        0,
        "Toy:0 has nothing to tune\nToy:1 one 3\nToy:1 two 4\n",
    )
    assert site.command([*CLI, "tune", "--device", "Toy:1"]).stdout == "Toy:1 one 3\nToy:1 two 4\n"
    done = site.command([*CLI, "tune", "--device", "Tory"])
    assert done.returncode == 2 and "duograph tune: device_target: got 'Tory'" in done.stderr


def test_info(site, device):
    site.install("toy", device("Toy"))
    done = site.command([*CLI, "info"], DUOGRAPH_DEVICE="Toy")
    assert done.returncode == 0
    assert f"duograph {__version__}, plugin seam {SEAM}" in done.stdout
    assert "DUOGRAPH_DEVICE=Toy" in done.stdout
    assert "Toy: available, used by default" in done.stdout


def test_check(site, device):
    site.install("toy", device("Toy", priority=10_000))
    done = site.command([*CLI, "check"])
    assert done.returncode == 0, done.stderr
    assert "installed on platform [Toy] successfully!" in done.stdout
    site.install(
        "wrong", device("Wrong", priority=20_000).replace("np.array(found,", "np.array(found * 0,")
    )
    done = site.command([*CLI, "check"])
    assert done.returncode == 1
    assert "Wrong:0 gives [[0.0, 0.0], [0.0, 0.0]]" in done.stdout


def test_help_without_a_command(capsys):
    assert main([]) == 2
    assert "new-backend" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"duograph {__version__}\n"
    with pytest.raises(SystemExit):
        main(["devises"])
    assert "invalid choice: 'devises'" in capsys.readouterr().err
