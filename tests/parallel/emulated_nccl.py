"""An NCCL for the emulated CUDA device: `fake_nccl.c`, whose work runs in the emulated streams.

As a plugin it is the engine `nccl-emulated`: the engine `nccl` over this library.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

from duograph.backend import registry
from duograph.backend.collectives import CollectivesSpec, Communicator
from duograph.backend.hookspecs import hookimpl
from duograph_collectives import nccl

__all__ = ["DEVICE", "build", "connect", "duograph_collectives"]

DEVICE = "CUDA-emulated"
SOURCE = pathlib.Path(__file__).parent / "fake_nccl.c"
_WORK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_PUT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _WORK, ctypes.c_void_p)
_BUFFER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_kept: list[Any] = []


def build(folder: pathlib.Path) -> str | None:
    """Compile the library into a folder; return its path, or None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    out = str(folder / "libnccl.so")
    flags = ("-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")
    subprocess.run([compiler, *flags, "-o", out, str(SOURCE), "-lm"], check=True)
    return out


def connect() -> ctypes.CDLL:
    """Let the library that DUOGRAPH_NCCL names work in the streams of the emulated device."""
    library = ctypes.CDLL(os.environ["DUOGRAPH_NCCL"])
    backend: Any = registry.backend(DEVICE)
    driver = backend.driver().module
    streams = driver.streams

    def put(stream: int, work: Any, given: int) -> int:
        address = ctypes.cast(work, ctypes.c_void_p).value
        streams.put(stream, lambda: _WORK(address)(given))
        return 0

    callbacks = [
        _WORK(lambda stream: int(streams.run(stream))),
        _PUT(put),
        _BUFFER(lambda place, nbytes: int(driver._holds(place or 0, nbytes))),
    ]
    _kept.append(callbacks)
    library.fake_nccl_device(*callbacks)
    return library


def prepare() -> None:
    """Build the library if DUOGRAPH_NCCL does not name one, and connect it: for scripts."""
    if not os.environ.get("DUOGRAPH_NCCL"):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fake-nccl-"))
        os.environ["DUOGRAPH_NCCL"] = build(folder) or ""
        os.environ["FAKE_NCCL_FOLDER"] = str(folder)
    connect()


@hookimpl
def duograph_collectives() -> CollectivesSpec:
    real = nccl.duograph_collectives()

    def world() -> Communicator:
        connect()
        return real.world()

    return CollectivesSpec(
        "nccl-emulated", world=world, claims=real.claims, available=real.available, priority=30
    )
