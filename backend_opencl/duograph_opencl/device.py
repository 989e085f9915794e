"""Implements one OpenCL device: its context, in-order queue, programs and buffers.

`duograph.backend.grid` calls the methods of `Device`. Kernel launches must return immediately; the
host waits for them only when it reads a value.
"""

from __future__ import annotations

import dataclasses
import math
import os
import platform
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyopencl as cl
from duograph.backend.grid import Block, GridDevice, GroupTooLargeError, Pool, Scalar
from duograph.backend.grid.tiles import SHORT_VECTORS, GroupTiles, Tiles
from duograph.backend.locks import new_lock
from duograph.backend.observers import DeviceTimer
from duograph.errors import DeviceError, DeviceMemoryError
from duograph.types import Shape

from .features import Features, build_options, dialect_of, features_of
from .probe import first_line, register_bits, subgroups_work
from .programs import build_program, stored_tiles

if TYPE_CHECKING:
    from duograph.backend.protocol import Array

T = TypeVar("T")

# Limit in bytes of used and cached memory together. Default: the memory that the driver reports, or
# three quarters of it on a CPU.
LIMIT_VARIABLE = "DUOGRAPH_OPENCL_MEMORY_LIMIT"
# "grid" runs the GPU kernels on a processor: slower, but tests them without a GPU.
FORM_VARIABLE = "DUOGRAPH_OPENCL_FORM"
# Arrays up to this size are copied on the host first, so that the transfer need not be awaited.
SMALL = 1 << 16

_NO_MEMORY = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}
# After these errors no queue of the device works; -9999 is NVIDIA's code for an access outside of
# all buffers.
_LOST = {
    cl.status_code.DEVICE_NOT_AVAILABLE,
    cl.status_code.INVALID_COMMAND_QUEUE,
    cl.status_code.INVALID_CONTEXT,
    -9999,
}
_FORKED = (
    "this process was forked after the OpenCL device had been used; start it with "
    "multiprocessing's 'spawn' method, or "
    "use the device for the first time in the child"
)


class Device(GridDevice):
    """One OpenCL device on pyopencl: a `GridDevice` with a context, queue and memory pool."""

    def __init__(self, device: cl.Device) -> None:
        self.cl_device = device
        self._tiles: tuple[Tiles | GroupTiles | None, ...] = ()  # empty until they are asked for
        self.name = device.name.strip()
        kind = os.environ.get(FORM_VARIABLE, "")
        self.serial = kind != "grid" and bool(device.type & cl.device_type.CPU)
        self.units = device.max_compute_units
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, device)
        self.gone = ""  # why this process cannot use the device any more
        self.features = self._usable(features_of(device))
        # a work item of a group keeps up to 32 bytes in local memory
        self.group = _power_of_two(min(256, self.features.group, self.features.local // 32))
        self.widest = self.group
        self.shared_bytes = self.features.local
        self.capabilities = self.features.capabilities
        self.dialect = dialect_of(self.features)
        self.options = build_options(device, self.features)
        self.copies_in = self.copies_out = 0
        self._noted = False  # whether the queue notes when its work began and ended
        self._sending: list[tuple[cl.Event, Array]] = []
        self._lock = new_lock()
        limit, largest = _limit(device, self.features), self.features.buffer
        self._pool = Pool(self._take, lambda m: m.release(), limit, self.name, largest)
        _opened.add(self)

    def _usable(self, features: Features) -> Features:
        """Return `features`, without subgroups if kernels do not use them or they fail a test."""
        if features.subgroups and (
            self.serial or not subgroups_work(self.context, build_options(self.cl_device, features))
        ):
            return dataclasses.replace(features, subgroups=0)
        return features

    @property
    def tiles(self) -> Tiles | GroupTiles | None:
        """Tile sizes of matmul: those that `duograph tune` stored, else the default; can be set.

        The default of a CPU depends on its vector registers, which a small kernel tells; it runs
        when the first matmul is planned.
        """
        if not self._tiles:
            stored = stored_tiles(self)
            if stored is None and self.serial and 0 < register_bits(self) < 512:
                stored = SHORT_VECTORS
            self._tiles = (stored,)
        return self._tiles[0]

    @tiles.setter
    def tiles(self, tiles: Tiles | GroupTiles | None) -> None:
        self._tiles = (tiles,)

    # ---- kernels --------------------------------------------------------------------------------

    def build(self, source: str) -> cl.Program:
        """Compile an OpenCL source, or load it compiled from the disk cache; return the program."""
        self.alive()
        return build_program(self, source)

    def launcher(
        self,
        module: cl.Program,
        name: str,
        groups: tuple[int, int, int],
        size: tuple[int, int, int],
        buffers: int,
        scalars: Sequence[Scalar],
    ) -> Callable[..., None]:
        """Return a function of buffer handles that launches an OpenCL kernel and does not wait.

        The function has its own kernel object, which holds the scalars.

        Args:
            module: the compiled program with the kernel.
            name: the kernel's name.
            groups: number of work groups along each axis.
            size: number of work items of a group along each axis.
            buffers: number of buffer arguments, which come first.
            scalars: (dtype, value) of each argument after the buffers.
        """
        try:
            kernel = cl.Kernel(module, name)
        except cl.Error as error:  # some drivers compile a kernel only now
            raise self.failure(name, error) from error
        if kernel.num_args != buffers + len(scalars):
            raise DeviceError(
                f"{name}: the kernel has {kernel.num_args} parameters; wanted "
                f"{buffers + len(scalars)}"
            )
        self._check_group(kernel, name, math.prod(size))
        for k, (dtype, value) in enumerate(scalars):
            kernel.set_arg(buffers + k, np.array(value).astype(dtype.np)[()])
        places = tuple(g * s for g, s in zip(groups, size))
        while len(places) > 1 and places[-1] == 1:
            places = places[:-1]
        local = size[: len(places)]
        lock, set_arg, enqueue = self._lock, kernel.set_arg, cl.enqueue_nd_range_kernel

        def launch(handles: Sequence[Block]) -> None:
            for k, handle in enumerate(handles):
                set_arg(k, handle.memory)
            enqueue(self.queue, kernel, places, local)

        def run(*handles: Block) -> None:
            with lock:  # the arguments of a kernel object are its state
                try:
                    launch(handles)
                except (cl.Error, TypeError) as error:
                    self.again(name, error, lambda: launch(handles))

        return run

    def _check_group(self, kernel: cl.Kernel, name: str, items: int) -> None:
        """Raise GroupTooLargeError if a kernel cannot run with `items` work items in a group."""
        if items == 1:
            return
        ask, info = kernel.get_work_group_info, cl.kernel_work_group_info
        limit = min(ask(info.WORK_GROUP_SIZE, self.cl_device), self.features.kernel_group)
        local = ask(info.LOCAL_MEM_SIZE, self.cl_device)
        if local > self.features.local:
            limit = min(limit, items // 2)
        if items > limit:
            raise GroupTooLargeError(
                f"{name}: {self.name} runs this kernel with at most {limit} work items in a group "
                f"and {self.features.local} bytes of local memory; got {items} and {local}",
                limit,
            )

    def failure(self, what: str, error: Exception) -> DeviceError | DeviceMemoryError:
        """Return the exception for an OpenCL error; the caller raises it.

        `what` is the name of the op or call, for the message. If the error means that the device is
        lost, the method marks the device as unusable and raises DeviceError itself.
        """
        code = getattr(error, "code", None)
        if code in _LOST and not self.gone:
            self.leave(
                f"the device was lost ({first_line(error)}, seen at {what}); what was on it is "
                "gone, and this process "
                "cannot use it again. Start a new one"
            )
        self.alive()
        if code in _NO_MEMORY:
            now = self._pool.stats()
            return DeviceMemoryError(
                f"{what}: {self.name} has no memory left ({first_line(error)}); in use "
                f"{now['in_use']}, cached "
                f"{now['cached']}, limit {now['limit']} bytes. Free tensors, or work on smaller "
                "ones"
            )
        return DeviceError(f"{what}: {self.name}: {first_line(error)}")

    def again(self, what: str, error: Exception, function: Callable[[], T]) -> T:
        """Empty the memory pool and call `function` again after an OpenCL error; return its result.

        Drivers may allocate memory only when a buffer is first used, so that a launch can fail for
        lack of memory. If `error` has another cause, its exception (`failure`) is raised instead.
        `what` is the name of the op or call, for messages.
        """
        failure = self.failure(what, error)
        if not isinstance(failure, DeviceMemoryError):
            raise failure from error
        try:
            self.empty_cache()
            return function()
        except cl.Error as second:
            raise self.failure(what, second) from second

    def alive(self) -> None:
        """Raise DeviceError if the device is lost or the process was forked after opening it.

        A forked child has none of the driver's threads, so a call would block for ever.
        """
        if self.gone:
            raise DeviceError(f"{self.name}: {self.gone}")

    def leave(self, reason: str) -> None:
        """Mark the device as unusable for `reason`, without releasing its driver objects.

        Releasing these objects could block for ever.
        """
        _kept.append((self.queue, self.context, self._sending))
        self._sending, self.gone = [], reason
        # A call that raced past `alive` now raises TypeError, which `launcher` turns into `gone`.
        self.queue = None  # type: ignore[assignment]

    # ---- memory ---------------------------------------------------------------------------------

    def _take(self, nbytes: int) -> cl.Buffer:
        self.alive()
        try:
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes)
        except cl.Error as error:
            if error.code in _NO_MEMORY:
                raise DeviceMemoryError(first_line(error)) from error  # the pool adds the sizes
            raise self.failure("buffer", error) from error

    def allocate(self, nbytes: int, what: str) -> Block:
        """Allocate a buffer from the OpenCL device's pool; return its handle."""
        return self._pool.allocate(nbytes, what)

    def nbytes(self, handle: Block) -> int:
        return handle.size

    def copy_in(self, array: Array) -> Block:
        """Copy a NumPy array to a new OpenCL buffer; return its handle.

        The call does not wait for earlier launches if the array is small.
        """
        self.alive()
        block = self._pool.allocate(array.nbytes, "copy_in")
        if not array.nbytes:
            return block
        self.copies_in += 1
        small = array.nbytes <= SMALL
        source = array.reshape(-1).view(np.uint8)
        if small:
            source = source.copy()

        def send() -> cl.Event:
            return cl.enqueue_copy(self.queue, block.memory, source, is_blocking=not small)

        try:
            event = send()
        except cl.Error as error:
            event = self.again("copy_in", error, send)
        if small:
            self._sending.append((event, source))
            if len(self._sending) > 256:
                self.synchronize()
        return block

    def copy_out(self, handle: Block, shape: Shape, dtype: np.dtype[np.generic]) -> Array:
        """Copy an OpenCL buffer to a new NumPy array, after all earlier kernels have run."""
        self.alive()
        out = np.empty(shape, dtype)
        if out.nbytes:
            self.copies_out += 1
            try:
                target = out.reshape(-1).view(np.uint8)
                cl.enqueue_copy(self.queue, target, handle.memory, is_blocking=True)
            except cl.Error as error:
                raise self.failure("copy_out", error) from error
            self._sending.clear()
        return out

    def synchronize(self) -> None:
        """Wait until the OpenCL queue has finished all launches and copies."""
        self.alive()
        try:
            self.queue.finish()
        except cl.Error as error:
            raise self.failure("synchronize", error) from error
        self._sending.clear()

    def timer(self) -> QueueTimer:
        """Return the clock of the device's queue, which records times from now on."""
        with self._lock:
            if not self._noted:
                self.synchronize()
                noting = cl.command_queue_properties.PROFILING_ENABLE
                self.queue = cl.CommandQueue(self.context, self.cl_device, noting)
                self._noted = True
        return QueueTimer(self)

    def memory_stats(self) -> dict[str, int]:
        """Return statistics of the device's memory pool, and the numbers of copies in and out."""
        return {**self._pool.stats(), "copies_in": self.copies_in, "copies_out": self.copies_out}

    def empty_cache(self) -> None:
        """Wait for the queue, then release the buffers that the memory pool has cached."""
        self.synchronize()
        self._pool.empty()

    def compiler(self) -> str:
        """Return one line with the versions of the OpenCL platform, driver and language."""
        d = self.cl_device
        return (
            f"{d.platform.version.strip()}, driver {d.driver_version}, {d.opencl_c_version.strip()}"
        )


class QueueTimer(DeviceTimer):
    """The clock of an OpenCL device: markers in its queue, which record when they are reached."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def mark(self) -> cl.Event:
        self.device.alive()
        return cl.enqueue_marker(self.device.queue)

    def elapsed(self, begin: cl.Event, end: cl.Event) -> int:
        self.device.alive()
        end.wait()
        return max(0, int(end.profile.end - begin.profile.end))


def _limit(device: cl.Device, features: Features) -> int:
    chosen = os.environ.get(LIMIT_VARIABLE)
    if chosen:
        try:
            return int(chosen)
        except ValueError:
            raise DeviceError(
                f"{LIMIT_VARIABLE}: got {chosen!r}; wanted a number of bytes"
            ) from None
    share = 3 if device.type & cl.device_type.CPU else 4
    return min(device.global_mem_size * share // 4, (1 << features.address) - 1)


def _power_of_two(n: int) -> int:
    return 1 << (n.bit_length() - 1)


# Devices of this process. A forked child has these objects but none of the driver's threads.
_opened: weakref.WeakSet[Device] = weakref.WeakSet()
_kept: list[object] = []


def _forget() -> None:
    for device in list(_opened):
        device.leave(_FORKED)


if platform.system() != "Windows":
    os.register_at_fork(after_in_child=_forget)
