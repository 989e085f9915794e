"""Old import paths and old names of MindSpore, served from one table.

Scripts for MindSpore 1.x and 2.x use many import paths (`ops.operations`, `common.dtype`,
`train.serialization`, `ops._grad.grad_base`, ...). `PATHS` lists the modules that serve each of
them; an import hook creates such a module when it is imported. There are no shim files. The module
must not import other parts of the package when it is loaded.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable, Sequence

__all__ = ["PATHS", "RENAMED", "install"]

# module path below the package -> modules below the package that serve its names, first match wins
PATHS: dict[str, tuple[str, ...]] = {
    "common.api": ("",),
    "common.dtype": ("dtype",),
    "common.parameter": ("parameter",),
    "common.seed": ("random_state",),
    "common.tensor": ("tensor",),
    "communication.management": ("communication",),
    "nn.cell": ("nn",),
    "nn.dynamic_lr": ("nn",),
    "nn.grad": ("nn", "ops"),
    "nn.layer": ("nn",),
    "nn.layer.activation": ("nn",),
    "nn.layer.basic": ("nn",),
    "nn.layer.combined": ("nn",),
    "nn.layer.container": ("nn",),
    "nn.layer.conv": ("nn",),
    "nn.layer.embedding": ("nn",),
    "nn.layer.normalization": ("nn",),
    "nn.layer.pooling": ("nn",),
    "nn.learning_rate_schedule": ("nn",),
    "nn.loss": ("nn",),
    "nn.loss.loss": ("nn",),
    "nn.metrics": ("nn", "train"),
    "nn.optim": ("nn",),
    "nn.optim.optimizer": ("nn",),
    "nn.wrap": ("nn",),
    "nn.wrap.cell_wrapper": ("nn",),
    "nn.wrap.grad_reducer": ("nn",),
    "nn.wrap.loss_scale": ("nn",),
    "ops._grad": ("autodiff.bprop_registry",),
    "ops._grad.grad_base": ("autodiff.bprop_registry",),
    "ops.composite": ("ops",),
    "ops.composite.multitype_ops": ("ops",),
    "ops.function": ("ops",),
    "ops.functional": ("ops",),
    "ops.operations": ("ops",),
    "ops.op_info_register": ("ops",),
    "ops.primitive": ("ops",),
    "parallel._utils": ("nn",),
    "train.amp": ("amp",),
    "train.callback": ("train",),
    "train.dataset_helper": ("train",),
    "train.loss_scale_manager": ("amp", "train"),
    "train.metrics": ("train",),
    "train.model": ("train", "context"),
    "train.serialization": ("train",),
    "train.summary": ("train",),
}

# old name -> present name, in the namespace that a path serves; using one warns once
RENAMED: dict[str, str] = {
    "MetaTensor": "Tensor",
    "TensorAdd": "Add",
    "Gelu": "GeLU",
    "FastGelu": "FastGeLU",
    "Pack": "Stack",
    "Unpack": "Unstack",
    "GatherV2": "Gather",
}
_noted: set[str] = set()


def renamed(name: str, where: str, find: Callable[[str], object]) -> object:
    """Return the object of an old name, or None; warns once per process for each name."""
    new = RENAMED.get(name)
    found = None if new is None else find(new)
    if found is not None and name not in _noted:
        _noted.add(name)
        warnings.warn(
            f"{where}.{name} is the old name of {new}; both work", DeprecationWarning, stacklevel=3
        )
    return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook that creates the modules in PATHS, for which there are no files."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        prefix = self.package + "."
        if not fullname.startswith(prefix) or fullname[len(prefix) :] not in PATHS:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        package = self.package
        sources = PATHS[module.__name__[len(package) + 1 :]]
        module.__doc__ = f"Old path; its names live in {', '.join(sources) or package}."

        def serve(name: str) -> object:
            if name.startswith("__") and name != "__all__":
                raise AttributeError(name)
            if name == "__all__":
                return sorted({n for s in _served(package, sources) for n in public_names(s)})
            found = _lookup(package, sources, name)
            if found is None:
                found = renamed(name, module.__name__, lambda new: _lookup(package, sources, new))
            if found is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return found

        module.__getattr__ = serve  # type: ignore[method-assign]


def _served(package: str, sources: Sequence[str]) -> list[types.ModuleType]:
    out = []
    for source in sources:
        path = f"{package}.{source}" if source else package
        try:
            out.append(importlib.import_module(path))
        except ModuleNotFoundError as error:
            if error.name != path:  # an import inside that module failed
                raise
    return out


def public_names(module: types.ModuleType) -> list[str]:
    """Return `__all__` of a module, or else its names without a leading underscore."""
    return list(getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]))


def _lookup(package: str, sources: Sequence[str], name: str) -> object:
    for module in _served(package, sources):
        found = getattr(module, name, None)
        if found is not None:
            return found
    return None


def install(package: str) -> None:
    """Serve the old paths below `package`; files of the package take precedence."""
    if not any(isinstance(f, _Finder) and f.package == package for f in sys.meta_path):
        sys.meta_path.append(_Finder(package))
