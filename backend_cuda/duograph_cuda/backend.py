"""The CUDA backend, which runs tensors on the GPUs that the NVIDIA driver reports.

Most kernels are those of `duograph.backend.grid`; `rows`, `channels`, `sorting`, `lines` and
`attention` replace some of them. `cublaslt` computes matmuls, and `cudnn` convolutions and
attention, if these libraries are installed. The core calls the methods of `Cuda`. Results must not
depend on whether a library is installed, except for rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from duograph.backend.costs import Costs, FusionLimits, LayoutCosts
from duograph.backend.grid import GridBackend, GridDevice, Launch, Plan
from duograph.backend.grid.index_errors import IndexRecord
from duograph.backend.locks import new_lock
from duograph.backend.prepared import LinkedProgram
from duograph.backend.program import Program
from duograph.backend.protocol import Call, DeviceInfo
from duograph.dtype import ALL, float32
from duograph.errors import DeviceError
from duograph.ir.graph import Graph
from duograph.op import Op
from duograph.types import Shape, TensorType

from . import (
    attention,
    channels,
    channels_last,
    cublaslt,
    cudnn,
    exchange,
    lines,
    matmul_epilogues,
    padded_operands,
    pitch,
    rows,
    sorting,
    tuning,
)
from .captured_graph import Captured, off, refusal
from .compiler import Compiler, Nvrtc
from .cudnn_operations import CHANNELS_LAST, CONVOLUTIONS, OPERATIONS
from .device import CudaDevice, Memory
from .driver import Driver, problem
from .products import uses_tf32
from .queues import Queues, StreamTimer
from .staging import LARGEST

if TYPE_CHECKING:
    import numpy.typing as npt
    from duograph.backend.dlpack import Exporter
    from duograph.backend.protocol import Array
    from duograph.ir.graph import Attributes

__all__ = ["Cuda"]

# Name of our own kernels among the ways to compute a convolution.
OWN = "own kernels"

# A convolution with channels first costs about the transposes of its operand and its result, which
# cuDNN does itself; two of them in a row are worth transposes at both ends.
LAYOUT = LayoutCosts(traffic_per_transpose=2, changing_weights=True)
COSTS = Costs(fusion=FusionLimits(max_recomputed=4), layout=LAYOUT, compare_labels=True)


class Cuda(GridBackend):
    """The CUDA backend, for all NVIDIA GPUs with compute capability 7.5 or later."""

    name = "GPU"
    dtypes = tuple([d for d in ALL if not d.is_complex])

    kernels = {
        **rows.KERNELS,
        **channels.KERNELS,
        **sorting.KERNELS,
        **lines.KERNELS,
        **attention.KERNELS,
        **pitch.KERNELS,
    }
    # a fused region of rows reads them once from memory, and casts and additions join it
    decomposed = GridBackend.decomposed.union(rows.KERNELS, ("batch_norm_train", "batch_norm_grad"))

    # DLPack's types of the memory that the devices use; the first is that of their own
    dlpack_kinds: tuple[int, ...] = (exchange.KIND, exchange.MANAGED)

    # opens cuBLASLt, or returns the reason why there is none
    find_library: Callable[[], cublaslt.Library | str] = staticmethod(cublaslt.find)
    # the same for cuDNN, given the device's stream
    find_cudnn: Callable[[int], cudnn.Library | str] = staticmethod(cudnn.find)

    def __init__(self) -> None:
        super().__init__()
        self._lock = new_lock()
        self._open: dict[int, CudaDevice] = {}
        self._driver: Driver | None = None
        self._queues: dict[int, Queues] = {}
        self.passes = (self.use_cublaslt,)

    def available(self) -> str | None:
        return problem()

    def driver(self) -> Driver:
        """Return the CUDA driver API (a `Driver`), imported and initialised at the first call."""
        if self._driver is None:
            from cuda.bindings import driver as module

            self._driver = Driver(module)
            self._driver.call("cuInit", 0)
        return self._driver

    def costs(self, device_id: int) -> Costs:
        """Return the costs and limits by which graph passes decide whether a rewrite pays."""
        return COSTS

    def new_compiler(self, capability: tuple[int, int]) -> Compiler:
        """Return a new CUDA compiler (NVRTC) for a compute capability, such as (9, 0)."""
        return Nvrtc(capability)

    def devices(self) -> list[DeviceInfo]:
        return [self._describe(k) for k in range(self.driver().call("cuDeviceGetCount"))]

    def _describe(self, index: int) -> DeviceInfo:
        driver = self.driver()
        number = driver.call("cuDeviceGet", index)
        name = driver.call("cuDeviceGetName", 256, number).split(b"\0", 1)[0].decode()
        major, minor, units = (
            driver.attribute(number, f"{what}")
            for what in (
                "COMPUTE_CAPABILITY_MAJOR",
                "COMPUTE_CAPABILITY_MINOR",
                "MULTIPROCESSOR_COUNT",
            )
        )
        version = int(driver.call("cuDriverGetVersion"))
        text = (
            f"compute capability {major}.{minor}, {units} multiprocessors, "
            f"driver for CUDA {version // 1000}.{version % 1000 // 10}"
        )
        return DeviceInfo(index, name, text, int(driver.call("cuDeviceTotalMem", number)))

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Attributes,
        device_id: int,
    ) -> Call | None:
        own = functools.partial(self._by_own_kernels, device_id, op, types, attributes)
        if op.name not in OPERATIONS and op.name not in CHANNELS_LAST:
            return own()
        device = self.device(device_id)
        library = device.cudnn()
        if isinstance(library, str):
            return own()
        results = op.infer_types(types, attributes)
        sizes = tuple([r.nbytes for r in results])
        if op.name in CHANNELS_LAST:
            return channels_last.prepare(
                op,
                types,
                dict(attributes),
                functools.partial(self._fastest, device, library, op.name, types, sizes),
                functools.partial(self._by_own_kernels, device_id),
            )
        operation = OPERATIONS[op.name](types, results, **attributes)
        if operation is None:
            return own()
        # of the two libraries, cuBLASLt is the faster without tensor cores
        exact = op.name in CONVOLUTIONS and types[0].dtype is float32 and not uses_tf32()
        tunes = op.name in CONVOLUTIONS and tuning.wanted()
        multiplies = (tunes or exact) and self._multiplies(device, op, types, results, attributes)
        if tunes:
            call = self._fastest(device, library, op.name, types, sizes, operation, own, multiplies)
        elif multiplies:
            call = None
        else:
            call = library.call(device, op.name, operation, sizes, own)
        return call or own()

    def _by_own_kernels(
        self, device_id: int, op: Op, types: tuple[TensorType, ...], attributes: Attributes
    ) -> Call | None:
        """Return the prepared call of our own kernels for an op, or None if there are none."""
        return super().prepare(op, types, attributes, device_id)

    def _fastest(
        self,
        device: CudaDevice,
        library: cudnn.Library,
        name: str,
        types: Sequence[TensorType],
        sizes: tuple[int, ...],
        operation: cudnn.Operation,
        own: Callable[[], Call | None],
        tries_own: bool = False,
    ) -> Call | None:
        """Return the prepared call of a convolution by cuDNN, or None if there is none.

        It is cuDNN's first choice or, if the user has switched measurements on, the fastest of its
        algorithms and, with `tries_own`, of the call that `own` prepares. `types` are those of the
        operands; the other arguments are those of `cudnn.Library.call`.
        """
        by_cudnn = functools.partial(library.call, device, name, operation, sizes, own)
        if not tuning.wanted():
            return by_cudnn()

        def candidates() -> Iterator[tuple[str, Call]]:
            yield from library.plans(device, name, operation, sizes, own)
            call = own() if tries_own else None
            if call is not None:
                yield OWN, call

        return tuning.fastest(
            device,
            f"cuDNN {library.version} {operation}",
            candidates(),
            lambda plan: own() if plan == OWN else by_cudnn(plan),
            [t.nbytes for t in types],
        )

    def _multiplies(
        self,
        device: CudaDevice,
        op: Op,
        types: tuple[TensorType, ...],
        results: tuple[TensorType, ...],
        attributes: Attributes,
    ) -> bool:
        """Return whether our own (not cuDNN's) plan of a convolution computes a matmul by cuBLASLt.

        The result is also False if our plan takes more scratch memory than cuDNN is allowed to
        take.
        """
        plan = self.plan(device, op, types, results, attributes)
        if not isinstance(plan, Plan) or sum(plan.scratch) > cudnn.WORKSPACE:
            return False
        return any(isinstance(launch, cublaslt.Called) for launch in plan.launches)

    def use_cublaslt(self, graph: Graph) -> Graph:
        """Return a graph whose matmuls suit cuBLASLt better: with epilogues and aligned rows.

        An epilogue is elementwise code on the result. Matmuls that gain nothing are unchanged. The
        method is a graph pass; it returns the graph unchanged if the library is not available.
        """
        device = next(iter(self._open.values()), None) or self.device(0)
        library = device.library()
        if isinstance(library, str):
            return graph
        graph = matmul_epilogues.form_epilogues(graph, library)
        return padded_operands.pad_operands(graph)

    def compile(self, regions: Sequence[Graph], device_id: int) -> Sequence[Call | str]:
        device = self.device(device_id)
        found = [matmul_epilogues.prepared(self, device, body) for body in regions]
        others = [body for body, call in zip(regions, found) if call is None]
        compiled = iter(super().compile(others, device_id))
        return [next(compiled) if call is None else call for call in found]

    def region_source(self, region: Graph, device_id: int) -> str | None:
        if any(node.op.name == "matmul" for node in region.nodes):
            return None  # a call of cuBLASLt
        return super().region_source(region, device_id)

    def launcher(self, device: GridDevice, name: str, launch: Launch) -> Callable[..., None]:
        build = functools.partial(super().launcher, device, name)
        if isinstance(launch, cublaslt.Called):
            assert isinstance(device, CudaDevice)
            return launch.chosen.launcher(device, name, build, launch)
        return build(launch)

    def record(self, device: GridDevice) -> IndexRecord:
        assert isinstance(device, CudaDevice)
        if device.record is None:
            found = super().record(device)
            clear = found.clear

            def cleared(handle: Memory) -> None:
                clear(handle)
                device.publish()

            found.clear = cleared
            device.publish()
        assert device.record is not None
        return device.record

    def links(self, device_id: int) -> str | None:
        return off()

    def link(self, program: Program, device_id: int) -> LinkedProgram | str:
        problem = off() or refusal(program)
        if problem:
            return problem
        captured = Captured(program, self.device(device_id), "captured graph")
        return LinkedProgram(captured, captured.donations)

    def exclusive(self, handle: Memory, device_id: int) -> bool:
        """Return whether only holders of a buffer handle can change the memory behind it.

        That is so for a block of the pool, but not for memory of an imported array, or of a buffer
        to which a captured program writes.
        """
        return handle.exclusive

    # ---- copies, DLPack -------------------------------------------------------------------------

    def copy_between(
        self, handle: Memory, shape: Shape, dtype: npt.DTypeLike, source_id: int, target_id: int
    ) -> Memory:
        return exchange.copied(self.device(source_id), handle, self.device(target_id))

    def copy_out_async(
        self, handle: Memory, shape: Shape, dtype: np.dtype[np.generic], device_id: int
    ) -> Callable[[], Array] | None:
        if handle.nbytes > LARGEST:
            return None
        return exchange.Download(self.device(device_id), handle, shape, dtype).wait

    def dlpack_device(self, device_id: int) -> tuple[int, int]:
        return self.dlpack_kinds[0], device_id

    def to_dlpack(
        self,
        handle: Memory,
        shape: Shape,
        dtype: np.dtype[np.generic],
        device_id: int,
        stream: int | None,
        max_version: tuple[int, int] | None,
    ) -> object:
        device, kind = self.device(device_id), self.dlpack_kinds[0]
        return exchange.capsule(device, handle, shape, dtype, stream, max_version, kind)

    def from_dlpack(
        self, source: Exporter, device_id: int, copy: bool
    ) -> tuple[Memory, Shape, np.dtype[np.generic]] | None:
        return exchange.imported(self, source, self.device(device_id), copy, self.dlpack_kinds)

    def streams(self, device_id: int) -> Queues:
        device = self.device(device_id)
        with self._lock:
            found = self._queues.get(device_id)
            if found is None:  # only one: a second one, collected later, would reset the gate
                found = self._queues[device_id] = Queues(device)
            return found

    def timer(self, device_id: int) -> StreamTimer:
        return StreamTimer(self.streams(device_id))

    def device(self, device_id: int) -> CudaDevice:
        found = self._open.get(device_id)
        if found is None:
            with self._lock:
                found = self._open.get(device_id)
                if found is None:
                    count: int = self.driver().call("cuDeviceGetCount")
                    if not 0 <= device_id < count:
                        raise DeviceError(
                            f"{self.name}: got device_id {device_id}; there are {count} devices"
                        )
                    found = CudaDevice(
                        self.driver(),
                        device_id,
                        self.new_compiler,
                        self.find_library,
                        self.find_cudnn,
                    )
                    self._open[device_id] = found
        return found
