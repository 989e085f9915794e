"""Makes `import mindspore` import duograph, in this process and in its child processes.

`duograph run` and programs call `install`. Every module `mindspore.x.y` is then the module object
`duograph.x.y`, whether MindSpore itself is installed or not. Nothing is written to disk: two
environment variables tell child processes to do the same. While it is being imported, this module
must import only standard modules.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..version import __version__ as API_VERSION

__all__ = ["MODE_NAMES", "STARTUP", "VARIABLE", "finder", "install", "installed"]

ALIAS = "mindspore"
PACKAGE = __name__.partition(".")[0]
# children read how they were started from this variable: "", or "device=CUDA:1,mode=GRAPH"
VARIABLE = "DUOGRAPH_AS_MINDSPORE"
# the folder on PYTHONPATH whose `sitecustomize` module Python runs when a child starts
STARTUP = str(Path(__file__).resolve().parent / "startup")
MODE_NAMES = {"GRAPH": 0, "PYNATIVE": 1}


class _Distribution(importlib.metadata.Distribution):
    """Metadata of the package `mindspore` for `importlib.metadata`, for example its version.

    No such package exists on disk: duograph stands for it.
    """

    def read_text(self, filename: str) -> str | None:
        """Return the text of the metadata file METADATA; None for any other metadata file."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {ALIAS}\nVersion: {API_VERSION}\n"

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Return a path in the folder that contains the package duograph (site-packages)."""
        return Path(__file__).resolve().parents[2] / path


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook that makes `mindspore.x.y` a second name of the module object `duograph.x.y`."""

    def __init__(self) -> None:
        self._specs: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != ALIAS and not fullname.startswith(f"{ALIAS}."):
            return None
        module = importlib.import_module(PACKAGE + fullname[len(ALIAS) :])
        package = hasattr(module, "__path__")
        return importlib.machinery.ModuleSpec(fullname, self, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = sys.modules[PACKAGE + spec.name[len(ALIAS) :]]
        self._specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._specs.pop(module.__name__)  # Python has just set the alias's

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> Iterator[importlib.metadata.Distribution]:
        """Yield the distribution `mindspore` if `context` names it or names no distribution.

        `importlib.metadata` calls this hook.
        """
        name = getattr(context, "name", None)
        if name is None or name.lower() == ALIAS:
            yield _Distribution()


def finder() -> _Alias | None:
    """Return the finder that `install` has added to `sys.meta_path`, or None."""
    return next((f for f in sys.meta_path if isinstance(f, _Alias)), None)


def installed() -> bool:
    """Return whether `import mindspore` imports duograph in this process."""
    return finder() is not None


def install(
    device: str | None = None, mode: str | None = None, *, children: bool = True
) -> types.ModuleType:
    """Make `import mindspore` import duograph.

    `importlib.metadata.version("mindspore")` and `duograph.__version__` are then the version of
    MindSpore's API that duograph follows. A second call only changes `device` and `mode`.

    Args:
        device: a device such as ``"CPU"`` or ``"CUDA:1"``, which overrides the device that the
            program selects; None lets the program choose.
        mode: ``"GRAPH"`` or ``"PYNATIVE"``, which overrides the mode that the program selects; None
            lets the program choose.
        children: do the same in Python processes that this process starts.

    Returns:
        The module `duograph`, which is also `mindspore` from now on.

    Raises:
        RuntimeError: MindSpore itself was imported before, or there is no such device.
        ValueError: `mode` is another string.

    Examples:
        >>> import duograph.compat
        >>> ms = duograph.compat.install(children=False)
        >>> import mindspore.nn
        >>> mindspore.nn.Cell is duograph.nn.Cell
        True
    """
    package = importlib.import_module(PACKAGE)
    if sys.modules.get(ALIAS, package) is not package:
        raise RuntimeError(
            f"install: got a process that has imported {ALIAS} from "
            f"{getattr(sys.modules[ALIAS], '__file__', 'elsewhere')}; call it before that import"
        )
    if mode is not None and mode.upper() not in MODE_NAMES:
        raise ValueError(f"install: got mode={mode!r}; wanted GRAPH or PYNATIVE")
    package.context.force(device, None if mode is None else MODE_NAMES[mode.upper()])
    if not installed():
        sys.meta_path.insert(0, _Alias())
        vars(package)["__version__"] = API_VERSION
    if children:
        tell_children(device, mode)
    return package


def tell_children(device: str | None, mode: str | None) -> None:
    """Set the environment variables that make child processes import duograph as `mindspore`.

    `device` and `mode` are those of `install`, which the child processes pass to `install` too.
    """
    options = {"device": device, "mode": mode}
    os.environ[VARIABLE] = ",".join(f"{k}={v}" for k, v in options.items() if v is not None)
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if STARTUP not in folders:
        os.environ["PYTHONPATH"] = os.pathsep.join([STARTUP, *filter(None, folders)])
