"""The house rules that a machine can check: import direction, no vendor in the core, cheap import."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import pytest

CORE = pathlib.Path(__file__).resolve().parents[2] / "core" / "duograph"

# Import order of docs/architecture.md: a module may import at load only from its own row or a row
# above.
LAYERS = [
    ("_locks", "dtype", "errors", "runtime_state", "context"),
    ("types", "effects", "_text"),
    ("backend",),
    ("op",),
    ("backend.codegen",),
    ("backend.grid",),
    ("tensor", "parameter"),
    ("ir",),
    ("random_state",),
    ("passes",),
    ("autodiff", "runtime"),
    ("ops",),
    ("common",),
    ("nn", "dataset", "amp", "communication"),
    ("frontend", "compiler"),
    ("train",),
    ("compat", "cli", "conformance", "numpy", "log", "utils", "installation"),
]
RANK = {name: i for i, row in enumerate(LAYERS) for name in row}
VENDORS = {"cffi", "pyopencl", "cuda", "torch", "jax", "mindspore", "cupy", "duograph_cpu",
           "duograph_opencl", "duograph_cuda", "duograph_reference"}  # fmt: skip


def sources() -> list[pathlib.Path]:
    return sorted(p for p in CORE.rglob("*.py"))


def imports_at_load(tree: ast.Module) -> list[ast.stmt]:
    """Import statements that run when the module is imported; those in functions and TYPE_CHECKING
    blocks do not.
    """
    found: list[ast.stmt] = []

    def walk(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                found.append(node)
            elif isinstance(node, ast.If):
                if "TYPE_CHECKING" not in ast.dump(node.test):
                    walk(node.body)
                walk(node.orelse)
            elif isinstance(node, (ast.Try, ast.With, ast.ClassDef)):
                walk(node.body)

    walk(tree.body)
    return found


def targets(node: ast.stmt, path: pathlib.Path) -> list[str]:
    """First name below the package of what a relative import imports."""
    if not isinstance(node, ast.ImportFrom) or not node.level:
        return []
    package = list(path.relative_to(CORE).parts[:-1])
    base = package[: len(package) - (node.level - 1)]
    if node.module:
        return [(base + node.module.split("."))[0]]
    return [base[0]] if base else [a.name for a in node.names]


def test_imports_run_one_way() -> None:
    """A44: Clear layering: Python API, framework layer, device; same call path in both modes"""
    wrong = []
    for path in sources():
        own = path.relative_to(CORE).parts[0].removesuffix(".py")
        if path.relative_to(CORE).parts[:2] in (("backend", "codegen"), ("backend", "grid")):
            own = ".".join(path.relative_to(CORE).parts[:2])
        if own == "__init__":
            continue
        assert own in RANK, f"{path}: {own} has no place in the import order"
        for node in imports_at_load(ast.parse(path.read_text())):
            for name in targets(node, path):
                if name in RANK and RANK[name] > RANK[own]:
                    wrong.append(f"{path.relative_to(CORE)}:{node.lineno} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_core_imports_no_vendor_and_names_no_backend() -> None:
    wrong = []
    for path in sources():
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            if any(n.split(".")[0] in VENDORS for n in names):
                wrong.append(f"{path.relative_to(CORE)}:{node.lineno} imports {names}")
            if isinstance(node, ast.Compare):
                for side in [node.left, *node.comparators]:
                    if isinstance(side, ast.Constant) and side.value in (
                        "CPU",
                        "GPU",
                        "CUDA",
                        "OpenCL",
                    ):
                        wrong.append(f"{path.relative_to(CORE)}:{node.lineno} tests {side.value!r}")
    assert not wrong, "\n".join(wrong)


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_starts_nothing() -> None:
    """M03 and design: importing opens no device, starts no thread, loads no plugin."""
    out = run(
        "import threading, sys, duograph\n"
        "from duograph.backend import registry\n"
        "print(threading.active_count(), registry._manager, 'duograph_cpu' in sys.modules)"
    )
    assert out.split() == ["1", "None", "False"]


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(CORE)))
def test_syntax_of_oldest_python(path: pathlib.Path) -> None:
    """M01: Python 3.10 to 3.14; the grammar of the oldest is checked on every file."""
    ast.parse(path.read_text(), feature_version=(3, 10))
