"""The tables of paths: every row leads somewhere, and no two rows serve each other."""

from __future__ import annotations

import importlib
import subprocess
import sys

import duograph as ms
import pytest
from duograph.compat.paths import CHILDREN, PATHS, RENAMED

# paths that are attributes without an import of their own
ATTRIBUTES = [
    "ops.operations", "ops.functional", "ops.function", "ops.composite", "ops.P", "common.dtype",
    "common.api", "common.initializer", "train.metrics", "train.callback", "train.serialization",
    "nn.cell", "nn.layer.basic", "nn.optim", "communication.management", "graph.api", "version",
]  # fmt: skip


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_paths_are_attributes(path: str) -> None:
    found: object = ms
    for part in path.split("."):
        found = getattr(found, part)
    served = CHILDREN.get((path.rpartition(".")[0], path.rpartition(".")[2]), path)
    assert found is importlib.import_module(f"duograph.{served}")


def test_rows_serve_each_other_in_no_circle() -> None:
    def visit(path: str, above: tuple[str, ...]) -> None:
        assert path not in above, (*above, path)
        for source in PATHS.get(path, ()):
            visit(source, (*above, path))

    for path in PATHS:
        visit(path, ())


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_names_warn_once(old: str, new: str) -> None:
    from duograph.compat import served_paths

    served_paths._noted.discard(old)
    where = ms if hasattr(ms, new) else ms.ops
    with pytest.warns(DeprecationWarning, match=f"{old} is the old name of {new}") as said:
        assert getattr(where, old) is getattr(where, new)
    assert said[0].filename == __file__
    assert getattr(where, old) is getattr(where, new)


def test_dtypes_with_names_of_pythons_types() -> None:
    assert ms.bool is ms.dtype.bool is ms.common.dtype.bool is ms.bool_
    assert (ms.int, ms.float) == (ms.int32, ms.float32)
    assert (ms.cfloat, ms.cdouble) == (ms.complex64, ms.complex128)
    for module in (ms, ms.dtype, ms.common, ms.ops.primitive):
        getattr(module, "max", None)
        assert not {"bool", "int", "float", "max"} & set(vars(module)), "hides a builtin"


def test_star_imports_of_paths() -> None:
    names: dict[str, object] = {}
    exec("from duograph.ops.operations import *\nfrom duograph.nn.layer import *", names)
    assert names["Add"] is ms.ops.Add
    assert names["Conv2d"] is ms.nn.Conv2d


@pytest.mark.parametrize(
    ("path", "name", "home"),
    [
        ("ops", "acos_ext", "mint"),
        ("ops.function.nn_func", "glu_ext", "mint.nn.functional"),
        ("ops.auto_generate", "transpose_ext_view", "mint"),
        ("ops.function.math_func", "matrix_norm_ext", "mint.linalg"),
    ],
)
def test_extended_functions_are_those_of_mint(path: str, name: str, home: str) -> None:
    plain = name.removesuffix("_view").removesuffix("_ext")
    where = importlib.import_module(f"duograph.{path}")
    assert getattr(where, name) is getattr(importlib.import_module(f"duograph.{home}"), plain)
    assert not hasattr(where, "no_such_function_ext")
    assert not hasattr(ms.nn, name)


def test_packages_load_in_any_order() -> None:
    """A module that lacks `__all__` loads none of those that serve further names of it."""
    code = "import sys, duograph.nn; print('duograph.train' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
