"""What a backend is. Tier 1 is all that both modes need; a backend is right with it alone.

A *handle* is whatever the backend likes; the core keeps it, passes it back and never looks inside.
Device memory lives as long as its handle: a backend frees it when the last reference goes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..dtype import ALL, DType
from .costs import DEFAULT_COSTS, Costs
from .prepared import Handle, HandleFunction, LinkedProgram, PreparedCall

if TYPE_CHECKING:
    from ..ir.graph import Graph
    from ..op import Op
    from ..types import TensorType
    from .program import Program

__all__ = ["SEAM_VERSION", "Backend", "BackendSpec", "DeviceInfo", "Call", "Handle"]

# (major, minor): a plugin built for another major version is refused, naming both.
SEAM_VERSION = (1, 0)

# A prepared call of the core's own class, or a plain function that has none of its facts.
Call: TypeAlias = PreparedCall | HandleFunction


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """One device, as `duograph devices` shows it. `memory_bytes` is 0 when unknown."""

    index: int
    name: str
    description: str = ""
    memory_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class BackendSpec:
    """What a plugin's `duograph_backend` hook returns: a name and how to make the backend.

    Attributes:
        name: the device_target, such as ``"CPU"``.
        factory: called once, at first use; imports and set-up belong in it, not in the plugin
        module.
        priority: with no device_target named, the available backend of highest priority is taken;
            None: only when named.
        seam_version: the `SEAM_VERSION` that the plugin was written for.
        aliases: other spellings of the device_target.
    """

    name: str
    factory: Callable[[], Backend]
    priority: int | None = 0
    seam_version: tuple[int, int] = SEAM_VERSION
    aliases: tuple[str, ...] = ()


class Backend:
    """Base class of backends: tier 1.

    A subclass sets `name` and must write `devices`, `copy_in`, `copy_out` and `prepare`.
    """

    name: str = ""
    # dtypes that tensors may have here
    dtypes: tuple[DType, ...] = ALL
    # what an op without kernel and decomposition does: "off" raises, "warn" runs the reference on
    # the host and warns once per op, "on" runs it and only counts
    host_fallback: str = "off"
    # tier 2: ops that `compile` takes as the first step of a region, which goes on from their
    # result element by element
    epilogues: frozenset[str] = frozenset()

    # ops with a kernel for single calls that compiled functions take apart all the same, to fuse
    # what they are made of
    taken_apart: frozenset[str] = frozenset()

    def available(self) -> str | None:
        """None when this backend can run here, else the reason why not. Must be cheap."""
        return None

    def devices(self) -> list[DeviceInfo]:
        """The devices, at least one when `available()` is None."""
        raise NotImplementedError(f"{type(self).__name__}: has no devices()")

    def copy_in(self, array: np.ndarray[Any, Any], device_id: int) -> Handle:
        """A handle to a device copy of a C-contiguous array."""
        raise NotImplementedError(f"{type(self).__name__}: has no copy_in()")

    def copy_out(
        self, handle: Handle, shape: tuple[int, ...], dtype: np.dtype[Any], device_id: int
    ) -> np.ndarray[Any, Any]:
        """The values as a C-contiguous array; it may share memory with the handle and then keeps it
        alive.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no copy_out()")

    def from_host(self, array: np.ndarray[Any, Any], device_id: int) -> Handle | None:
        """A handle that shares memory with the array and keeps it alive, or None when that cannot
        be.
        """
        return None

    def exclusive(self, handle: Handle, device_id: int) -> bool:
        """Whether only who holds the handle can change its memory; arrays that `copy_out` gave of
        it hold it.

        Compiled functions compute once what follows from such handles alone
        (`runtime.cached_values`). False where that is not known.
        """
        return False

    def synchronize(self, device_id: int) -> None:
        """Return when everything launched so far has finished."""

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Any],
        device_id: int,
    ) -> Call | None:
        """A call from operand handles to result handles, or None when there is no kernel for this.

        The call allocates its outputs; it returns one handle, or a tuple when the op has several
        results. `op.name` names the op, `op.infer_types(types, attributes)` gives its result types.
        """
        raise NotImplementedError(f"{type(self).__name__}: has no prepare()")

    # ---- tier 2: optional -----------------------------------------------------------------------

    def compiles(self, device_id: int) -> str | None:
        """None when `compile` makes kernels here, else why it does not. Must be cheap."""
        return "the backend has no compiler of its own"

    def compile(self, regions: Sequence[Graph], device_id: int) -> Sequence[Call | str]:
        """For each fused region (`passes.fusion`) a call from operand handles to result handles.

        A region is a graph of elementwise ops, reductions over trailing axes and reshapes. It may
        read operands through indices (gathers of operands), and end in reductions over other axes
        or in a scatter; the modules of `backend.codegen` plan and print one. Where the backend
        names ops in `epilogues`, a region may have one of these too (`ir.epilogue.epilogue_of`
        takes it apart). A text instead of a call says why there is none: then the nodes of the
        region run one by one. Called once for all regions of a program, to build them together.
        """
        return [self.compiles(device_id) or ""] * len(regions)

    def costs(self, device_id: int) -> Costs:
        """Costs and limits that decide which rewrites of graph passes pay on a device."""
        return DEFAULT_COSTS

    def compiler(self, device_id: int) -> str | None:
        """What compiles here, with version and flags, or why nothing can: a line for `duograph
        devices`.
        """
        return None

    def tune(self, device_id: int) -> Iterator[str]:
        """Measure what is best chosen by measuring, and keep it for this and later processes:
        `duograph tune`.

        Yields a line for each thing that was measured, and for what was chosen; nothing where there
        is no choice.
        """
        return iter(())

    def links(self, device_id: int) -> str | None:
        """None when `link` makes calls of whole programs here, else why it does not. Must be cheap."""
        return "the backend links no programs"

    def link(self, program: Program, device_id: int) -> LinkedProgram | HandleFunction | str:
        """One call for a whole lowered graph, crossed into once, or why there is none: then its
        steps run one by one.

        The call is `run(handles, donated=())`, see `LinkedProgram`; a plain function of these
        arguments will do. Its results outlive it; all other values live in an arena that the core
        has planned.
        """
        return self.links(device_id) or ""

    # ---- memory ---------------------------------------------------------------------------------

    def memory_stats(self, device_id: int) -> dict[str, int]:
        """Bytes: `in_use`, `cached`, `peak`, `limit`, and counts, as far as the backend knows them."""
        return {}

    def empty_cache(self, device_id: int) -> None:
        """Give cached free memory back to the system."""
