"""Tests of the distribution: its files, its size, its entry points."""

import marshal
import re
import sys
from importlib import metadata, util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("duograph", "duograph_cpu")


def test_runs_on_every_supported_python_from_one_wheel():
    """M01: the compiled module keeps to the stable ABI, and the metadata name the versions."""
    import duograph_cpu._native as native

    if sys.platform != "win32":  # where such a module has no tag in its name
        assert ".abi3." in Path(native.__file__).name
    assert metadata.metadata("duograph")["Requires-Python"] == ">=3.10"
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert named == ["3.10", "3.11", "3.12", "3.13", "3.14"]


def test_size_without_dependencies():
    """M02: "Installed size of core + CPU backend" under 30 MB (of 2**20 bytes, as du counts).

    Byte code is included.
    """
    size = 0
    for package in PACKAGES:
        for folder in util.find_spec(package).submodule_search_locations:
            for path in Path(folder).rglob("*"):
                # a wheel has no C sources
                if path.is_file() and not {"__pycache__", "_generated", "native"} & {*path.parts}:
                    size += path.stat().st_size
                    if path.suffix == ".py":
                        code = compile(path.read_bytes(), path, "exec", dont_inherit=True)
                        size += len(marshal.dumps(code))
    assert 1e6 < size < 30 * 2**20


def test_the_packages_with_types_say_so():
    for package in ("core/duograph", "backend_cpu/duograph_cpu"):
        assert (ROOT / package / "py.typed").exists()


def test_readme_is_short():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) < 200


def test_entry_points():
    """Our own backend comes through the door that third parties use."""
    found = {e.name: e.value for e in metadata.entry_points(group="duograph")}
    assert found["cpu"] == "duograph_cpu"


def test_the_makefile_builds_wheels_of_all_packages():
    """The clean copy from which wheels are built has each folder that holds a package."""
    folders = re.search(r"^where = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    copied = re.search(r"^CLEAN_COPY = (.*\n.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert folders is not None and copied is not None
    assert set(re.findall(r'"(\w+)"', folders[1])) <= set(copied[1].split())
