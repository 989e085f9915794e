"""Finds the parameters of public callables that the bodies of those callables do not use.

A parameter counts as used if its name is read anywhere in the body, except by `del` and as the
value of a keyword of the same name in a call of `check_options`. A method that overrides one of a
base class takes the parameters of that method and need not use them.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pathlib
import types
from collections.abc import Iterator

import duograph as ms
from duograph.compat import PATHS

MODULES = (
    "amp", "backend", "common", "common.initializer", "communication", "context", "dataset",
    "dataset.config", "dataset.transforms", "dataset.vision", "log", "nn", "numpy", "ops", "runtime",
    "train", "train.callback", "autodiff", "errors",
)  # fmt: skip
SELF = ("self", "cls")


def namespaces() -> Iterator[tuple[str, types.ModuleType]]:
    """Yield the public modules with their names after ``duograph``, the package first."""
    yield "", ms
    for name in MODULES:
        yield name, importlib.import_module(f"duograph.{name}")


def public_names(module: types.ModuleType) -> list[str]:
    """Return the public names of a module: its `__all__`, else what it shows."""
    names = getattr(module, "__all__", None) or dir(module)
    return sorted(n for n in names if not n.startswith("_"))


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
                for key, raw in sorted(vars(thing).items()):
                    function = getattr(raw, "__func__", raw)
                    if key == "__init__" and inspect.isfunction(function):
                        yield owner, function, thing
                    elif inspect.isfunction(function) and (
                        not key.startswith("_") or key == "__call__"
                    ):
                        yield f"{owner}.{key}", function, thing
            elif callable(thing):
                yield owner, thing, None


@functools.cache
def parsed(file: str) -> dict[int, ast.FunctionDef]:
    """Return the functions of a source file by the line of their `def`."""
    tree = ast.parse(pathlib.Path(file).read_text())
    return {n.lineno: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def definition(function: object) -> ast.FunctionDef | None:
    """Return the syntax tree of a function; None for ops, lambdas and generated functions."""
    function = inspect.unwrap(function)  # type: ignore[arg-type]
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or "duograph" not in code.co_filename:
        return None
    if "/ops/" in code.co_filename and hasattr(function, "op"):
        return None
    found = parsed(code.co_filename)
    lines = [n for n in found.values() if first_line(n) == code.co_firstlineno]
    return lines[0] if lines and lines[0].name == code.co_name else None


def first_line(node: ast.FunctionDef) -> int:
    """Return the first line of a function with its decorators."""
    return min([node.lineno, *[d.lineno for d in node.decorator_list]])


def is_check(node: ast.AST) -> bool:
    """Return whether a node is a call of `check_options`."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check_options"


def read_names(node: ast.AST) -> set[str]:
    """Return the names that a piece of source reads, other than to check options."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    if is_check(node):
        return set()
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("locals", "vars"):
        return {"*"}
    return set().union(*[read_names(n) for n in ast.iter_child_nodes(node)])


def unread(node: ast.FunctionDef) -> list[str]:
    """Return the parameters that a function does not use."""
    body = [
        n for n in node.body
        if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    ]  # fmt: skip
    if not body or (len(body) == 1 and isinstance(body[0], ast.Raise)):
        return []
    a = node.args
    found = set().union(*[read_names(n) for n in body])
    if "*" in found:
        return []
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    names += [x.arg for x in (a.vararg, a.kwarg) if x is not None]
    return [n for n in names if n not in found and n not in SELF and not n.startswith("_")]


def overrides(name: str, cls: type | None) -> bool:
    """Return whether a method overrides one of a base class."""
    method = name.rpartition(".")[2]
    return cls is not None and any(method in vars(base) for base in cls.__mro__[1:])


def unused() -> dict[tuple[str, str], str]:
    """Return the unused parameters of all public callables, with the place of each."""
    found: dict[tuple[str, str], str] = {}
    for name, function, cls in public_callables():
        if overrides(name, cls):
            continue
        node = definition(function)
        for parameter in unread(node) if node is not None else ():
            code = inspect.unwrap(function).__code__  # type: ignore[arg-type]
            found[name, parameter] = f"{code.co_filename}:{node.lineno}"
    return found


if __name__ == "__main__":
    for (owner, parameter), place in unused().items():
        print(owner, parameter, place)
    print(len(list(public_callables())), "callables", len(PATHS), "spellings of modules")
