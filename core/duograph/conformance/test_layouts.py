"""Tests of kernels that read operands in other layouts than dense C order.

Each call of such a kernel is repeated with its operands stored transposed, sliced, flipped and with
the channels last, as `PreparedCall.layouts` allows, and must give the same results.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ..backend.plugin_checks import as_prepared, as_viewing
from ..backend.prepared import PreparedCall
from ..backend.protocol import Backend
from ..backend.views import View, dense_strides
from ..errors import DTypeError, UnsupportedOpError
from ..op import Op
from ..op_tables import rules_changed
from ..types import TensorType
from .case import OpCase
from .check import difference, fail_with, results_of, run
from .session import Session, over
from .tolerance import forward_tolerance

if TYPE_CHECKING:
    from ..backend.prepared import Handle
    from ..backend.protocol import Call
    from ..dtype import DType
    from ..host_arrays import Array

# So many calls of an op with operands of the same dtypes and ranks are repeated with views.
CALLS = 2


@over(Session.layouts)
def test_layouts(family, session, monkeypatch):
    """Test that a kernel for strided operands gives equal results for a view and its dense copy."""
    backend = session.backend
    watch = _Watch(backend, session.device.index)
    monkeypatch.setattr(backend, "prepare", watch.prepare)
    rules_changed()  # kernels that were prepared before are asked for again
    try:
        for case in session.cases_of(family):
            watch.case = case
            for dtype in session.layout_dtypes(case)[:1]:
                _run(case, dtype, 1)
        if watch.declared:  # else what follows would take long for nothing
            for case in session.cases_of(family):
                watch.case = case
                for dtype in session.layout_dtypes(case):
                    _run(case, dtype, None)
    finally:
        rules_changed()
    if not watch.declared:
        pytest.skip(f"the kernels of {session.name} take operands in dense C order alone")
    fail_with(list(dict.fromkeys(watch.found)))


def _run(case: OpCase, dtype: DType, count: int | None) -> None:
    """Call a case with its first `count` samples of a dtype, or with all if `count` is None.

    The kernels that the device prepares for these calls are observed; results and exceptions are
    not, since other tests check them.
    """
    for sample in case.made(dtype)[:count]:
        try:
            results_of(run(case, sample))
        except Exception:  # noqa: BLE001 (so does what it raises otherwise)
            continue


class _Watch:
    """Wraps the calls that a backend prepares, to repeat them with operands in other layouts.

    Attributes:
        case: the case that is being tested.
        declared: whether any kernel so far declares `PreparedCall.layouts`.
        calls: (op, dtypes and ranks of operands) -> number of kernel calls so far.
        found: one line of text for each wrong result that was found.
    """

    def __init__(self, backend: Backend, index: int) -> None:
        self.backend = backend
        self.index = index
        self.own = backend.prepare
        self.case: OpCase
        self.declared = False
        self.calls: collections.Counter[Hashable] = collections.Counter()
        self.found: list[str] = []

    def prepare(
        self, op: Op, types: tuple[TensorType, ...], attributes: Mapping[str, object], index: int
    ) -> Call | None:
        found = self.own(op, types, attributes, index)
        if not isinstance(found, PreparedCall) or not found.layouts:
            return found
        self.declared = True
        call = as_prepared(found, len(types), lambda: len(op.infer_types(types, attributes)))
        results = op.infer_types(types, attributes)

        kind = op.name, *[t and (t.dtype, len(t.shape)) for t in types]

        def checked(*handles: Handle) -> Handle:
            made = call.run(*handles)
            self.calls[kind] += 1
            if self.calls[kind] > CALLS:
                return made
            parts = made if isinstance(made, tuple) else (made,)
            want = [(t, self.read(h, t)) for h, t in zip(parts, results, strict=True)]
            for text, views, given in self.variants(call, types, handles):
                self.compare(f"{op.name}{list(types)} with {text}", call, views, given, want)
            return made

        return PreparedCall(checked)

    def read(self, handle: Handle, type_: TensorType) -> Array:
        return self.backend.copy_out(handle, type_.shape, type_.dtype.np, self.index).copy()

    def variants(
        self, call: PreparedCall, types: Sequence[TensorType | None], handles: Sequence[Handle]
    ) -> Iterator[tuple[str, dict[int, View], list[Handle]]]:
        """Yield (description, operand number -> view, all handles) for each test call."""
        stored: dict[str, dict[int, tuple[View, Handle]]] = {}
        for i, names in call.layouts.items():
            type_ = types[i]
            if type_ is None or not type_.size:
                continue
            array = self.read(handles[i], type_)
            for text, view, buffer in _ways(array):
                if not view.layouts.isdisjoint(names):
                    handle = self.backend.copy_in(buffer, self.index)
                    stored.setdefault(text, {})[i] = view, handle
        for text, ways in stored.items():
            each = [{i: way} for i, way in ways.items()]
            for chosen in [*each, ways] if len(ways) > 1 else each:
                given = [chosen[i][1] if i in chosen else h for i, h in enumerate(handles)]
                which = ", ".join(map(str, chosen))
                yield f"operand {which} {text}", {i: way[0] for i, way in chosen.items()}, given

    def compare(
        self,
        text: str,
        call: PreparedCall,
        views: dict[int, View],
        given: Sequence[Handle],
        want: Sequence[tuple[TensorType, Array]],
    ) -> None:
        """Call a kernel with views of operands; append a line to `found` for each wrong result.

        A result is wrong if it differs from the one in `want` by more than the tolerance. The line
        begins with `text`. An exception of the kernel counts as a wrong result too, except for
        UnsupportedOpError and DTypeError, which are raised. Nothing is called if the kernel cannot
        read these views.
        """
        assert call.with_views is not None
        try:
            viewing = as_viewing(call.with_views(views), views)
            if viewing is None:
                return
            made = viewing.run(*given)
            parts = made if isinstance(made, tuple) else (made,)
            for handle, (type_, wanted) in zip(parts, want, strict=True):
                own = self.case.tol.get(type_.dtype)
                wrong = difference(
                    self.read(handle, type_), wanted, forward_tolerance(type_.dtype, own)
                )
                if wrong is not None:
                    self.found.append(f"{text}: it differs from dense operands: {wrong}")
        except (UnsupportedOpError, DTypeError):
            raise
        except Exception as error:  # noqa: BLE001 (whatever a kernel raises is a finding)
            self.found.append(f"{text}: {type(error).__name__}: {error}")


def _ways(array: Array) -> Iterator[tuple[str, View, Array]]:
    """Yield (description, view, buffer) for several ways to store an array in a flat buffer."""
    rank = array.ndim
    if rank > 1:
        yield "transposed", *_permuted(array, tuple(reversed(range(rank))))
    if rank > 2:
        yield "with the channels last", *_permuted(array, (0, *range(2, rank), 1))
    yield "as every second element", *_spaced(array)
    if rank:
        flipped = np.ascontiguousarray(np.flip(array))
        strides = tuple(-s for s in dense_strides(array.shape))
        yield "backwards", View(array.shape, strides, array.size - 1, array.size), flipped


def _permuted(array: Array, order: tuple[int, ...]) -> tuple[View, Array]:
    """Return the view and the buffer of an array whose axes are stored in another order."""
    buffer = np.ascontiguousarray(array.transpose(order))
    lies = dense_strides(buffer.shape)
    strides = tuple(lies[order.index(axis)] for axis in range(array.ndim))
    return View(array.shape, strides, 0, array.size), buffer


def _spaced(array: Array) -> tuple[View, Array]:
    """Return the view and the buffer of an array whose elements are separated by unused numbers."""
    size = 2 * math.prod(array.shape) + 1
    buffer = np.zeros(size, array.dtype)
    buffer[1::2] = array.reshape(-1)
    strides = tuple(2 * s for s in dense_strides(array.shape))
    return View(array.shape, strides, 1, size), buffer
