"""The import order of the front end's modules, with imports inside functions counted."""

from __future__ import annotations

import ast
from pathlib import Path

import duograph.frontend

FRONTEND = Path(duograph.frontend.__file__).parent
# A package may import from its own row and the rows above.
ORDER = ["types", "diagnostics", "libraries", "source", "state", "values", "evaluation"]


def imported_modules(path: Path) -> set[str]:
    """Modules of the front end that a file imports, except for type annotations only."""
    package = path.relative_to(FRONTEND).parent.parts
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(package) + 1:
            base = package[: len(package) + 1 - node.level]
            parts = (*base, *(node.module or "").split(".")) if node.module else base
            name = ".".join(parts)
            if (FRONTEND / Path(*parts)).with_suffix(".py").exists() and parts:
                found.add(name)
            else:
                found.update(f"{name}.{a.name}" if name else a.name for a in node.names)
    return found


def modules() -> dict[str, set[str]]:
    """Per module of the front end, the modules of the front end that it imports."""
    return {
        ".".join(path.relative_to(FRONTEND).with_suffix("").parts): imported_modules(path)
        for path in sorted(FRONTEND.rglob("*.py"))
        if path.name != "__init__.py"
    }


def test_imports_have_no_cycle() -> None:
    """Each module can be understood after those that it imports."""
    waiting = modules()
    assert len(waiting) > 30
    while waiting:
        ready = [name for name, imported in waiting.items() if not imported & waiting.keys()]
        assert ready, f"modules that import each other: {sorted(waiting)}"
        for name in ready:
            del waiting[name]


def test_packages_are_imported_in_one_direction() -> None:
    """State knows nothing of values, and neither knows of the evaluation."""
    rank = {name: i for i, name in enumerate(ORDER)}
    wrong = [
        f"{name} imports {other}"
        for name, imported in modules().items()
        for other in imported
        if rank[other.split(".")[0]] > rank[name.split(".")[0]]
    ]
    assert not wrong, "\n".join(wrong)
