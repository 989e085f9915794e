"""Calls kernels that users provide (`ops.Custom`), as C source or as functions of a library.

`CPU.prepare` finds the builder in the kernel table. Kernels of both kinds have the signature that
MindSpore defines. A source is compiled together with a wrapper that has the signature of generated
code, so that a linked program can call it like any other kernel. A function of a library is called
from Python, so a program that uses one cannot be linked.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import TYPE_CHECKING, NoReturn

from duograph.backend.locks import importing
from duograph.errors import ArgumentValueError, BackendError

from . import memory
from ._native import ffi, lib
from .kernels import kernel
from .native_call import LIST, Native, NativeCall, keep, list_call
from .sized_structs import refuse_sizes

if TYPE_CHECKING:
    from typing import Any

    from duograph.types import TensorType

    from ._native import CData

    Types = tuple[TensorType, ...]

SIGNATURE = "int (*)(int, void **, int *, int64_t **, char **, void *, void *)"
# Added to the codes of a user's function, so that they differ from those of the framework.
OWN_CODE = 1000
_WRAPPER = """
#include <stdint.h>
{source}
__attribute__((visibility("default"))) int dg_custom(void **args, int64_t begin, int64_t end) {{
    int ndims[] = {{{ndims}}};
    {shapes}
    int64_t *shapes[] = {{{names}}};
    const char *dtypes[] = {{{dtypes}}};
    int code = {function}({count}, args, ndims, shapes, dtypes, 0, 0);
    return code ? code + {own} : 0;
}}
"""


@kernel("custom", "custom_effect")
def custom(types: Types, results: Types, *, kernel: Any) -> NativeCall | None:
    """Return the prepared call of a user's kernel; None if it has no C source and no library."""
    refuse_sizes("a custom kernel", *types, *results)
    if kernel.library is not None:
        return _library_call(kernel, types, results)
    if "c" not in kernel.sources:
        return None
    return _source_call(kernel, types, results)


def _source_call(kernel: Any, types: Types, results: Types) -> NativeCall:
    """Compile a user's C source for given types; return the prepared call of its function.

    Raises:
        ArgumentValueError: the source does not compile; the message has the compiler's output.
    """
    with importing:
        from . import toolchain  # loads the disk cache, which only compilation needs

    every = (*types, *results)
    library = toolchain.build(
        _WRAPPER.format(
            source=kernel.sources["c"],
            function=kernel.name,
            count=len(every),
            ndims=", ".join(str(len(t.shape)) for t in every),
            shapes="\n    ".join(
                f"int64_t shape{k}[] = {{{', '.join(map(str, t.shape)) or '0'}}};"
                for k, t in enumerate(every)
            ),
            names=", ".join(f"shape{k}" for k in range(len(every))),
            dtypes=", ".join(f'"{t.dtype.name}"' for t in every),
            own=OWN_CODE,
        )
    )
    if isinstance(library, toolchain.BuildFailure):
        raise ArgumentValueError(
            f"Custom: the C source of {kernel.name!r} cannot be used: {library.reason}"
        )
    function = library.function("dg_custom")
    region = keep(ffi.new("dg_region *", (function, 1, 1)), function)
    failed = functools.partial(_failed, kernel.name, OWN_CODE)
    native = Native("dg_region_run", region, LIST, failed)
    return NativeCall(list_call(native, results, kernel.name), native=native)


def _failed(name: str, base: int, code: int) -> NoReturn:
    """Raise BackendError because a user's function returned a value other than 0.

    `name` is the function's name. The value is `code - base`, since the C wrapper adds `base` to
    it.
    """
    raise BackendError(f"Custom: the kernel {name!r} returned {code - base}; wanted 0")


def _library_call(kernel: Any, types: Types, results: Types) -> NativeCall:
    """Return the prepared call of a user's function in a shared library, which stays loaded.

    Raises:
        ArgumentValueError: the library cannot be loaded, or lacks the function.
    """
    run = _function(kernel)
    every = (*types, *results)
    shapes = [ffi.new("int64_t[]", list(t.shape) or [0]) for t in every]
    names = [ffi.new("char[]", t.dtype.name.encode()) for t in every]
    ndims = ffi.new("int[]", [len(t.shape) for t in every])
    # the arrays of pointers do not own what they point to
    all_shapes = keep(ffi.new("int64_t *[]", shapes), shapes)
    dtypes = keep(ffi.new("char *[]", names), names)
    makers = [memory.maker(r.nbytes, kernel.name) for r in results]
    count = len(every)

    def call(*handles: CData) -> CData | tuple[CData, ...]:
        made = tuple([make() for make in makers])
        params = ffi.new("void *[]", [ffi.cast("void *", h) for h in (*handles, *made)])
        code = run(count, params, ndims, all_shapes, dtypes, ffi.NULL, ffi.NULL)
        if code:
            _failed(kernel.name, 0, code)
        return made[0] if len(made) == 1 else made

    return NativeCall(call)


# Path of a library -> the version of the file that was loaded first under this path.
_loaded: dict[str, tuple[int, ...] | None] = {}
# The version of the library that each operator uses.
_versions: weakref.WeakKeyDictionary[Any, tuple[int, ...] | None] = weakref.WeakKeyDictionary()


def _function(kernel: Any) -> Any:
    """Return the function of a kernel in a shared library as a callable C pointer.

    A library that was built again since it was loaded is loaded again for operators that are first
    used afterwards; others keep the one that they have.
    """
    path = kernel.library
    if kernel not in _versions:
        try:
            facts = os.stat(path)
            version = facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size
        except OSError:  # it is gone: what is loaded still works
            _versions[kernel] = _loaded.get(path)
        else:
            _versions[kernel] = version
    return _symbol(path, kernel.name, _versions[kernel])


@functools.cache
def _symbol(path: str, name: str, version: tuple[int, ...] | None) -> Any:
    if _loaded.setdefault(path, version) == version:
        handle = lib.dg_open(path.encode())
    else:  # the loader takes a known path for the library that it has loaded
        with importing:
            import shutil  # slow, and needed here alone
            import tempfile
        with tempfile.TemporaryDirectory(prefix="duograph-") as folder:
            copied = os.path.join(folder, os.path.basename(path))
            shutil.copyfile(path, copied)
            handle = lib.dg_open(copied.encode())
    found = ffi.NULL if handle == ffi.NULL else lib.dg_symbol(handle, name.encode())
    if found == ffi.NULL:
        said = ffi.string(lib.dg_open_problem()).decode("utf-8", "replace")
        raise ArgumentValueError(f"Custom: {path} has no usable function {name!r}: {said}")
    return ffi.cast(SIGNATURE, found)
