"""Finds the parameters of public callables that the bodies of those callables do not use.

A parameter is used if its name is read anywhere in the body. Not counted are `del`, an argument of
`check_options`, and an assignment to an attribute of that name that nothing in the package reads. A
method that overrides one of a base class takes the parameters of that method and need not use them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pathlib
import subprocess
import sys
import types
from collections.abc import Iterator

import duograph as ms
from duograph.compat import PATHS

MODULES = (
    "amp", "backend", "common", "common.initializer", "communication", "context", "dataset",
    "dataset.audio",
    "dataset.config", "dataset.transforms", "dataset.text", "dataset.vision", "log", "nn", "numpy",
    "ops",
    "execution", "mindrecord", "train", "train.callback", "autodiff", "mint", "mint.nn",
    "mint.nn.functional", "mint.optim", "mint.linalg", "mint.special", "mint.distributed",
    "scipy.linalg", "scipy.optimize",
)  # fmt: skip
SELF = ("self", "cls")


def namespaces() -> Iterator[tuple[str, types.ModuleType]]:
    """Yield the public modules with their names after ``duograph``, the package first."""
    yield "", ms
    for name in MODULES:
        yield name, importlib.import_module(f"duograph.{name}")


@functools.cache
def package_names() -> list[str]:
    """Return what `dir(duograph)` shows first; the package keeps names that were looked up."""
    code = "import duograph; print(*dir(duograph))"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def public_names(module: types.ModuleType) -> list[str]:
    """Return the public names of a module: its `__all__`, else what it shows."""
    shown = package_names() if module is ms else vars(module)  # without names that others serve
    names = getattr(module, "__all__", None) or shown
    return sorted(n for n in names if not n.startswith("_"))


def members(cls: type) -> Iterator[tuple[str, object]]:
    """Yield the attributes that a class defines, itself or in private base classes."""
    for base in cls.__mro__:
        if base is not cls and not base.__name__.startswith("_"):
            return
        yield from sorted(vars(base).items())


def public_callables() -> Iterator[tuple[str, object, type | None]]:
    """Yield (name, function or class, None), and (name, function, class) of public methods."""
    seen: set[int] = set()
    for prefix, module in namespaces():
        for name in public_names(module):
            thing = getattr(module, name, None)
            home = str(getattr(thing, "__module__", ""))
            if thing is None or id(thing) in seen or not home.startswith("duograph"):
                continue
            seen.add(id(thing))
            owner = f"{prefix}.{name}" if prefix else name
            if inspect.isclass(thing):
                for key, raw in members(thing):
                    function = getattr(raw, "__func__", raw)
                    if key == "function":  # of a primitive class: the function is public itself
                        continue
                    if key == "__init__" and inspect.isfunction(function):
                        yield owner, function, thing
                    elif inspect.isfunction(function) and (
                        not key.startswith("_") or key == "__call__"
                    ):
                        yield f"{owner}.{key}", function, thing
            elif callable(thing):
                yield owner, thing, None


@functools.cache
def tree_of(file: str) -> ast.Module:
    """Return the syntax tree of a source file."""
    return ast.parse(pathlib.Path(file).read_text())


@functools.cache
def parsed(file: str) -> dict[int, ast.FunctionDef]:
    """Return the functions of a source file by their first line."""
    return {first_line(n): n for n in ast.walk(tree_of(file)) if isinstance(n, ast.FunctionDef)}


def definition(function: object) -> ast.FunctionDef | None:
    """Return the syntax tree of a function; None for ops, lambdas and generated functions."""
    function = inspect.unwrap(function)  # type: ignore[arg-type]
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or "duograph" not in code.co_filename:
        return None
    if "/ops/" in code.co_filename and hasattr(function, "op"):
        return None
    found = parsed(code.co_filename).get(code.co_firstlineno)
    return found if found is not None and found.name == code.co_name else None


def first_line(node: ast.FunctionDef) -> int:
    """Return the first line of a function with its decorators."""
    return min([node.lineno, *[d.lineno for d in node.decorator_list]])


@functools.cache
def attributes_read(file: str) -> frozenset[str]:
    """Return the names of all attributes that a source file reads."""
    found: set[str] = set()
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # for getattr
    return frozenset(found)


def read_names(node: ast.AST, file: str) -> set[str]:
    """Return the names that a piece of source reads, other than to check options."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    if isinstance(node, ast.Call):
        called = getattr(node.func, "id", "")
        if called == "check_options":
            return {n.value.id for n in node.keywords if n.arg is None and is_name(n.value)}
        if called in ("locals", "vars"):
            return {"*"}
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and is_name(node.value):
        kept = attributes_read(file)
        if all(isinstance(t, ast.Attribute) and t.attr not in kept for t in node.targets):
            return set()
    return set().union(*[read_names(n, file) for n in ast.iter_child_nodes(node)])


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def unread(node: ast.FunctionDef, file: str) -> list[str]:
    """Return the parameters that a function does not use."""
    body = [
        n for n in node.body
        if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    ]  # fmt: skip
    if not body or (len(body) == 1 and isinstance(body[0], ast.Raise)):
        return []
    a = node.args
    found = set().union(*[read_names(n, file) for n in body])
    if "*" in found:
        return []
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    names += [x.arg for x in (a.vararg, a.kwarg) if x is not None]
    return [n for n in names if n not in found and n not in SELF and not n.startswith("_")]


def overrides(function: object, cls: type | None) -> bool:
    """Return whether a method overrides one of a base class."""
    name = getattr(function, "__name__", "")
    if cls is None or name == "__init__":
        return False
    homes = [base for base in cls.__mro__ if name in vars(base)]
    return len(homes) > 1


def unused() -> dict[tuple[str, str], str]:
    """Return the unused parameters of all public callables, with the place of each."""
    found: dict[tuple[str, str], str] = {}
    for name, function, cls in public_callables():
        if overrides(function, cls):
            continue
        node = definition(function)
        if node is None:
            continue
        file = inspect.unwrap(function).__code__.co_filename  # type: ignore[attr-defined]
        for parameter in unread(node, file):
            found[name, parameter] = f"{file}:{node.lineno}"
    return found


if __name__ == "__main__":
    for (owner, parameter), place in unused().items():
        print(owner, parameter, place)
    print(len(list(public_callables())), "callables", len(PATHS), "spellings of modules")
