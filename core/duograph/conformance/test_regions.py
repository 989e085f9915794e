"""Tests that fused kernels and whole functions compute what the kernels of single ops compute.

They run only on backends that compile. All samples of a case are compiled as one function. The
tests lower the cost limits, so that even regions of a single op are compiled, which otherwise would
not pay.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import duograph as ms

from ..backend import registry
from ..backend.costs import Costs, FusionLimits
from ..backend.protocol import Backend
from ..dtype import DType
from ..errors import DTypeError, UnsupportedOpError
from .case import OpCase, Sample
from .check import arrays_of, call_text, fail_with, indented, results_of, substitute, to_tensor
from .compare import difference_of
from .session import Session, over

# One dtype for each kind of arithmetic: promoted to int, wrapping, 64 bits, widened, polynomial
# approximations, library functions.
DTYPES = {"bool", "uint8", "int32", "int64", "float16", "float32", "float64"}
# Tolerances for sums in another order.
NEAR = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-13}
NEAR |= {"complex64": NEAR["float32"], "complex128": NEAR["float64"]}


def _refuses(session: Session) -> str | None:
    return registry.backend(session.name).compiles(0)


def _least_costs(backend: Backend, device_id: int) -> Costs:
    """Return cost limits that let even a single op be fused, in place of the backend's own."""
    return Costs(fusion=FusionLimits(min_ops=1, min_run=1))


@over(Session.regions)
def test_regions(case, dtype, session, monkeypatch):
    """Test that fused kernels (level O1) agree with the kernels of single ops.

    Sums may round differently.
    """
    ops = [op for op in (case.op, *case.covers) if op is not None]
    if not any(op.scalar_rule is not None or op.is_reduction or op.traits.gather for op in ops):
        pytest.skip("no op of the case has a scalar form")
    if dtype.name not in DTYPES:
        pytest.skip("computed as another dtype is")
    problem = _refuses(session)
    if problem is not None:
        pytest.skip(f"{session.name}: {problem}")
    monkeypatch.setattr(type(registry.backend(session.name)), "costs", _least_costs)
    kept = _eager(case, dtype)
    exact = not any(op.is_reduction for op in ops)
    near = None if exact else NEAR.get(np.dtype(dtype.np).name)
    _compare(case, kept, "O1", "kernel and region", near)


@over(Session.whole)
def test_whole_functions(case, dtype, session):
    """Test that a function compiled or linked as a whole computes what its single ops compute.

    The jit level is O2. Sums and elementary functions may round differently.
    """
    _compare(case, _eager(case, dtype), "O2", "op by op and whole", NEAR.get(dtype.name))


def _eager(case: OpCase, dtype: DType) -> list[tuple[Sample, Any, Any, Any]]:
    """Return (sample, args, kwargs, eager results) for each sample that the device supports.

    Samples without an array are left out. If no sample remains, the test is skipped.
    """
    kept = []
    for sample in case.made(dtype):
        if not any(True for _ in arrays_of([list(sample.args), dict(sample.kwargs)])):
            continue
        try:
            put = functools.partial(to_tensor, kind=sample.kind)
            args, kwargs = substitute(sample.args, put), substitute(dict(sample.kwargs), put)
            wanted = results_of(case.function(*args, **kwargs))
        except (UnsupportedOpError, DTypeError):
            continue  # test_ops judges what the device refuses
        kept.append((sample, args, kwargs, wanted))
    if not kept:
        pytest.skip("no sample has an array that the device takes")
    return kept


def _compare(
    case: OpCase,
    kept: list[tuple[Sample, Any, Any, Any]],
    level: str,
    what: str,
    near: float | None,
) -> None:
    """Compile all samples of a case as one function and compare its results with eager results.

    The test fails if a result differs.

    Args:
        case: the case.
        kept: (sample, args, kwargs, eager results) of each sample.
        level: the jit level.
        what: description of the compiled results, for messages.
        near: the tolerance; None means that results must be equal bit for bit.
    """
    function = case.function

    def whole(calls):
        return [function(*args, **kwargs) for args, kwargs in calls]

    compiled = ms.jit(whole, jit_level=level)
    results = compiled([(args, kwargs) for _, args, kwargs, _ in kept])
    found = []
    for (sample, _, _, want), value in zip(kept, results, strict=True):
        text = difference_of(want, results_of(value), what, near)
        if text is not None:
            found.append(f"{call_text(case, sample)}\n{indented(text)}")
    fail_with(found)
