"""The OpenCL backend, for all OpenCL devices that run a test kernel correctly.

The core calls the methods of `OpenCL`. The kernels and the execution of graphs come from
`duograph.backend.grid`; this package adds the driver. It must not contain kernels, so that all
GPU-style backends use the same kernels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyopencl as cl
from duograph.backend.grid import GridBackend, normalisation
from duograph.backend.grid.tiles import best_of, measure, side_of
from duograph.backend.protocol import DeviceInfo
from duograph.dtype import ALL
from duograph.errors import DeviceError

from .device import Device, QueueTimer
from .probe import probe
from .programs import store_tiles

# Only devices whose name or platform name contains this text are used.
NAME_VARIABLE = "DUOGRAPH_OPENCL_DEVICE"
_NO_PLATFORM = (
    "no OpenCL platform is installed; for one that runs on the processor: "
    "pip install duograph[opencl-cpu]"
)


class OpenCL(GridBackend):
    """The OpenCL backend, which uses all OpenCL devices that run a test kernel correctly.

    `DUOGRAPH_OPENCL_DEVICE` restricts it to devices whose name or platform name contains its text.
    """

    name = "OpenCL"
    dtypes = tuple(d for d in ALL if not d.is_complex)
    decomposed = normalisation.OPS

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._found: list[cl.Device] | None = None
        self._open: dict[int, Device] = {}

    def available(self) -> str | None:
        """Return None if some OpenCL device works, else a text with the problems of all devices."""
        if self._candidates():
            return None
        return "; ".join(self.problems) or _NO_PLATFORM

    def devices(self) -> list[DeviceInfo]:
        """Describe the working OpenCL devices; the first description also names unusable ones."""
        infos = []
        for index, device in enumerate(self._candidates()):
            text = (
                f"{device.name.strip()}, {device.platform.name.strip()}, "
                f"{device.max_compute_units} units"
            )
            if index == 0 and self.problems:
                text += f" (left out: {'; '.join(self.problems)})"
            infos.append(DeviceInfo(index, device.name.strip(), text, device.global_mem_size))
        return infos

    def device(self, device_id: int) -> Device:
        """Return the OpenCL device with a given index, opened at first use."""
        found = self._open.get(device_id)
        if found is None:
            usable = self._candidates()
            if not 0 <= device_id < len(usable):
                raise DeviceError(
                    f"OpenCL: there is no device {device_id}; there are {len(usable)}"
                )
            found = self._open.setdefault(device_id, Device(usable[device_id]))
        return found

    def timer(self, device_id: int) -> QueueTimer:
        """Return the clock of an OpenCL device's queue, by which observers learn kernel times."""
        return self.device(device_id).timer()

    def tune(self, device_id: int) -> Iterator[str]:
        """Time each matmul tile size on a device and choose the fastest; yield lines of a report.

        The choice holds for this process, and for later ones by a file in the disk cache.
        """
        device = self.device(device_id)
        side = side_of(device)
        found = measure(self, device_id, side)
        for tiles, seconds in found.items():
            yield (
                f"matmul {side}x{side}x{side} float32, {tiles}: "
                f"{2e-9 * side**3 / seconds:.0f} GFLOP/s"
            )
        device.tiles = best_of(found)
        yield f"chosen: {device.tiles}, kept in {store_tiles(device, device.tiles)}"

    def _candidates(self) -> list[cl.Device]:
        """Return the OpenCL devices that work, found at the first call.

        It stores in `problems` the reasons why other devices do not work.
        """
        if self._found is None:
            wanted = os.environ.get(NAME_VARIABLE, "").lower()
            usable, self.problems = [], []
            try:
                platforms = cl.get_platforms()
            except cl.Error as error:
                self.problems.append(f"{_NO_PLATFORM} ({error})")
                platforms = []
            for platform in platforms:
                try:
                    devices = platform.get_devices()
                except cl.Error as error:
                    self.problems.append(f"{platform.name.strip()}: {error}")
                    continue
                for device in devices:
                    if wanted not in f"{platform.name} {device.name}".lower():
                        continue
                    reason = probe(device)
                    if reason is None:
                        usable.append(device)
                    else:
                        self.problems.append(
                            f"{device.name.strip()} ({platform.name.strip()}): {reason}"
                        )
            if wanted and not usable and not self.problems:
                self.problems.append(f"{NAME_VARIABLE}={wanted!r} names no device")
            self._found = usable
        return self._found
