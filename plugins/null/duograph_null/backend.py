"""The null backend, which accepts every op and computes nothing.

Benchmarks use it to measure the overhead of the core. A buffer handle is an object that knows only
its number of bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from duograph.backend.protocol import Backend, DeviceInfo
from duograph.op import Op
from duograph.types import TensorType

_stats = {"in_use": 0, "peak": 0, "handles": 0}


class Handle:
    """A buffer handle without memory; while it exists, statistics count its `nbytes` as in use."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        _stats["handles"] += 1
        _stats["in_use"] += nbytes
        if _stats["in_use"] > _stats["peak"]:
            _stats["peak"] = _stats["in_use"]

    def __del__(self) -> None:
        _stats["handles"] -= 1
        _stats["in_use"] -= self.nbytes


class Null(Backend):
    """A backend whose kernels compute nothing (results read as zeros), to measure core overhead.

    It has a kernel for every op except composites, which run as the ops of their bodies.
    """

    name = "Null"

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "nothing", "computes nothing; every result is zeros")]

    def copy_in(self, array: np.ndarray[Any, Any], device_id: int) -> Any:
        return Handle(array.nbytes)

    def copy_out(
        self, handle: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device_id: int
    ) -> np.ndarray[Any, Any]:
        return np.zeros(shape, dtype)

    def nbytes(self, handle: Any, device_id: int) -> int:
        return int(handle.nbytes)

    def calls_of(self) -> Counter[str]:
        """Return the counter of kernel launches by op name, which the caller may clear."""
        return self._calls

    def memory_stats(self, device_id: int) -> dict[str, int]:
        return dict(_stats)

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Any],
        device_id: int,
    ) -> Callable[..., Any] | None:
        if (
            op.is_composite
        ):  # decomposed, so that the launches are those of a backend without these kernels
            return None
        if "kernel" in attributes:  # an operator of a user's, whose results are compared
            return None
        results = op.result_types(types, attributes)
        calls, name = self._calls, op.name
        if isinstance(results, TensorType):
            nbytes = results.nbytes

            def one(*handles: Any) -> Handle:
                calls[name] += 1
                return Handle(nbytes)

            return one
        sizes = [t.nbytes for t in results]

        def several(*handles: Any) -> tuple[Handle, ...]:
            calls[name] += 1
            return tuple([Handle(n) for n in sizes])

        return several
