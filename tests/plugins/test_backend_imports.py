"""Backends and plugins import only the documented seam of the core (docs/plugins.md)."""

from __future__ import annotations

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = [
    "backend_cpu/duograph_cpu",
    "backend_opencl/duograph_opencl",
    "backend_cuda/duograph_cuda",
    *(
        f"plugins/{name}/duograph_{name}"
        for name in ("inner_ring", "null", "reference", "template", "torch")
    ),
]
# The seam itself, and the types that cross it: values, graphs and errors.
SEAM = (
    "duograph.backend",
    "duograph.dtype",
    "duograph.errors",
    "duograph.ir.builder",
    "duograph.ir.epilogue",
    "duograph.ir.graph",
    "duograph.ir.text",
    "duograph.op",
    "duograph.types",
)
# The build of the CPU backend prints a kernel for every op, so it fills the op table first.
EXCEPTIONS = {
    "backend_cpu/duograph_cpu/generate.py": {"duograph.ops"},
}


def imported_modules(path: pathlib.Path) -> set[str]:
    """Modules of the core that a file imports, also inside functions and for type checking."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return {name for name in found if name.partition(".")[0] == "duograph"}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_imports_only_the_seam(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        name = str(path.relative_to(ROOT))
        outside = {
            module
            for module in imported_modules(path) - EXCEPTIONS.get(name, set())
            if not any(module == seam or module.startswith(f"{seam}.") for seam in SEAM)
        }
        assert not outside, f"{name} imports {outside}; the seam is {SEAM}"
