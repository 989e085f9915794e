"""Makes `import mindspore` import duograph in child processes of programs that do the same.

Python imports this module when it starts, before anything else, because `compat.alias` has put its
folder on PYTHONPATH. It loads duograph only when `mindspore` is imported, or when its version is
looked up in `importlib.metadata`. It also runs the user's `sitecustomize` module, if there is one
that it hides. It must work in a Python without duograph.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_VARIABLE = "DUOGRAPH_AS_MINDSPORE"


class _Waiting(importlib.abc.MetaPathFinder):
    """Import hook that calls `compat.alias.install` when `mindspore` is first needed.

    That is at the first import of `mindspore`, or at the first lookup of its metadata. `install`
    adds the hook that makes `import mindspore` import duograph; this hook removes itself.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module spec for `mindspore` or a module in it; None for any other name.

        It comes from the hook that `compat.alias.install` adds. The result is also None if duograph
        is not installed.
        """
        if fullname.partition(".")[0] != "mindspore":
            return None
        alias = self._install()
        spec: importlib.machinery.ModuleSpec | None = None
        return spec if alias is None else alias.find_spec(fullname, path, target)

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context
    ) -> Iterable[importlib.metadata.Distribution]:
        """Return the metadata of `mindspore` if `context` names it, else ().

        The metadata come from the hook that `compat.alias.install` adds. The result is also () if
        duograph is not installed.
        """
        if (getattr(context, "name", None) or "").lower() != "mindspore":
            return ()
        alias = self._install()
        return () if alias is None else alias.find_distributions(context)

    def _install(self) -> Any:
        """Remove this hook and call `compat.alias.install`; return the hook that it adds.

        Returns None if duograph is not installed.
        """
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if importlib.util.find_spec("duograph") is None:
            return None
        given = os.environ[_VARIABLE]
        options = dict(part.split("=", 1) for part in given.split(",") if "=" in part)
        # late: most children never import `mindspore`
        alias = importlib.import_module("duograph.compat.alias")
        alias.install(**options)
        return alias.finder()


def _run_hidden() -> None:
    """Run the `sitecustomize` module that Python would have found without this module's folder.

    The folder is removed from `sys.path`. Nothing else happens if there is no such module.
    """
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if _VARIABLE in os.environ:
    sys.meta_path.insert(0, _Waiting())
_run_hidden()
