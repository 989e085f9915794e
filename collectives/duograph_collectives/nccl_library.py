"""Loads NVIDIA's library NCCL and calls it, with exceptions in place of error codes.

`nccl` and `nccl_device` use this module. cffi calls the library by the declarations in `nccl.h`
beside this file.

DUOGRAPH_NCCL    `0` disables the library; a path replaces cuda-pathfinder's
"""

from __future__ import annotations

import functools
import os
import pathlib
import time
from typing import Any

from duograph.dtype import (
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint8,
    uint32,
    uint64,
)

__all__ = ["INSTALL", "REDUCTIONS", "TYPES", "Library", "NcclError", "find"]

INSTALL = "pip install 'duograph[nccl]'"
TYPES = {
    int8: "ncclInt8",
    uint8: "ncclUint8",
    int32: "ncclInt32",
    uint32: "ncclUint32",
    int64: "ncclInt64",
    uint64: "ncclUint64",
    float16: "ncclFloat16",
    float32: "ncclFloat32",
    float64: "ncclFloat64",
    bfloat16: "ncclBfloat16",
    float8_e4m3fn: "ncclFloat8e4m3",
    float8_e5m2: "ncclFloat8e5m2",
}
REDUCTIONS = {"sum": "ncclSum", "prod": "ncclProd", "max": "ncclMax", "min": "ncclMin"}
# The first version with the `ncclConfig_t` that is declared, and the first with 8-bit floats.
OLDEST, WITH_FLOAT8 = 21800, 22400
_MAGIC, _UNDEFINED = 0xCAFEBEEF, -(2**31)  # NCCL_API_MAGIC, NCCL_CONFIG_UNDEF_INT


class NcclError(Exception):
    """Raised if NCCL fails; `duograph.ranks` adds collective, location and rank to the message."""


@functools.cache
def _ffi() -> Any:
    import cffi  # parsing declarations takes 20 ms

    ffi = cffi.FFI()
    ffi.cdef((pathlib.Path(__file__).parent / "nccl.h").read_text())
    return ffi


def find() -> Library | str:
    """Load NCCL; return the library, or a text with the reason why it is not used."""
    chosen = os.environ.get("DUOGRAPH_NCCL", "")
    if chosen == "0":
        return "DUOGRAPH_NCCL=0"
    try:
        if not chosen:
            from cuda.pathfinder import load_nvidia_dynamic_lib

            chosen = str(load_nvidia_dynamic_lib("nccl").abs_path)
        return Library(chosen)
    except (ImportError, RuntimeError) as error:
        return f"NCCL is not installed ({str(error).splitlines()[0]}); {INSTALL}"
    except (OSError, AttributeError, NcclError) as error:
        return str(error)


class Library:
    """The NCCL shared library, loaded.

    Args:
        path: path of the shared library.

    Attributes:
        version: version of NCCL, such as ``2.32.3``.

    Raises:
        OSError, AttributeError, NcclError: the library does not load, lacks a function, or is too
            old.
    """

    def __init__(self, path: str) -> None:
        self.ffi = _ffi()
        self.functions = self.ffi.dlopen(path)
        for name in dir(self.functions):  # that of a function which is missing raises
            getattr(self.functions, name)
        place = self.ffi.new("int *")
        self.call("ncclGetVersion", place)
        self.number = int(place[0])
        if self.number < OLDEST:
            raise NcclError(
                f"{path} is version {self.number} of NCCL; wanted 2.18 ({OLDEST}) or later: "
                f"{INSTALL}"
            )
        self.version = f"{self.number // 10000}.{self.number % 10000 // 100}.{self.number % 100}"

    def call(self, name: str, *arguments: object, comm: object = None) -> int:
        """Call a function of NCCL; return its status, which is success or "in progress".

        Args:
            comm: the communicator whose last error explains a failure.

        Raises:
            NcclError: the function failed.
        """
        status = int(getattr(self.functions, name)(*arguments))
        if status not in (self.functions.ncclSuccess, self.functions.ncclInProgress):
            raise NcclError(f"{name} gave {self.words(status, comm)}")
        return status

    def words(self, status: int, comm: object = None) -> str:
        """Return a text with the name of a status, and the last error of `comm` if given."""
        ffi, functions = self.ffi, self.functions
        name = ffi.string(functions.ncclGetErrorString(status)).decode()
        last = functions.ncclGetLastError(ffi.NULL if comm is None else comm)
        detail = "" if last == ffi.NULL else ffi.string(last).decode(errors="replace").strip()
        return f"{name!r} ({status})" + (f": {detail}" if detail else "")

    def unique_id(self) -> bytes:
        """Return a new id of 128 bytes, by which the ranks of a communicator find each other."""
        made = self.ffi.new("ncclUniqueId *")
        self.call("ncclGetUniqueId", made)
        return bytes(self.ffi.buffer(made))

    def new_comm(self, size: int, rank: int, unique_id: bytes) -> object:
        """Start connecting a communicator of `size` ranks in the current CUDA context; return it.

        `rank` is the position of this rank, and `unique_id` the same on all ranks. `settled` tells
        when the communicator is ready.
        """
        ffi = self.ffi
        undefined = dict.fromkeys(
            ("cgaClusterSize", "minCTAs", "maxCTAs", "splitShare"), _UNDEFINED
        )
        config = ffi.new(
            "ncclConfig_t *",
            {
                "size": ffi.sizeof("ncclConfig_t"), "magic": _MAGIC, "version": OLDEST,
                "blocking": 0, **undefined,
            },
        )  # fmt: skip
        known = ffi.new("ncclUniqueId *")
        ffi.buffer(known)[:] = unique_id
        place = ffi.new("ncclComm_t *")
        self.call("ncclCommInitRankConfig", place, size, known[0], rank, config)
        return place[0]

    def state(self, comm: object) -> int:
        """Return the status code of a communicator's last asynchronous call."""
        place = self.ffi.new("ncclResult_t *")
        self.call("ncclCommGetAsyncError", comm, place)
        return int(place[0])

    def settled(self, comm: object) -> bool:
        """Return whether the last call on a communicator is complete.

        Raises:
            NcclError: the call failed.
        """
        found = self.state(comm)
        if found == self.functions.ncclInProgress:
            return False
        if found != self.functions.ncclSuccess:
            raise NcclError(f"NCCL gave {self.words(found, comm)}")
        return True

    def settle(self, comm: object, seconds: float) -> None:
        """Wait until the last call on a communicator is complete.

        Raises:
            NcclError: the call failed, or is not complete after `seconds`.
        """
        end = time.monotonic() + seconds
        while not self.settled(comm):
            if time.monotonic() > end:
                raise NcclError(f"NCCL did not answer in {seconds:g} s")
            time.sleep(2e-4)
