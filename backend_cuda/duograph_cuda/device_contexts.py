"""Context managers of a CUDA device: alone on it, on its main stream, or in its CUDA context.

`CudaDevice` makes one of each, as `alone`, `on_main` and `inside`; whoever calls the driver enters
them. They must leave the device and the other libraries of the process as they were on entry.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["Alone", "Inside", "OnMain"]


class Alone:
    """Context manager in which no other thread can launch kernels or copy on a device.

    Inside it, the thread's work goes to the device's main stream.
    """

    def __init__(self, device: CudaDevice) -> None:
        self.lock = device.lock
        self.gate = device.gate
        self.on_main = device.on_main

    def __enter__(self) -> None:
        self.lock.acquire()
        try:
            self.on_main.__enter__()
        except BaseException:
            self.lock.release()
            raise
        self.gate.hold()

    def __exit__(self, *_: object) -> None:
        self.gate.let_go()
        try:
            self.on_main.__exit__()
        finally:
            self.lock.release()


class OnMain:
    """Context manager in which the calling thread's work goes to the device's main stream."""

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        # the streams that were left, by thread, if the device had several on entry
        self.local = threading.local()

    def __enter__(self) -> None:
        queues = self.device.queues
        if queues is not None:
            queues.enter_main()
        left = self.local.__dict__.setdefault("left", [])
        left.append(queues)

    def __exit__(self, *_: object) -> None:
        queues = self.local.left.pop()
        if queues is not None:
            queues.leave_main()


class Inside:
    """Context manager in which a CUDA context is current and no other thread captures launches.

    The context is that of the device. To capture means to record launches as a CUDA graph. If
    another library's context was current before, it is current again afterwards.
    """

    def __init__(self, device: CudaDevice) -> None:
        self.lock = device.lock
        self.gate = device.gate
        self.before: list[int] = []

    def __enter__(self) -> None:
        self.lock.acquire()
        try:
            self.before.append(self.gate.enter())
        except BaseException:
            self.lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self.gate.leave(self.before.pop())
        self.lock.release()
