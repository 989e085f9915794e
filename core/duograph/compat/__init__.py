"""What makes programs for MindSpore run on duograph: import paths, old names, `import mindspore`.

- `paths`: the tables of MindSpore's import paths and of names that were replaced.
- `served_paths`: the import hook that serves them.
- `alias`: lets `import mindspore` mean duograph in a process and its children.
- `private_names`, `argument_checks`: private names that published packages import.

`duograph/__init__.py` imports this package first, which installs the import hook. When it is
loaded, it must not import other parts of the package.
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
    """Return a function of `alias`, which imports much of the standard library."""
    if name in ("install", "installed"):
        return getattr(importlib.import_module(f"{__name__}.alias"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
