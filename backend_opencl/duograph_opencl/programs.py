"""Keeps compiled OpenCL programs and tuned matmul tile sizes in the disk cache.

`Device` and `OpenCL.tune` call it. Cache keys must include the device and its driver. A program
whose entry is missing or unusable is built again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING

import pyopencl as cl
from duograph.backend import disk_cache
from duograph.backend.grid.tiles import choices_of
from duograph.errors import DeviceError

from .probe import build_uncached

if TYPE_CHECKING:
    from duograph.backend.grid.tiles import GroupTiles, Tiles

    from .device import Device

# Part of every key: change it with the format of the entries.
_FORMAT, _TILES = "opencl-1", "opencl-tiles-1"
# The PoCL version that `builtins.cl` was tested with.
_DECLARED = "PoCL 3."


def build_program(device: Device, source: str) -> cl.Program:
    """Return the program of an OpenCL source, from the disk cache or compiled.

    Raises:
        DeviceError: the source does not build; the message names files with the source and the log.
    """
    d = device.cl_device
    key = disk_cache.key_of(_FORMAT, source, " ".join(device.options), *_identity(d))
    binary = disk_cache.read(key, ".clbin")
    if binary is not None:
        try:
            return build_uncached(cl.Program(device.context, [d], [binary]), device.options)
        except cl.Error:
            binary = None  # a driver may refuse its own binary: build again below
    try:
        program = _compiled(device, source)
    except cl.Error as error:
        raise DeviceError(_report(device, source, error)) from None
    if disk_cache.keeps():  # reading binaries makes some drivers compile every kernel again
        made: bytes
        (made,) = program.get_info(cl.program_info.BINARIES)  # type: ignore[misc]  # typed `object`
        if made:
            with contextlib.suppress(OSError):  # the next process compiles again
                disk_cache.store(key, ".clbin", made)
    return program


def _compiled(device: Device, source: str) -> cl.Program:
    """Compile an OpenCL source without the disk cache; return the OpenCL program.

    The OpenCL implementation PoCL parses 900 kB of declarations of built-in functions before each
    program, which takes 100 ms, while the kernel itself takes 20 ms. On PoCL the source is
    therefore first compiled with declarations of only the few functions that kernels call
    (`builtins.cl`). If that fails, the source is compiled as on other platforms.
    """
    if _DECLARED in device.cl_device.platform.version:
        text, options = (
            _declarations() + source,
            [*device.options, "-D_OPENCL_H_"],
        )  # the include guard of PoCL's declarations
        with contextlib.suppress(cl.Error):
            return build_uncached(cl.Program(device.context, text), options)
    return build_uncached(cl.Program(device.context, source), device.options)


@functools.cache
def _declarations() -> str:
    return pathlib.Path(__file__).with_name("builtins.cl").read_text()


def _identity(d: cl.Device) -> tuple[str, ...]:
    """Return the names and versions that identify an OpenCL device, its driver and platform."""
    return d.name, d.vendor, d.version, d.driver_version, d.platform.name, d.platform.version


def _tiles_key(device: Device) -> str:
    return disk_cache.key_of(_TILES, device.serial, device.units, *_identity(device.cl_device))


def stored_tiles(device: Device) -> Tiles | GroupTiles | None:
    """Return the matmul tile size that `duograph tune` has stored for a device, or None."""
    data = disk_cache.read(_tiles_key(device), ".json")
    return next((t for t in choices_of(device) if _record(t) == data), None)


def store_tiles(device: Device, tiles: Tiles | GroupTiles) -> pathlib.Path:
    """Store an OpenCL device's matmul tile size in the disk cache; return the file's path."""
    return disk_cache.store(_tiles_key(device), ".json", _record(tiles))


def _record(tiles: Tiles | GroupTiles) -> bytes:
    """Return the bytes that the disk cache stores for a tile size.

    `stored_tiles` finds the tile size whose bytes are equal to those stored, and parses nothing.
    """
    return json.dumps(dataclasses.astuple(tiles)).encode()


def _report(device: Device, source: str, error: cl.Error) -> str:
    """Save the source and the log of a failed OpenCL build; return an error message.

    The message has the paths of both files and the first lines of the log that say "error".
    """
    folder = tempfile.mkdtemp(prefix="duograph-opencl-")
    text = os.path.join(folder, "kernel.cl")
    log = os.path.join(folder, "build.log")
    with open(text, "w") as file:
        file.write(source)
    with open(log, "w") as file:
        file.write(str(error))
    lines = [line for line in str(error).splitlines() if "error" in line.lower()][:6]
    return "\n  ".join(
        [
            f"a kernel does not build on {device.name}: source in {text}, the compiler's log in "
            f"{log}",
            *lines,
        ]
    )
