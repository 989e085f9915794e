"""Import hook that makes MindSpore's import paths work, as the tables in `paths` describe.

`duograph/__init__.py` installs it. A path without a file becomes a module whose names come from
other modules; a module with a file gets a `__getattr__` for the names that it lacks. Errors for
missing names suggest similar ones. While it is being imported, this module must import no other
part of duograph than `advice`, `errors`, and the tables in `paths` and `refused_names`.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import advice
from . import refused_names
from .paths import CHILDREN, DTYPES, PATHS, RENAMED

__all__ = ["nearest", "public_names", "renamed", "serve", "serve_paths"]

PACKAGE = __name__.partition(".")[0]
# where a name is looked for that the asked module lacks
NAMESPACES = ("", "ops", "nn", "train", "numpy", "mint", "mint.nn", "mint.nn.functional", "dataset")
EXTENDED = ("mint.nn.functional", "mint", "mint.linalg", "mint.special")
EXTENDED_LAYERS = ("Linear",)  # layers of `mint.nn` that `nn` has under the same name
OWN_GETATTR = ("", "ops")  # modules with a `__getattr__` of their own, which asks `serve` last
_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MISSING = object()
_noted: set[str] = set()


def renamed(name: str, where: str, find: Callable[[str], object]) -> object:
    """Return the object that an old name of MindSpore means; None if `name` is no old name.

    The first use of an old name in a process causes a DeprecationWarning.

    Args:
        name: the name.
        where: the namespace in which it was looked up, for the warning.
        find: function from the present name to the object, or None if there is none.
    """
    new = RENAMED.get(name)
    found = None if new is None else find(new)
    if found is not None and name not in _noted:
        _noted.add(name)
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
            frame, level = frame.f_back, level + 1
        text = f"{where}.{name} is the old name of {new}; both work"
        warnings.warn(text, DeprecationWarning, stacklevel=level)
    return found


def full_name(path: str) -> str:
    """Return the full name of the module at a path below duograph: "nn" is `duograph.nn`.

    The path "" is the package itself.
    """
    return f"{PACKAGE}.{path}" if path else PACKAGE


def load(path: str) -> types.ModuleType | None:
    """Import the module at a path below duograph and return it; None if there is no such module.

    Other errors that the import raises pass.
    """
    try:
        return importlib.import_module(full_name(path))
    except MissingModuleError:
        return None


def serve(path: str, name: str) -> object:
    """Return the object that the tables in `paths` provide for a name that a module lacks.

    `path` is the module's path below duograph, such as "nn".

    Raises:
        AttributeError: the tables have no such name; the message suggests similar names.
    """
    if name.startswith("__"):  # Python asks for these while modules are being loaded
        raise AttributeError(f"module {full_name(path)!r} has no attribute {name!r}")
    found = _find(path, name)
    if found is _MISSING:
        found = renamed(name, full_name(path), lambda new: _present(path, new))
    if found is not _MISSING and found is not None:
        return found
    meant = advice.missing_name_advice(path, name) or nearest(path, name)
    # `obj` is None, so that Python adds no suggestion of its own
    raise AttributeError(
        f"module {full_name(path)!r} has no attribute {name!r}{meant}", name=name, obj=None
    )


def _find(path: str, name: str) -> object:
    """Return the object that MindSpore has at `path` under `name`, or the marker `_MISSING`.

    The first of these that exists counts: a dtype, if `path` is ""; a sub-module of the path that
    has a row in `PATHS`; the name in one of the modules that the path's row lists, in order; the
    result of `_extended`; the placeholder of a refused name.
    """
    if not path and name in DTYPES:
        return getattr(load("dtype"), DTYPES[name])
    child = CHILDREN.get((path, name), f"{path}.{name}" if path else name)
    if child in PATHS:
        return importlib.import_module(full_name(child))
    for source in PATHS.get(path, ()):
        module = load(source)
        found = _MISSING
        if module is not None:
            found = vars(module).get(name, _MISSING)
            if found is _MISSING and source in PATHS and source not in OWN_GETATTR:
                found = _find(source, name)
            elif found is _MISSING:
                found = getattr(module, name, _MISSING)
        if found is not _MISSING:
            return found
    found = _extended(path, name)
    if found is _MISSING:
        found = refused_names.find(path, name) or _MISSING
    return found


def _extended(path: str, name: str) -> object:
    """Return the object of `mint` that MindSpore has in `ops` or `nn` under a name with a suffix.

    The suffix is "_ext" or "_view" in `ops` and "Ext" in `nn`: ``ops.add_ext`` is ``mint.add``. The
    result is the marker `_MISSING` if there is no such object.
    """
    if path.partition(".")[0] == "nn" and (name in EXTENDED_LAYERS or name.endswith("Ext")):
        return getattr(load("mint.nn"), name.removesuffix("Ext"), _MISSING)
    plain = name.removesuffix("_view").removesuffix("_ext")
    if plain != name and path.partition(".")[0] == "ops":
        for source in EXTENDED:
            found = getattr(load(source), plain, _MISSING)
            if found is not _MISSING:
                return found
    return _MISSING


def _present(path: str, name: str) -> object:
    """Return the object called `name` in the imported module at a path, or what `_find` finds.

    The result is None if there is no such object.
    """
    found = vars(sys.modules[full_name(path)]).get(name, _MISSING)
    found = _find(path, name) if found is _MISSING else found
    return None if found is _MISSING else found


def public_names(module: types.ModuleType) -> list[str]:
    """Return `__all__` of a module, or else its names without a leading underscore."""
    return list(getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]))


def served_names(path: str) -> list[str]:
    """Return the public names of all modules in the row of a path in `PATHS`, sorted."""
    modules = [load(source) for source in PATHS[path]]
    return sorted({n for m in modules if m is not None for n in public_names(m)})


def nearest(path: str, name: str) -> str:
    """Return a hint such as "; did you mean duograph.ops.add?" for a name that a module lacks.

    `path` is the module's path below duograph. Only modules that are imported are searched. The
    result is "" if nothing similar is found.
    """
    module = sys.modules.get(full_name(path))
    for other in NAMESPACES:
        loaded = sys.modules.get(full_name(other))
        if other != path and loaded is not None and name in vars(loaded):
            return f"; did you mean {full_name(other)}.{name}?"
    near_by = [module, *(sys.modules.get(full_name(s)) for s in PATHS.get(path, ()))]
    known = {n for m in near_by if m is not None for n in vars(m) if not n.startswith("_")}
    if path in OWN_GETATTR and module is not None:
        known |= set(dir(module))
    near = advice.near(name, sorted(known))
    return f"; did you mean {full_name(path)}.{near}?" if near else ""


class MissingModuleError(ModuleNotFoundError):
    """Raised for an import from duograph of a module or name that does not exist.

    `fullname` is the dotted name of the missing module; the message suggests similar names.
    """

    def __init__(self, fullname: str) -> None:
        self.parent, _, self.missing = fullname.rpartition(".")
        # `from parent import name` swallows an error whose `name` is the full one
        super().__init__(f"cannot import {self.missing!r} from {self.parent!r}", name=self.missing)

    def __str__(self) -> str:
        # made late, because most of these errors are caught and never shown
        near = nearest(self.parent.partition(".")[2], self.missing)
        return f"{super().__str__()}: no such name{near}"


class _ServedLoader:
    """Module loader for a path of MindSpore that is no file in duograph: it makes an empty module.

    `_attach` gives the module its attributes. The class does not derive from `importlib.abc`, whose
    import would take as long as twenty modules of duograph.
    """

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        path = module.__name__.partition(".")[2]
        sources = ", ".join(full_name(s) for s in PATHS[path]) or "the table of refused names"
        module.__doc__ = f"Module at a path of MindSpore's, whose names are served from {sources}."
        _attach(module, path)


class _FileLoader(importlib.machinery.SourceFileLoader):
    """Module loader for a file of duograph whose path has a row in `PATHS`.

    A name that the file lacks is provided from the modules in the row, unless the file defines a
    `__getattr__` of its own.
    """

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        if "__getattr__" not in vars(module):  # its own one asks `serve`
            _attach(module, module.__name__.partition(".")[2])


def _attach(module: types.ModuleType, path: str) -> None:
    """Give a module a `__getattr__` and `__dir__` that provide the names of its row in `PATHS`."""
    without_file = "__file__" not in vars(module)

    def get(name: str) -> object:
        if name == "__all__" and without_file:  # a file without one exports what it defines
            return served_names(path)
        found = serve(path, name)
        # the next access need not come here; the code of a file could mean a builtin by that name
        if without_file and name not in RENAMED:
            vars(module)[name] = found
        return found

    def listed() -> list[str]:
        return sorted({*vars(module), *served_names(path)})

    vars(module).update(__getattr__=get, __dir__=listed)


class _Finder:
    """Import hook for the paths that have a row in `PATHS`; it runs before Python's own hooks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != PACKAGE or fullname.partition(".")[2] not in PATHS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None:
            loader: Any = _ServedLoader()
            return importlib.util.spec_from_loader(fullname, loader, is_package=True)
        if type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _FileLoader(fullname, spec.loader.path)
        return spec


class _LastFinder:
    """Import hook that raises `MissingModuleError` for a module of duograph that does not exist.

    It is the last hook, which Python calls only if no other one has found the module.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if fullname.partition(".")[0] != PACKAGE or parent not in sys.modules or name[:2] == "__":
            return None
        raise MissingModuleError(fullname)


def serve_paths() -> None:
    """Install the import hooks of this module, which make MindSpore's import paths importable."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        sys.meta_path.append(_LastFinder())
