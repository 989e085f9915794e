"""Evaluates `import` statements in compiled code.

The functions register in `dispatch.SYNTAX`. A module is imported while compiling. Which module
`sys.modules` holds under the name, and what the function reads of it, are recorded as constants,
which are compared before each later call.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys

from ..diagnostics import unsupported
from ..state.calls import Frame
from ..state.evaluation import Evaluation
from ..types import Value
from ..values.flow import NORMAL, Flow
from .attributes import get_attribute
from .dispatch import syntax
from .variables import read_missing, store


@syntax(ast.Import)
def _import(ev: Evaluation, frame: Frame, node: ast.Import) -> Flow:
    for a in node.names:
        module = _module(ev, a.name)
        if a.asname is None:
            module = _module(ev, a.name.split(".")[0])
        store(ev, frame, (a.asname or a.name).split(".")[0], module)
    return NORMAL


@syntax(ast.ImportFrom)
def _import_from(ev: Evaluation, frame: Frame, node: ast.ImportFrom) -> Flow:
    name = "." * node.level + (node.module or "")
    if node.level:
        name = importlib.util.resolve_name(name, frame.globals.get("__package__"))
    module = _module(ev, name)
    for a in node.names:
        if a.name == "*":
            raise unsupported("import *", "Name what is imported")
        try:
            value = get_attribute(ev, module, a.name)
        except AttributeError:
            try:
                value = _module(ev, f"{module.__name__}.{a.name}")
            except ModuleNotFoundError:
                raise ImportError(
                    f"cannot import name {a.name!r} from {module.__name__!r}"
                ) from None
        store(ev, frame, a.asname or a.name, value)
    return NORMAL


def _module(ev: Evaluation, name: str) -> Value:
    """Import a module; record the module of that name, or that there is none."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        read_missing(ev, "item", sys.modules, name, f"the module {name}")
        raise
    ev.captures.add("item", sys.modules, name, sys.modules.get(name), f"the module {name}")
    return module
