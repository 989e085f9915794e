"""Tests that the plugins of this repository are small and complete, and work as documented."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from duograph.cli import new_backend
from duograph.dtype import ALL, STORAGE

PLUGINS = pathlib.Path(__file__).resolve().parents[2] / "plugins"
LIMITS = {"reference": 400, "null": 200, "inner_ring": 200, "template": 300}


@pytest.mark.parametrize("name", LIMITS)
def test_it_is_a_whole_package_and_small(name):
    """H19: A toy third-party backend in the repo, under 300 lines, passing the suite"""
    root = PLUGINS / name
    files = [*root.glob("duograph_*/*.py"), root / "pyproject.toml", root / "README.md"]
    assert all(f.exists() for f in files)
    assert sum(len(f.read_text().splitlines()) for f in files) <= LIMITS[name]
    assert "[project.entry-points.duograph]" in (root / "pyproject.toml").read_text()


def test_the_template_is_what_new_backend_writes(tmp_path):
    for path, text in new_backend.package_files("Template").items():
        assert (PLUGINS / "template" / path).read_text() == text, path


def test_a_new_backend_works_at_once(site, tmp_path):
    """H01, H02: a package of its own, found by its entry point through pluggy hooks, without
    editing the core
    """
    line = [sys.executable, "-m", "duograph.cli", "new-backend", "Frob", "made"]
    done = site.command(line)
    assert done.returncode == 0, done.stderr
    assert "--device Frob" in done.stdout
    assert site.command(line).returncode == 2  # it is there already
    assert "letters and digits" in site.command([*line[:-2], "../x"]).stderr
    made = site.folder / "made"
    assert not [f for f in made.rglob("*") if f.is_file() and "emplate" in f.read_text()]
    site.install("frob_entry", (made / "duograph_frob" / "__init__.py").read_text().replace(
        "from .backend", "from duograph_frob.backend"
    ))  # fmt: skip
    (site.folder / "duograph_frob").symlink_to(made / "duograph_frob")
    said = site.run(
        """
        import duograph as ms
        x = ms.Tensor([1.0, 2.0], device="Frob")
        print(ms.ops.softmax(x).asnumpy().tolist(), ms.grad(lambda v: (v * v).sum())(x).asnumpy())
        """
    )
    assert said.startswith("[0.268941")
    assert said.endswith("[2. 4.]\n")


INSTALLED = {
    "Null": "duograph_null",
    "InnerRing": "duograph_inner_ring",
    "WideRing": "duograph_inner_ring",
    "Template": "duograph_template",
}


@pytest.fixture(params=INSTALLED)
def shipped(request):
    pytest.importorskip(INSTALLED[request.param])
    return request.param


def test_it_is_installed_as_a_plugin(shipped):
    program = f"import duograph as ms; print((ms.Tensor([1.0], device='{shipped}') + 1).device)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{shipped}:0\n"


def test_null_counts_launches_and_bytes():
    pytest.importorskip("duograph_null")
    program = """
import duograph as ms
from duograph.backend import registry
ms.set_context(device_target="Null")
null = registry.backend("Null")
x = ms.Tensor([1.0] * 256)
y = ms.grad(lambda v: (v * v).sum())(x)
print(y.shape, float(y.sum()), null.calls_of()["mul"] >= 2, null.calls_of()["reduce_sum"])
used = ms.memory_stats()["in_use"]
z = x + x
print(ms.memory_stats()["in_use"] - used)
del z
print(ms.memory_stats()["in_use"] - used)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(256,) 0.0 True 2\n1024\n0\n"


@pytest.mark.parametrize("name", ["CPU", "Reference"])
def test_our_own_devices_have_no_gaps(name):
    """Nothing is unsupported or expected to fail on the devices that duograph comes with."""
    registry = pytest.importorskip("duograph.backend.registry")
    if name not in registry.entries() or registry.entries()[name].problem is not None:
        pytest.skip(f"{name} is not installed here")
    backend = registry.backend(name)
    assert not getattr(backend, "conformance_unsupported", {})
    assert not getattr(backend, "conformance_expected_failures", {})
    assert backend.host_fallback == "off"
    assert backend.dtypes == (*ALL, *STORAGE)
