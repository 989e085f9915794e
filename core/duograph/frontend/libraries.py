"""Whose code it is: ours runs while compiling, the user's is evaluated, other libraries' is
Python's alone.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_framework", "is_host", "is_impure", "interpreted"]

# Libraries whose functions work on host data.
_HOST = {
    "numpy",
    "scipy",
    "pandas",
    "PIL",
    "cv2",
    "sklearn",
    "matplotlib",
    "torch",
    "jax",
    "tensorflow",
    "tqdm",
    "requests",
    "yaml",
    "h5py",
    "skimage",
    "transformers",
    "pytest",
    "_pytest",
    "hypothesis",
    "ml_dtypes",
    "cffi",
    "pyopencl",
    "safetensors",
} | set(sys.stdlib_module_names)
_NOT_HOST = {"__main__", "this"}
# Modules and functions whose result is not a function of their arguments, or that do something.
_IMPURE = (
    "time",
    "random",
    "numpy.random",
    "secrets",
    "uuid",
    "os",
    "sys",
    "io",
    "logging",
    "warnings",
    "subprocess",
    "datetime",
    "tempfile",
    "shutil",
    "socket",
    "threading",
    "queue",
    "gc",
    "tqdm",
    "requests",
    "pathlib",
    "pickle",
    "_io",
    "posix",
    "_random",
    "_thread",
    "_warnings",
    "mtrand",
    "builtins.open",
)
# Ours that call functions of the user's: they are evaluated like the user's.
_INTERPRETED = {"duograph.ops.higher_order", "duograph.autodiff.vmap"}


def _top(module: Any) -> str:
    return module.split(".")[0] if isinstance(module, str) else ""


def is_framework(module: Any) -> bool:
    """Whether a module is part of duograph or of a backend of it."""
    return _top(module) == "duograph" and not str(module).startswith("duograph.conformance")


def is_host(module: Any) -> bool:
    """Whether a module's functions work on host data only."""
    top = _top(module)
    return top in _HOST and top not in _NOT_HOST


def is_impure(function: Any) -> bool:
    """Whether calling it while compiling would be wrong: it does something, or answers differently
    each time.
    """
    module = getattr(function, "__module__", None)
    if module is None:
        owner = getattr(function, "__self__", None)
        module = getattr(type(owner), "__module__", None) if owner is not None else None
    if not isinstance(module, str):
        return False
    if module == "os.path" or module in ("posixpath", "ntpath"):
        return False
    return any(module == p or module.startswith(p + ".") for p in _IMPURE)


def interpreted(module: Any) -> bool:
    """Whether functions of this module of ours are evaluated from source."""
    return module in _INTERPRETED
