"""Checks in debug mode that a backend's kernels return valid buffers.

While `set_context(debug=True)` is set, `execution.lowering` wraps the steps that run one by one,
and `execution.native_program` wraps a program as a whole. A buffer handle is opaque: its memory is
checked by `Backend.nbytes`, or else by reading it back with `copy_out`. A check must not change
what a kernel returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..backend.checked_calls import bytes_of, from_device
from ..backend.plugin_checks import array_text, call_text, error_text, shown_value
from ..backend.prepared import Handle, HandleFunction
from ..backend.program import NeedsSteps, Step
from ..backend.protocol import Backend
from ..errors import BackendError, DuographError
from ..types import TensorType, ValueType

if TYPE_CHECKING:
    from ..host_arrays import Array

__all__ = ["checked_program", "checked_step"]


def checked_step(step: Step, types: Mapping[int, ValueType], backend: Backend, index: int) -> Step:
    """Return a copy of a step that checks the results of each call.

    A step with a result that is not a tensor is returned unchanged.

    Args:
        step: the step.
        types: slot -> type of its value; slots of operands copied to a kernel's own layout are
            missing.
        backend: the backend of the kernel.
        index: index of the device.
    """
    results = [types.get(slot) for slot in step.results]
    tensors = [t for t in results if isinstance(t, TensorType)]
    if len(tensors) < len(results):
        return step
    operands = [types.get(slot) for slot in step.operands]
    owner = step.call.owner or f"the {backend.name} backend"
    text = f"{call_text(step.name, operands)}: the kernel of {owner}"
    check = _ResultCheck(text, operands, tensors, backend, index)
    run = check.kernel(step.call.run, step.single)
    return step.with_run(run)


def checked_program(
    run: HandleFunction,
    results: Sequence[ValueType | None],
    backend: Backend,
    index: int,
    method: str = "link",
) -> HandleFunction:
    """Return a function that runs a linked program and checks its result handles.

    A result may be a parameter's handle, because the program may return or overwrite it.

    Args:
        run: function that runs the program; it returns a single handle if there is a single result.
        results: types of the results; results that are no tensors, or None, are not checked.
        backend: the backend that linked the program.
        index: index of the device.
        method: the method of the backend that made the program, "link" or "compile_graph".
    """
    of = ", ".join(map(repr, results))
    text = f"the program of results {of} that {method}() of the {backend.name} backend made"
    check = _ResultCheck(text, (), (), backend, index)

    def checked(*arguments: object) -> object:
        try:
            found = run(*arguments)
        except NeedsSteps:
            raise
        except Exception as error:
            raise check.raised(error) from error
        parts = found if isinstance(found, tuple) else (found,)
        if len(parts) != len(results):
            raise check.failed(f"{len(parts)} results", f"{len(results)}")
        for part, type_ in zip(parts, results):
            if isinstance(type_, TensorType):
                check.memory(part, type_)
        return found

    return checked


@dataclasses.dataclass(frozen=True)
class _ResultCheck:
    """Checks the result handles of one kernel call.

    Attributes:
        text: the call and the plugin that provides the kernel, as shown in error messages.
        operands: types of the operands; None for an operand that is absent or no tensor.
        results: types of the results.
        backend: the backend of the kernel.
        index: index of the device.
    """

    text: str
    operands: Sequence[ValueType | None]
    results: Sequence[TensorType]
    backend: Backend
    index: int

    def kernel(self, run: HandleFunction, single: bool) -> HandleFunction:
        """Return a function that runs a kernel, checks its results and returns them.

        `single` says that the kernel returns one handle instead of a tuple.
        """

        def checked(*handles: Handle) -> object:
            try:
                found = run(*handles)
                self.backend.synchronize(self.index)  # else a later call raises what this one found
            except Exception as error:
                raise self.raised(error) from error
            if single:
                self.result(found, self.results[0], handles)
                return found
            if not isinstance(found, (tuple, list)) or len(found) != len(self.results):
                raise self.failed(shown_value(found), f"a tuple of {len(self.results)} handles")
            for k, (part, type_) in enumerate(zip(found, self.results)):
                self.result(part, type_, (*handles, *found[:k]))
            return found

        return checked

    def raised(self, error: Exception) -> Exception:
        """Return the exception to raise after a kernel raised `error`.

        Errors of duograph, and those that the backend interface allows in a kernel, are returned
        unchanged; any other error is wrapped in a BackendError.
        """
        if isinstance(error, (DuographError, IndexError, MemoryError)):
            return error
        return BackendError(f"{self.text} raised {error_text(error)}")

    def failed(self, got: str, wanted: str) -> BackendError:
        return BackendError(f"{self.text} returned {got}; wanted {wanted}")

    def result(self, handle: Handle, type_: TensorType, others: Sequence[Handle]) -> None:
        """Raise BackendError unless a result handle is valid memory that no other value uses.

        Args:
            handle: the handle.
            type_: the type of the result.
            others: handles of the operands, then of the results before this one.
        """
        if type_.nbytes:
            for k, other in enumerate(others):
                if handle is other and handle is not None:
                    n = len(self.operands)
                    which = f"its operand {k}" if k < n else f"its result {k - n} again"
                    raise self.failed(f"{which} as a result", "memory of its own")
        array = self.memory(handle, type_)
        if array is None or not array.nbytes:
            return
        for k, (other, given) in enumerate(zip(others, self.operands)):
            if not isinstance(given, TensorType):
                continue
            # the array of an operand may have the shape before a reshape
            seen = other if isinstance(other, np.ndarray) else self.read(other, given)
            if np.may_share_memory(array, seen):
                raise self.failed(f"memory of its operand {k}", "memory of its own")

    def memory(self, handle: Handle, type_: TensorType) -> Array | None:
        """Raise BackendError unless a handle has enough memory for a type.

        Returns the values if the check had to read them to the host, else None.
        """
        wanted = f"memory of {type_}, {type_.nbytes} bytes"
        if handle is None:
            raise self.failed("None", wanted)
        nbytes = bytes_of(self.backend, handle, self.index)
        try:
            array = self.read(handle, type_) if nbytes is None else None
        except (IndexError, MemoryError):
            raise  # an earlier kernel's, which reading waits for
        except BackendError as error:
            cause = error.__cause__  # what `copy_out` raised
            got = str(error) if cause is None else f"{shown_value(handle)} ({error_text(cause)})"
            raise self.failed(got, wanted) from error
        except Exception as error:
            raise self.failed(f"{shown_value(handle)} ({error_text(error)})", wanted) from error
        if nbytes is not None and nbytes < type_.nbytes:
            raise self.failed(f"memory of {nbytes} bytes", wanted)
        return array

    def read(self, handle: Handle, type_: TensorType) -> Array:
        """Return the values behind a handle as an array; if the handle is an array, return it.

        Raises:
            BackendError: the handle is an array that is not dense memory of the type.
        """
        if not isinstance(handle, np.ndarray):
            return from_device(self.backend, handle, type_.shape, type_.dtype.np, self.index)
        if not _is_dense(handle, type_):
            raise BackendError(array_text(handle))
        return handle


def _is_dense(array: Array, type_: TensorType) -> bool:
    """Return whether an array is contiguous memory of a tensor type.

    The array may have the type's shape, be flat, or consist of bytes.
    """
    if array.dtype == np.uint8 and array.nbytes == type_.nbytes:
        return array.flags.c_contiguous
    shapes = (type_.shape, (type_.size,))
    return array.shape in shapes and array.dtype == type_.dtype.np and array.flags.c_contiguous
