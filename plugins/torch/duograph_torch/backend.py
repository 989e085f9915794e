"""A backend on PyTorch, whose memory is CPU tensors and whose kernels are PyTorch functions.

It is an example of the deepest of the four levels at which a backend can connect,
`Backend.compile_graph`: torch.compile receives the whole typed graph of a function, before any op,
such as softmax, is decomposed. Kernels and graphs use the same table of translations
(`translations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from duograph.backend.dlpack import HOST, device_of
from duograph.backend.prepared import PreparedCall
from duograph.backend.protocol import Backend, DeviceInfo
from duograph.backend.views import STRIDED, View
from duograph.dtype import DType, bfloat16, uint32
from duograph.errors import DeviceMemoryError
from duograph.ir.graph import Graph
from duograph.op import Op
from duograph.types import TensorType

from .translations import DTYPES, TORCH_DTYPES, WrongIndex, translated
from .whole_graphs import compiled, compiler, refusal

__all__ = ["Torch"]

# The dtypes of tensors that share the memory of PyTorch's; uint32 is held as another one.
_DLPACK_DTYPES: dict[torch.dtype, DType] = {
    held: dtype for dtype, held in TORCH_DTYPES.items() if dtype is not uint32
}


class Torch(Backend):
    """A backend whose buffer handles are CPU tensors of PyTorch.

    A handle has the PyTorch dtype that `TORCH_DTYPES` assigns to the tensor's dtype, and any shape
    with the right number of elements.
    """

    name = "Torch"
    dtypes = DTYPES

    def devices(self) -> list[DeviceInfo]:
        count = torch.get_num_threads()
        threads = "1 thread" if count == 1 else f"{count} threads"
        return [DeviceInfo(0, "PyTorch", f"PyTorch {torch.__version__}, {threads}")]

    def compiler(self, device_id: int) -> str | None:
        return f"torch.compile of PyTorch {torch.__version__}, backend {compiler()}"

    def copy_in(self, array: np.ndarray[Any, Any], device_id: int) -> torch.Tensor:
        try:
            if array.dtype == np.uint32:  # held as int64, see `translations`
                return torch.from_numpy(array.astype(np.int64))
            if array.dtype == bfloat16.np:
                return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
            return torch.from_numpy(array.copy())
        except MemoryError:
            raise DeviceMemoryError(f"Torch: got a request for {array.nbytes} bytes") from None

    def copy_out(
        self, handle: torch.Tensor, shape: tuple[int, ...], dtype: np.dtype[Any], device_id: int
    ) -> np.ndarray[Any, Any]:
        values = handle.reshape(shape).clone(memory_format=torch.contiguous_format)
        if values.dtype is torch.bfloat16:
            return values.view(torch.int16).numpy().view(bfloat16.np)
        array = values.numpy()
        return array.astype(dtype) if dtype == np.uint32 else array

    def nbytes(self, handle: torch.Tensor, device_id: int) -> int:
        return handle.nbytes

    def dlpack_device(self, device_id: int) -> tuple[int, int]:
        return HOST

    def to_dlpack(
        self,
        handle: torch.Tensor,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        device_id: int,
        stream: int | None,
        max_version: tuple[int, int] | None,
    ) -> Any:
        if dtype == np.uint32:
            raise BufferError("Torch: uint32 is held as int64")
        shared = handle.reshape(shape).contiguous().resolve_conj().resolve_neg()
        return torch.utils.dlpack.to_dlpack(shared)

    def from_dlpack(
        self, source: Any, device_id: int, copy: bool
    ) -> tuple[torch.Tensor, tuple[int, ...], np.dtype[Any]] | None:
        if device_of(source) != HOST:
            return None
        found = torch.from_dlpack(source)
        if found.dtype == torch.uint32:
            return found.to(torch.int64), tuple(found.shape), np.dtype(np.uint32)
        dtype = _DLPACK_DTYPES.get(found.dtype)
        if dtype is None:
            raise BufferError(f"Torch: got memory of {found.dtype}, which this device lacks")
        own = found.clone(memory_format=torch.contiguous_format) if copy else found.contiguous()
        return own, tuple(found.shape), dtype.np

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, Any],
        device_id: int,
    ) -> PreparedCall | None:
        call = translated(op, types, attributes)
        if call is None:
            return None
        nbytes = sum(t.nbytes for t in call.results)

        def reading(views: Mapping[int, View]) -> Callable[..., Any]:
            """Return the kernel call that reads the operands in `views` through tensor views."""
            seen = [None if t is None else _reader(t, views.get(i)) for i, t in enumerate(types)]

            def run(*handles: torch.Tensor) -> Any:
                given = [None if r is None else r(h) for h, r in zip(handles, seen, strict=True)]
                try:
                    made = tuple([_own(v, given) for v in call(given, _raise)])
                except RuntimeError as error:
                    raise _named(error, nbytes) from error
                return made[0] if call.single else made

            return run

        def with_views(views: Mapping[int, View]) -> Callable[..., Any] | None:
            # PyTorch's tensors have no negative strides
            flipped = any(stride < 0 for view in views.values() for stride in view.strides)
            return None if flipped else reading(views)

        layouts = {i: (STRIDED,) for i, t in enumerate(types) if t is not None}
        return PreparedCall(reading({}), layouts=layouts, with_views=with_views)

    def compile_graph(self, graph: Graph, device_id: int) -> Callable[..., Any] | str:
        reason = refusal(graph)
        if reason is not None:
            return reason
        run = compiled(graph)
        shapes = [t.shape for t in graph.types[: graph.n_params] if isinstance(t, TensorType)]

        def own(handles: tuple[torch.Tensor, ...], donated: Any = ()) -> Any:
            given = [h.reshape(s) for h, s in zip(handles, shapes, strict=True)]
            made: list[torch.Tensor] = []
            for value in run(given):
                made.append(_own(value, [*given, *made]))
            return made[0] if graph.single else tuple(made)

        return own


def _reader(type_: TensorType, view: View | None) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function from a buffer handle to a kernel's operand: a tensor, or a view of one."""
    if view is None:
        shape = type_.shape
        return lambda handle: handle.reshape(shape)
    shape, strides, offset, _ = view

    def seen(handle: torch.Tensor) -> torch.Tensor:
        flat = handle.reshape(-1).resolve_conj().resolve_neg()  # a copy if it is not dense
        return flat.as_strided(shape, strides, flat.storage_offset() + offset)

    return seen


def _raise(wrong: WrongIndex, indices: torch.Tensor, bad: torch.Tensor) -> None:
    """Raise `wrong(index)` for the first index that `bad` marks as out of range, if any."""
    if bad.any():
        raise wrong(int(indices[bad][0]))


def _own(value: torch.Tensor, others: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """Return `value`, or a copy if it has the same memory as one of `others`."""
    memory = value.untyped_storage().data_ptr()
    if any(x is not None and x.untyped_storage().data_ptr() == memory for x in others):
        return value.clone()
    return value


def _named(error: RuntimeError, nbytes: int) -> Exception:
    """Return DeviceMemoryError for a PyTorch error about memory, and any other error unchanged."""
    if "can't allocate memory" not in str(error):
        return error
    return DeviceMemoryError(f"Torch: got a request for {nbytes} bytes")
