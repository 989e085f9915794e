"""Rules of the source tree that a machine can check.

Imports run one way, the core names no vendor, importing it starts nothing, and every file parses
with the oldest supported Python. Imports inside functions count like those at the top of a module.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

CORE = pathlib.Path(__file__).resolve().parents[2] / "core" / "duograph"

# The import order of docs/architecture.md. A module may import from its own row and from the rows
# above it. The longest dotted prefix of a module's name that has an entry decides its row.
LAYERS = [
    ("_startup", "_locks", "_cores", "polynomials", "dims", "size_code", "scopes", "sizes",
     "dtype", "errors", "symbol", "option_rows", "option_training", "option_table",
     "option_checks", "launched",
     "runtime_state", "call_cache", "context", "tracebacks", "error_notes", "call_names",
     "advice", "compat", "log", "version", "pages", "status_line"),
    ("types", "effects", "traits", "host_arrays", "tensor_printing", "initial_values",
     "recorded_tensors", "tensor_class"),
    ("backend",),
    ("op_signature", "op_calls"),
    ("op", "op_tables"),
    ("placement", "device_copies", "tensor"),
    ("call_errors",),
    ("ir",),
    ("backend.codegen",),
    ("backend.grid",),
    ("random_state", "ranks", "sharding.__init__", "sharding.layouts", "sharding.mode",
     "sharding.constraints"),
    ("common",),
    ("ops",),
    ("parameter",),
    ("autodiff", "execution"),
    # families of ops whose gradients are Python functions, what uses these, and the package itself
    ("ops.custom", "ops.matrix_svd", "ops.state", "ops.loss_primitives", "ops.higher_order",
     "ops.norms",
     "ops.nn_functions", "ops.normalization", "ops.batch_normalization",
     "ops.normalization_primitives", "ops.attention",
     "ops.instance_normalization",
     "ops.attention_functions", "ops.transfers", "ops.distances", "ops.linear_systems",
     "ops.more_primitives", "ops.image_colors", "ops.optimizer_formulas",
     "ops.optimizer_primitives", "ops.adam_primitives", "ops.sparse_optimizer_primitives",
     "ops.reduction_primitives", "ops.pooling_primitives", "ops.stubs", "ops.__init__"),
    ("passes",),
    ("nn", "dataset", "mindrecord", "amp", "communication", "boost"),
    ("sharding",),
    ("frontend", "compiler"),
    ("parallel",),
    ("onnx",),
    ("train",),
    ("experimental",),
    ("cli", "conformance", "mint", "numpy", "scipy", "utils", "installation", "parity", "run",
     "launcher",
     "compat.private_names", "compat.private_training", "compat.private_attention",
     "compat.argument_checks", "compat.shared_layers", "compat.script_settings",
     "compat.private_cells",
     "device_context",
     "communication.comm_func", "runtime", "hal", "profiler"),
]  # fmt: skip
ROW = {name: i for i, row in enumerate(LAYERS) for name in row}

# Import statements of our own package inside functions; each needs a comment with its reason.
MAX_LOCAL_IMPORTS = 5
WITHOUT_REASON: set[str] = set()

VENDORS = {"cffi", "pyopencl", "cuda", "torch", "jax", "mindspore", "cupy", "duograph_cpu",
           "duograph_opencl", "duograph_cuda", "duograph_collectives", "mpi4py",
           "duograph_reference"}  # fmt: skip


def sources() -> list[pathlib.Path]:
    """Return all Python files of the core."""
    return sorted(p for p in CORE.rglob("*.py"))


@dataclasses.dataclass(frozen=True)
class Import:
    """One import of a module of our own package.

    Attributes:
        importer, imported: dotted names below the package; "" is the package itself.
        where: file and line.
        local: the import is inside a function.
        reason: a comment on its line or on the line before says why.
    """

    importer: str
    imported: str
    where: str
    local: bool
    reason: bool


def module_name(path: pathlib.Path) -> str:
    """Return the dotted name of a file below the package."""
    parts = path.relative_to(CORE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(p): p for p in sources() if "template" not in p.parts}


def statements(body: ast.AST, local: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield a module's nodes outside TYPE_CHECKING blocks, with True for those in functions."""
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            for other in node.orelse:
                yield from statements(other, local)
            continue
        function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield node, local or function
        yield from statements(node, local or function)


def imported_names(node: ast.AST, path: pathlib.Path) -> list[str]:
    """Return the modules of our package that an import statement or `import_module` loads."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [a.name for a in node.names]
    elif isinstance(node, ast.ImportFrom):
        prefix = node.module or ""
        if node.level:
            parts = ["duograph", *path.relative_to(CORE).parts[:-1]]
            parts = parts[: len(parts) - node.level + 1]
            prefix = ".".join([*parts, node.module] if node.module else parts)
        names = [f"{prefix}.{a.name}" for a in node.names]
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
        names = [a.value for a in node.args if isinstance(a, ast.Constant)]
    own = [n.partition(".")[2] for n in names if n.partition(".")[0] == "duograph"]
    found = []
    for name in own:
        while name not in MODULES:
            name = name.rpartition(".")[0]
        found.append(name)
    return sorted(set(found))


@functools.cache
def imports() -> list[Import]:
    """Return all imports of our own modules, except those for type checkers only."""
    found = []
    for importer, path in MODULES.items():
        text = path.read_text()
        lines = text.split("\n")
        for node, local in statements(ast.parse(text)):
            for imported in imported_names(node, path):
                if imported != importer:
                    first, last = node.lineno, node.end_lineno or node.lineno
                    near = lines[max(first - 2, 0) : last]
                    reason = near[0].lstrip().startswith("#") or any(" # " in x for x in near[1:])
                    where = f"{path.relative_to(CORE)}:{first}"
                    found.append(Import(importer, imported, where, local, reason))
    return found


def row(name: str) -> int:
    """Return the number of the row of LAYERS that a module belongs to."""
    if f"{name}.__init__" in ROW and MODULES[name].name == "__init__.py":
        return ROW[f"{name}.__init__"]
    while name not in ROW:
        assert name, "every module below the package has an entry in LAYERS"
        name = name.rpartition(".")[0]
    return ROW[name]


def test_every_module_has_a_layer() -> None:
    missing = {n.split(".")[0] for n in MODULES if n} - set(ROW)
    assert not missing, f"add {missing} to LAYERS"


def test_imports_run_one_way() -> None:
    """A44: Clear layering: Python API, framework layer, device; same call path in both modes"""
    wrong = [
        f"{i.where} imports {i.imported}"
        for i in imports()
        if i.importer and i.imported and row(i.imported) > row(i.importer)
    ]
    assert not wrong, "\n".join(wrong)


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan, 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in edges.get(module, ()):
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in edges:
        if module not in number:
            visit(module)
    return found


def test_cycles_finds_strongly_connected_components() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(cycles(edges)) == [["a", "b", "c"], ["d", "e"]]


def test_no_import_cycle() -> None:
    """No two modules reach each other by imports, those inside functions included."""
    edges: dict[str, set[str]] = collections.defaultdict(set)
    for i in imports():
        if i.importer and i.imported:
            edges[i.importer].add(i.imported)
    knots = cycles(dict(edges))
    assert not knots, "\n".join(map(str, knots))


def test_imports_inside_functions_are_few_and_have_reasons() -> None:
    local = [i for i in imports() if i.local]
    listed = "\n".join(f"{i.where} imports {i.imported}" for i in local)
    assert len({i.where for i in local}) <= MAX_LOCAL_IMPORTS, listed
    assert {i.importer for i in local if not i.reason} <= WITHOUT_REASON, listed


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


# What would be held for ever in a child that is forked while another thread holds it. In Python
# 3.10 and 3.11, `cached_property` has a lock of its own.
LOCKS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier",
         "allocate_lock", "cached_property", "Queue", "SimpleQueue"}  # fmt: skip


def locks_made_in(tree: ast.AST) -> list[int]:
    """Return the lines that name a class of locks, except as the class in an `isinstance` test."""
    tested = [
        node.args[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
    ]
    found = []
    for node in ast.walk(tree):
        if node in tested:
            continue
        names: list[str] = []
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("threading", "_thread", "queue", "functools", "multiprocessing"):
                names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [a.name for a in node.names]
        if LOCKS.intersection(names):
            found.append(node.lineno)
    return found


def test_every_lock_is_freed_in_a_forked_child() -> None:
    """Locks come from `new_lock`, which frees them in a forked child."""
    root = CORE.parents[1]
    paths = [*sources(), *root.glob("backend_*/duograph_*/**/*.py"), *root.glob("plugins/**/*.py")]
    paths = [p for p in paths if p.name != "_locks.py" and not p.name.startswith("test_")]
    assert len(paths) > 300
    wrong = [f"{p}:{n}" for p in paths for n in locks_made_in(ast.parse(p.read_text()))]
    assert not wrong, "use new_lock() instead:\n" + "\n".join(wrong)


def test_locks_are_recognised() -> None:
    code = "import threading as t, threading\nfrom queue import Queue\nx = threading.Lock()\n"
    code += "isinstance(x, functools.cached_property)\n"
    assert locks_made_in(ast.parse(code)) == [2, 3]


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
