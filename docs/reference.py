"""What the API reference documents: modules, their public names, and the pages for Sphinx.

conf.py calls `write_pages`, and `reference_html` fills the pages. Sphinx's own autodoc would do
that too, but parses each of 3,000 docstrings as a document, which takes minutes.

Usage: reference.py --check
The exit status is 1 if a public name lacks a docstring.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import typing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

# The manual's order: modules by subject. A page documents what its module exports.
GROUPS: dict[str, tuple[str, ...]] = {
    "Tensors, gradients, compiling": ("duograph",),
    "Operators": ("duograph.ops",),
    "Networks": (
        "duograph.nn",
        "duograph.common.initializer",
        "duograph.amp",
        "duograph.nn.probability.distribution",
        "duograph.nn.probability.bijector",
    ),
    "Training and data": (
        "duograph.train",
        "duograph.experimental.optim",
        "duograph.experimental.optim.lr_scheduler",
        "duograph.dataset",
        "duograph.dataset.transforms",
        "duograph.dataset.vision",
        "duograph.dataset.text",
        "duograph.dataset.audio",
        "duograph.mindrecord",
    ),
    "PyTorch's names": (
        "duograph.mint",
        "duograph.mint.nn",
        "duograph.mint.nn.functional",
        "duograph.mint.optim",
        "duograph.mint.linalg",
        "duograph.mint.special",
        "duograph.mint.distributed",
    ),
    "NumPy's and SciPy's names": (
        "duograph.numpy",
        "duograph.scipy.linalg",
    ),
    "Devices and tools": (
        "duograph.runtime",
        "duograph.communication",
        "duograph.profiler",
        "duograph.onnx",
        "duograph.errors",
    ),
    "For authors of backends": (
        "duograph.backend.protocol",
        "duograph.backend.hookspecs",
        "duograph.backend.prepared",
        "duograph.backend.program",
        "duograph.backend.costs",
        "duograph.backend.views",
        "duograph.backend.streams",
        "duograph.backend.collectives",
        "duograph.backend.observers",
    ),
}
# Names that old programs look for in a module, and that are documented where they belong.
_ELSEWHERE = {"duograph.nn": ("duograph.train",)}
MODULES = tuple(module for group in GROUPS.values() for module in group)


@dataclass(frozen=True)
class Name:
    """A public name of a module.

    Attributes:
        module, name: where it is found.
        thing: the object.
        kind: "class", "exception", "function" or "data".
    """

    module: str
    name: str
    thing: Any
    kind: str

    @property
    def path(self) -> str:
        """The dotted path, which is also the anchor on the module's page."""
        return f"{self.module}.{self.name}"


def kind_of(thing: object) -> str:
    """Return how Sphinx documents an object."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    if typing.get_origin(thing) is not None:  # an alias of a type
        return "data"
    return "function" if callable(thing) else "data"


def names_of(module: ModuleType) -> list[Name]:
    """Return what a module exports: its `__all__`, else its public names that are no modules."""
    exported = getattr(module, "__all__", None)
    if exported is None:
        exported = [n for n in dir(module) if not n.startswith("_")]
    found = []
    for name in sorted(set(exported), key=str.lower):
        thing = getattr(module, name)
        home = getattr(thing, "__module__", None) or ""
        if home.startswith(_ELSEWHERE.get(module.__name__, ("-",))):
            continue
        if not inspect.ismodule(thing) and name != "annotations":
            found.append(Name(module.__name__, name, thing, kind_of(thing)))
    return found


def own_doc(thing: object) -> str:
    """Return the docstring that was written for an object, not the one of its class."""
    doc = inspect.getdoc(thing) or ""
    plain = inspect.isroutine(thing) or inspect.isclass(thing)
    return "" if not plain and doc == inspect.getdoc(type(thing)) else doc


def methods_of(cls: type) -> dict[str, object]:
    """Return the public methods and properties that a class itself defines."""
    return {
        name: raw
        for name, raw in vars(cls).items()
        if not name.startswith("_")
        and (isinstance(raw, property) or callable(getattr(cls, name, None)))
    }


def undocumented(names: list[Name]) -> list[str]:
    """Return the callables without a docstring, methods included; constants have their value."""
    bare = []
    for each in names:
        if each.kind == "data":
            continue
        path = each.path
        if not own_doc(each.thing):
            bare.append(path)
        if each.kind == "class":
            members = methods_of(each.thing).items()
            bare += [f"{path}.{name}" for name, raw in members if not own_doc(raw)]
    return bare


# ---- pages ---------------------------------------------------------------------------------------


def write_pages(folder: Path) -> None:
    """Write the source of the reference: an index and a page per module, filled by a directive."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "# API reference",
        "",
        "A page lists the names of a module; the search finds each of them.",
        "",
    ]
    for group, modules in GROUPS.items():
        lines += [f"## {group}", "", "```{toctree}", ":maxdepth: 1", ""]
        lines += [f"{m.removeprefix('duograph.')} <{m}>" for m in modules] + ["```", ""]
    pages = {"index": "\n".join(lines)}
    for module in MODULES:
        pages[module] = f"# {module}\n\n```{{module-reference}} {module}\n```\n"
    for page, text in pages.items():
        path = folder / f"{page}.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", required=True)
    parser.parse_args()
    bare = [
        name
        for module in MODULES
        for name in undocumented(names_of(importlib.import_module(module)))
    ]
    for name in bare:
        print(f"no docstring: {name}")
    return int(bool(bare))


if __name__ == "__main__":
    sys.exit(main())
