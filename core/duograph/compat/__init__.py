"""Compatibility with programs for MindSpore: import paths, old names, `import mindspore`.

- `paths`: the tables of MindSpore's import paths and of names that were replaced.
- `served_paths`: the import hook that makes these paths importable.
- `alias`: makes `import mindspore` import duograph, in a process and its children.
- `private_names`, `argument_checks` and others: private names that published packages import.

`duograph/__init__.py` imports this package first, which installs the import hook. While it is being
imported, it must not import other parts of duograph, since none is initialised yet.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .paths import PATHS, RENAMED
from .served_paths import serve, serve_paths

__all__ = ["PATHS", "RENAMED", "install", "installed", "serve", "serve_paths"]

if TYPE_CHECKING:
    from .alias import install, installed

serve_paths()


def __getattr__(name: str) -> Any:
    """Return `install` or `installed` of `alias`.

    That module is imported late, because it imports much of the standard library.
    """
    if name in ("install", "installed"):
        return getattr(importlib.import_module(f"{__name__}.alias"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
