"""The oracle: a NumPy backend that computes the expected results of the conformance suite.

It runs primitives by their `reference` rules in NumPy and composites by their bodies. Since it is a
backend, public functions, gradients and training steps can run on it as on a device. Its handles
are NumPy arrays. It must not use any kernel of a tested device, so that errors are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from .. import context
from ..backend import registry
from ..backend.protocol import Backend, BackendSpec, DeviceInfo
from ..dtype import DType
from ..op import Op
from ..types import TensorType

if TYPE_CHECKING:
    from ..backend.prepared import Handle, HandleFunction
    from ..host_arrays import Array

__all__ = ["NAME", "Oracle", "install", "on_device", "on_oracle"]

NAME = "Oracle"


class Oracle(Backend):
    """Backend that runs ops by their NumPy reference rules, for expected results of tests.

    `seen` collects the dtypes of operands and results.
    """

    name = NAME

    def __init__(self) -> None:
        self.seen: set[DType] = set()

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "Oracle", "reference rules in NumPy")]

    def copy_in(self, array: Array, device_id: int) -> Handle:
        return np.array(array, order="C")

    def copy_out(
        self, handle: Handle, shape: tuple[int, ...], dtype: np.dtype[np.generic], device_id: int
    ) -> Array:
        return handle.reshape(shape)

    def prepare(
        self,
        op: Op,
        types: tuple[TensorType, ...],
        attributes: Mapping[str, object],
        device_id: int,
    ) -> HandleFunction | None:
        if op.is_composite or op.reference_rule is None:
            return None
        reference = op.reference_rule
        shapes = [None if t is None else t.shape for t in types]
        results = op.infer_types(types, attributes)
        self.seen.update(t.dtype for t in (*types, *results) if t is not None)

        def call(*handles: Array) -> Array | tuple[Array, ...]:
            arrays = [
                None if s is None else h.reshape(s) for h, s in zip(handles, shapes, strict=True)
            ]
            with np.errstate(all="ignore"):
                found = reference(*op.arguments(arrays), **attributes)
            parts = found if isinstance(found, tuple) else (found,)
            made = tuple(_as_inferred(op, p, t) for p, t in zip(parts, results, strict=True))
            return made if isinstance(found, tuple) else made[0]

        return call


def _as_inferred(op: Op, value: object, type_: TensorType) -> Array:
    """Cast the result of a NumPy reference rule to the dtype that the op's type rule states.

    Raises:
        AssertionError: the result has another shape than the type rule states, or is floating where
            the rule states an integer dtype.
    """
    array = np.asarray(value)
    if array.shape != type_.shape:
        raise AssertionError(
            f"{op.name}: reference gave shape {array.shape}, infer says {type_.shape}"
        )
    if array.dtype != type_.dtype.np and array.dtype.kind in "fc" and type_.dtype.kind in "biu":
        raise AssertionError(f"{op.name}: reference gave {array.dtype}, infer says {type_.dtype}")
    return np.array(array, dtype=type_.dtype.np, order="C")


def install() -> None:
    """Register the NumPy reference backend (the oracle), once per process."""
    if NAME not in registry.entries():
        spec = BackendSpec(NAME, Oracle, priority=None)
        registry.register(spec, "duograph.conformance")


@contextmanager
def on_device(name: str, index: int = 0) -> Iterator[None]:
    """Return a context manager that makes a device the `device_target` inside its `with` block."""
    before = {k: getattr(context.settings, k) for k in ("device_target", "device_id")}
    context.set_context(device_target=name, device_id=index)
    try:
        yield
    finally:
        context.settings.device_target = before["device_target"]
        context.set_context(device_id=before["device_id"])
        for call in context.on_device_change:
            call()


@contextmanager
def on_oracle() -> Iterator[set[DType]]:
    """Return a context manager that runs ops on the oracle, the NumPy reference backend.

    Its value is the set of dtypes of all operands and results so far inside the block.
    """
    install()
    backend = registry.backend(NAME)
    assert isinstance(backend, Oracle)
    with on_device(NAME):
        backend.seen = set()
        yield backend.seen
