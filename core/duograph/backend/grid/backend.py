"""Backend base class for devices with a grid of work items (GPUs): everything but the driver.

The core calls a `GridBackend` like any backend. For an op, the backend obtains a launch plan from
the kernel table, builds the kernel sources and returns a function that launches the kernels. The
OpenCL and CUDA backends subclass it.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dtype import DType, int64
from ...errors import UnsupportedOpError
from ...op import Op
from ...types import TensorType
from ..protocol import Backend, Call, Handle
from . import (  # noqa: F401  (each module enters its kernels into the table)
    along_axis,
    convolution,
    custom,
    indexing,
    matmul,
    movement,
    normalisation,
    pooling,
    random,
    reductions,
)
from .custom import refuse_source
from .device import GridDevice, Launch, Plan, fitting
from .elementwise import elementwise
from .fused_regions import compile_regions, source_of
from .index_errors import RECORD, SIZE, IndexRecord
from .movement import fill_launch
from .table import KERNELS

if TYPE_CHECKING:
    from ...host_arrays import Array
    from ...ir.graph import Graph

__all__ = ["GridBackend"]

# Capabilities that a source may need: a word in it, the capability, its name in messages.
_NEEDS = (("f64", "fp64", "64-bit floating point"),)


class GridBackend(Backend):
    """Backend base class that runs grid kernels and fused regions on all devices of a driver.

    A subclass sets `name` and implements `devices` and `device`. Its table `kernels`, a dict from
    an op's name to a builder, takes precedence over the kernel table of this package.
    """

    kernels: Mapping[str, Callable[..., Plan | Call | None]] = {}

    def __init__(self) -> None:
        self._modules: weakref.WeakKeyDictionary[GridDevice, dict[str, object]] = (
            weakref.WeakKeyDictionary()
        )

    def device(self, device_id: int) -> GridDevice:
        """Return the device with a given index, opened at first use."""
        raise NotImplementedError(f"{type(self).__name__}: has no device()")

    def copy_in(self, array: Array, device_id: int) -> Handle:
        return self.device(device_id).copy_in(array)

    def copy_out(
        self, handle: Handle, shape: tuple[int, ...], dtype: np.dtype[np.generic], device_id: int
    ) -> Array:
        device = self.device(device_id)
        found = device.copy_out(handle, shape, dtype)
        if device.record is not None and device.record.unread:
            device.record.look()
        return found

    def nbytes(self, handle: Handle, device_id: int) -> int | None:
        return self.device(device_id).nbytes(handle)

    def synchronize(self, device_id: int) -> None:
        device = self.device(device_id)
        device.synchronize()
        if device.record is not None and device.record.unread:
            device.record.look()

    def memory_stats(self, device_id: int) -> dict[str, int]:
        return self.device(device_id).memory_stats()

    def empty_cache(self, device_id: int) -> None:
        self.device(device_id).empty_cache()

    def compiler(self, device_id: int) -> str | None:
        return self.device(device_id).compiler()

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, object],
        device_id: int,
    ) -> Call | None:
        device = self.device(device_id)
        results = op.infer_types(types, attributes)
        if any(t is not None and t.dtype not in self.dtypes for t in (*types, *results)):
            return None

        def prepared(planned: GridDevice) -> Call | None:
            plan = self.plan(planned, op, types, results, attributes)
            if plan is None or callable(plan):
                return plan
            return self.call(device, op.name, plan, len(types), results)

        try:
            return fitting(device, prepared)
        except Exception as error:
            refuse_source(device, attributes, error)
            raise

    def plan(
        self,
        device: GridDevice,
        op: Op,
        types: tuple[TensorType, ...],
        results: tuple[TensorType, ...],
        attributes: Mapping[str, object],
    ) -> Plan | Call | None:
        """Return the launch plan (or a prepared call) of an op for given types.

        Returns None if no kernel supports them; the op is then decomposed.
        """
        for table in (self.kernels, KERNELS):
            builder = table.get(op.name)
            if builder is not None:
                found: Plan | Call | None = builder(device, types, results, **attributes)
                if found is not None:
                    return found
        if op.scalar_rule is not None and not op.variadic and None not in types:
            return elementwise(device, op, types, results[0], attributes)
        return None

    def call(
        self,
        device: GridDevice,
        name: str,
        plan: Plan,
        n_operands: int,
        results: tuple[Any, ...],
        single: bool | None = None,
    ) -> Call:
        """Return the prepared call of a launch plan, which allocates buffers and launches kernels.

        `name` is the op's name, for messages; `results` are the types of the results. `single` says
        whether the call returns one buffer handle rather than a tuple; by default it does if there
        is one result.
        """
        steps = []
        n_results = len(results)
        single = n_results == 1 if single is None else single
        for launch in plan.launches:
            if 0 not in launch.groups:
                steps.append((self.launcher(device, name, launch), launch.buffers))
        allocate = device.allocate
        sizes = [r.nbytes for r in results] + list(plan.scratch)
        in_order = tuple(range(n_operands + 1))
        if single and len(steps) == 1 and len(sizes) == 1 and steps[0][1] == in_order:
            return device.computing(steps[0][0], sizes[0], name)

        # RECORD is -1, so the record comes as the last handle
        watched = any(RECORD in launch.buffers for launch in plan.launches)
        last = (self.record(device).handle,) if watched else ()

        def general(*operands: Handle) -> Handle | tuple[Handle, ...]:
            made = [allocate(nbytes, name) for nbytes in sizes]
            handles = [*operands, *made, *last]
            for run, places in steps:
                run(*[handles[p] for p in places])
            return made[0] if single else tuple(made[:n_results])

        return general

    def compiles(self, device_id: int) -> str | None:
        return None

    def compile(self, regions: Sequence[Graph], device_id: int) -> Sequence[Call | str]:
        device = self.device(device_id)
        return fitting(device, lambda planned: compile_regions(self, device, planned, regions))

    def region_source(self, region: Graph, device_id: int) -> str | None:
        """Return the source of a fused region's kernel, without the prelude of definitions.

        Returns None if no source can be generated for the region.
        """
        return fitting(self.device(device_id), lambda planned: source_of(self, planned, region))

    def launcher(self, device: GridDevice, name: str, launch: Launch) -> Callable[..., None]:
        """Build the kernel of a launch; return a function of buffer handles that launches it.

        `name` is the op's name, for error messages. If the kernel checks indices, the host reads
        after a launch whether one was out of range (`index_errors`).
        """
        module = self.module(device, name, launch.source)
        run = device.launcher(
            module, launch.name, launch.groups, launch.size, len(launch.buffers), launch.scalars
        )
        return self.record(device).watching(run) if RECORD in launch.buffers else run

    def record(self, device: GridDevice) -> IndexRecord:
        """Return the device's buffer for reports of out-of-range indices, created at first use.

        Kernels write to it; the host reads it later (`index_errors`).
        """
        if device.record is None:
            words = TensorType.of((SIZE,), int64)
            handle = device.allocate(words.nbytes, "record of indices")

            def clearing(planned: GridDevice) -> Callable[..., None]:
                fill = fill_launch(planned, words, 0, 0)
                return self.launcher(device, "record of indices", fill)

            device.record = IndexRecord(handle, device.copy_out, fitting(device, clearing))
        return device.record

    def module(self, device: GridDevice, name: str, text: str) -> object:
        """Return the compiled module of kernel source `text`, built for the device at first use.

        `name` is the op's name, for error messages.
        """
        known = self._modules.setdefault(device, {})
        found = known.get(text)
        if found is None:
            source = device.dialect.prelude_for(text) + text
            self.check(device, name, source.removeprefix(device.dialect.own_prelude()))
            found = known[text] = device.build(source)
        return found

    def check(self, device: GridDevice, name: str, source: str) -> None:
        """Check that the device has the capabilities which a kernel's source needs.

        Raises:
            UnsupportedOpError: a capability is missing; the message names it and the op `name`.
        """
        for word, capability, what in _NEEDS:
            if capability not in device.capabilities and re.search(rf"\b{word}\b", source):
                raise UnsupportedOpError(
                    f"{name}: its kernel needs {what} ({capability}), which this device of "
                    f"the {self.name} "
                    "backend does not have"
                )

    def usable_dtypes(self, device: GridDevice, dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
        """Return the given dtypes without those that the device cannot compute with."""
        if "fp64" in device.capabilities:
            return dtypes
        return tuple([d for d in dtypes if d.name not in ("float64", "complex128")])
